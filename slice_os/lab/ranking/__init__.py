"""Ranking whole documents by the sentences that they share with a query.

Importing this loads nothing else; names are looked up when they are used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
