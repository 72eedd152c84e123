"""Training an encoder whose span vectors in context mean what the span means alone.

Importing this loads no torch; names are looked up when they are used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
