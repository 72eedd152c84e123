"""Paths -> documents -> passages.

`read` streams documents out of files, folders, globs and standard input; `split` cuts one document
into passages. Neither holds more than one document in memory.
"""

from slice_os.corpus.flow import flow, heading_of, sentence_around, unwrap
from slice_os.corpus.reader import Corpus, read
from slice_os.corpus.splitter import DEFAULT_MAX_WORDS, count_words, joined, split

__all__ = [
    "DEFAULT_MAX_WORDS",
    "Corpus",
    "count_words",
    "flow",
    "heading_of",
    "joined",
    "read",
    "sentence_around",
    "split",
    "unwrap",
]
