"""Evaluation: how good an encoder or an index is, on sets from papers and on one's own.

Names are looked up when they are used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
