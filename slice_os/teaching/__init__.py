"""Teaching a phrase: a few yes and no make it a query vector whose score is a probability.

Names are looked up when they are used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
