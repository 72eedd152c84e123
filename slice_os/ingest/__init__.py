"""Corpus -> encoder -> spans -> storage, in bounded memory."""

from slice_os.ingest.partition import Partition as Partition
from slice_os.ingest.plan import LOOKED_UP as LOOKED_UP
from slice_os.ingest.plan import IndexReport as IndexReport
from slice_os.ingest.plan import problem_with as problem_with
from slice_os.ingest.run import Prune as Prune
from slice_os.ingest.run import claim_roots as claim_roots
from slice_os.ingest.run import index_documents as index_documents
