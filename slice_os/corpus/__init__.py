"""Files, rows and messages -> documents, one at a time."""

from slice_os.corpus.limits import PACKED_BYTES as PACKED_BYTES
from slice_os.corpus.reader import Corpus as Corpus
from slice_os.corpus.reader import read as read
