"""Paths -> documents -> passages.

`read` streams documents out of files, folders, globs and standard input; `split` cuts one document
into passages. Neither holds more than one document in memory.
"""

from slice_os.corpus.flow import flow as flow
from slice_os.corpus.flow import heading_of as heading_of
from slice_os.corpus.flow import sentence_around as sentence_around
from slice_os.corpus.flow import unwrap as unwrap
from slice_os.corpus.reader import Corpus as Corpus
from slice_os.corpus.reader import read as read
from slice_os.corpus.splitter import DEFAULT_MAX_WORDS as DEFAULT_MAX_WORDS
from slice_os.corpus.splitter import count_words as count_words
from slice_os.corpus.splitter import joined as joined
from slice_os.corpus.splitter import sentence_ends as sentence_ends
from slice_os.corpus.splitter import split as split
from slice_os.corpus.splitter import with_neighbours as with_neighbours
