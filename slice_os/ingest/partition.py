"""A share of a corpus: the documents whose ids fall to one of several runs side by side."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

from slice_os.errors import CorpusError


class Partition(NamedTuple):
    """The share `number`, from 0, of `total`; which one a document's id falls to never changes."""

    number: int
    total: int

    @classmethod
    def of(cls, given: tuple[int, int] | str) -> Partition:
        """Return a partition that is given as ``(3, 8)`` or ``"3/8"``.

        Raises:
            CorpusError: it is no such thing, or there is no such share.
        """
        if isinstance(given, str):
            parts = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", given)
            given = (int(parts[1]), int(parts[2])) if parts else (0, 0)
        partition = cls(*given)
        if not 0 <= partition.number < partition.total:
            raise CorpusError(
                "A partition is I/N, the share I from 0 of N runs, such as 0/8 to 7/8."
            )
        return partition

    def holds(self, id_: str) -> bool:
        """Tell whether a document of this id is of this share."""
        digest = blake2b(str(id_).encode("utf-8", "replace"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.total == self.number
