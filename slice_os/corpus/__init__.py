"""Paths -> documents -> passages.

`read` streams documents out of files, folders, globs and standard input; `split` cuts one document
into passages. Neither holds more than one document in memory.
"""

from slice_os.corpus.flow import flow, heading_of, unwrap
from slice_os.corpus.reader import Corpus, read
from slice_os.corpus.sentences import sentence_around
from slice_os.corpus.splitter import DEFAULT_MAX_WORDS, joined, split
from slice_os.corpus.words import count_words

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
