"""BLAS on one thread.

For products as small as those of a search, BLAS's threads cost more than they save, and they spin
for a while afterwards, beside whatever else has work.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def one_blas_thread() -> AbstractContextManager[object]:
    """Keep BLAS to one thread in a block; in the whole process, unless another thread does so."""
    limit: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limit


@cache
def _libraries() -> Any:
    """Return the libraries that are loaded: to look for them takes longer than to limit them."""
    import numpy  # noqa: F401 - brings its BLAS
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
