"""The library: an `Index` and, for each verb of the command line, the function it calls."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from slice_os.corpus import Corpus
from slice_os.corpus.addable import Addable, as_documents
from slice_os.engine import Hits, mine_phrases, search_passages, select
from slice_os.engine.document_text import get_document, show_document
from slice_os.engine.phrases import Named, Sought, Texts, gather
from slice_os.errors import QueryError
from slice_os.ingest import LOOKED_UP, IndexReport, Prune, claim_roots, index_documents
from slice_os.ingest.partition import Partition
from slice_os.opened_index import Filters, OpenedIndex, StrPath
from slice_os.options import MineOptions, SearchOptions, TaughtSearchOptions, takes
from slice_os.storage import Backend
from slice_os.storage.contract import IndexStatus, StoredPassage
from slice_os.teaching.rocchio import Liked, turned
from slice_os.text.filters import Condition
from slice_os.types import Document, DocumentInfo, Excerpt, Float32, Match, OnProgress, Reject

if TYPE_CHECKING:  # loaded when it is used
    from slice_os.teaching.record import Label, TaughtPhrase
    from slice_os.teaching.session import Session

_log = logging.getLogger(__name__)
TOGETHER, HITS_TOGETHER = 64, 640
"""Queries that `search_many` asks at once, at most, and the hits that they ask for in all."""


def _warn(reject: Reject) -> None:
    _log.warning("%s was skipped: %s.", reject.place, reject.reason)


class Index(OpenedIndex):
    """An index at a location, a folder or a cluster. It comes into being with the first `add`.

    Args:
        location: A folder, or ``https://host:9200/name`` in a cluster.
        encoder: Loaded when it is first needed, as `slice_os.load_encoder` does; an encoder that
            is given is closed by its owner.
        device: See `slice_os.load_encoder`.
        threads: See `slice_os.load_encoder`.
        passage_words: The most words of a passage; 110 if None.
        store: The metadata that hits bring along; None for all.
        cluster: How the index is made, where it is in a cluster (`slice_os.ClusterSettings`).
        credentials: For a cluster, instead of the environment's: ``user`` and ``password``,
            ``api_key``, ``ca_certs``, and others (docs/cluster.md).
        client: An opensearch-py client for the cluster, instead of one of our own.
        judge: What has the last word on verified degrees, as `slice_os.load_judge` takes it: by
            default the judge inside, which lowers those of opposites; None for none.

    Raises:
        LocationError: the index exists and is not as `passage_words`, `store` or `cluster` say.
        ClusterError: the cluster cannot be reached, or refuses.
    """

    def add(
        self,
        documents: Corpus | Iterable[Addable],
        *,
        prune: Prune = False,
        on_reject: Callable[[Reject], None] = _warn,
        on_progress: Callable[[IndexReport], None] = lambda report: None,
        max_rate: float | None = None,
        partition: tuple[int, int] | str | None = None,
    ) -> IndexReport:
        """Add documents, or replace those of the same id; what has not changed is not encoded.

        They may be texts, pairs of an id and a text, or dicts with a ``text``, too. The files of a
        `Corpus` (`slice_os.read`) have their ids under the roots that the index remembers. With
        `prune`, documents that are not among them are deleted, of a `Corpus` those under its paths;
        if they are more than a third, only with ``prune="all"``, or if `prune` is a function that,
        called with their number and that of all, agrees. A document that cannot be indexed is
        handed to `on_reject`, which warns by default, and counted; the others are indexed.
        `max_rate` is the most passages a second that are encoded and written. A `partition`,
        (3, 8) or ``"3/8"``, is one of 8 runs side by side (docs/scaling.md).

        >>> report = index.add([("call-1", "I would like to cancel my subscription today.")])
        >>> report.documents, report.unchanged
        (0, 1)
        """
        documents = as_documents(documents)
        part = None if partition is None else Partition.of(partition)
        backend = self._opened(fresh=True)
        roots = claim_roots(documents, backend)  # before an index is made: its paths may not do
        if backend is None:
            backend = self._made()
            roots = claim_roots(documents, backend)  # somebody else may have made it just now
        return index_documents(
            documents,
            backend,
            self.encoder,
            on_reject=on_reject,
            on_progress=on_progress,
            prune=prune,
            roots=roots,
            max_rate=max_rate,
            partition=part,
        )

    @takes(SearchOptions)
    def search(
        self,
        query: str,
        *,
        liked: Sequence[Liked] = (),
        disliked: Sequence[Liked] = (),
        **options: Any,
    ) -> Hits:
        """Return the best passages for a query; see `slice_os.engine.search_passages`.

        The query is drawn towards the hits, matches or texts that are `liked` and away from those
        that are `disliked` (`slice_os.teaching.rocchio`).

        ``"exact words"`` in the query must stand in a passage or its title, ``-word`` must not;
        `must` and `must_not` say the same, `literal` takes the query as it is. See
        `slice_os.text.parse_query`.

        >>> hits = index.search("wants to cancel", size=1)
        >>> hits[0].document, hits[0].spans[0].text
        ('call-1', 'like to cancel')

        Raises:
            QueryError: the query holds no word, or an option is out of its range.
        """
        (hits,) = self.search_many([query], liked=liked, disliked=disliked, **options)
        return hits

    @takes(TaughtSearchOptions)
    def search_taught(self, taught: TaughtPhrase | StrPath, **options: Any) -> Hits:
        """Return the best passages for a taught phrase, or the file of one, by probability."""
        from slice_os.teaching import record, retrieval

        chosen = TaughtSearchOptions.of(**options)
        taught = taught if isinstance(taught, record.TaughtPhrase) else record.read_taught(taught)
        backend = self._existing()
        filters = self._filters(chosen.filters, backend)
        return retrieval.search_taught(backend, self.encoder, taught, chosen, filters=filters)

    def teach(
        self,
        phrases: str | Sequence[str] | None = None,
        *,
        name: str | None = None,
        output: StrPath | None = None,
        labels: Iterable[Label] | None = None,
        taught: TaughtPhrase | StrPath | None = None,
        filters: Filters = None,
        seed: int = 0,
    ) -> Session:
        """Begin to teach a phrase, or go on; see `slice_os.teaching.session.Session`.

        With `labels` the phrase is taught with them at once. `taught` is a phrase whose phrases and
        labels are taken: it is taught anew from them, with whatever encoder it was taught. Where
        the file `output` exists, its labels are taken first, and it is gone on with.

        Raises:
            TeachingError: the labels contradict each other, or none fits the index; `output` is
                no file of a taught phrase, or of other phrases.
            EncoderMismatchError: `output` was taught with another encoder.
        """
        from slice_os.teaching.labels import check_labels
        from slice_os.teaching.session import Session, resumed

        begun = resumed(phrases, name, output, taught, self.encoder.info)
        known = [*begun.labels, *(check_labels([*labels]) if labels is not None else ())]
        backend = self._existing()
        return Session(
            backend, self.encoder, begun.phrases, name=begun.name, output=output, labels=known,
            filters=self._filters(filters, backend), seed=seed,
        )  # fmt: skip

    @takes(SearchOptions)
    def search_many(
        self,
        queries: Iterable[str],
        *,
        liked: Sequence[Liked] = (),
        disliked: Sequence[Liked] = (),
        **options: Any,
    ) -> builtins.list[Hits]:
        """Return what `search` returns for each of some queries, in far less time for many.

        >>> [hits[0].document for hits in index.search_many(["cancel", "damaged parcel"], size=1)]
        ['call-1', 'call-2']
        """
        chosen = SearchOptions.of(**options)
        parsed = [chosen.parse(query) for query in queries]
        together = min(TOGETHER, max(1, HITS_TOGETHER // chosen.size))
        judge = self.judge if chosen.rescore else None
        turn: Callable[[Float32], Float32] | None = None
        if liked or disliked:
            turn = partial(turned, standalone=self._standalone, liked=liked, disliked=disliked)

        def search(backend: Backend) -> builtins.list[Hits]:
            filters = self._filters(chosen.filters, backend)
            hits: list[Hits] = []
            while batch := parsed[len(hits) : len(hits) + together]:  # more take too much memory
                hits += search_passages(
                    backend,
                    lambda: self._standalone,
                    batch,
                    chosen,
                    filters=filters,
                    judge=judge,
                    turn=turn,
                )
            return hits

        return self._of_live(search, chosen.filters)

    @takes(MineOptions)
    def mine(
        self,
        phrases: str | Named | TaughtPhrase | Mapping[str, Texts | Sought | TaughtPhrase],
        *,
        counter_examples: Mapping[str, Texts] | None = None,
        on_progress: OnProgress = lambda report: None,
        on_unknown: Callable[[str], object] = lambda report: None,
        **options: Any,
    ) -> Iterator[Match]:
        """Yield every match of the phrases; see `slice_os.engine.mine_phrases`.

        `phrases` are texts, or by name a text or several, any of which matches. Where one of a
        name's `counter_examples` is nearer than its phrases there is no match. `top`,
        `per_document` and `sort` choose among the matches and wait for all of them
        (`slice_os.engine.select`); else they come as they are found.

        Passages without the words that `must` names, or with those of `must_not`, are left out; a
        phrase may hold the operators of `search`, unless it is `literal`. `on_unknown` is told each
        phrase of which the encoder knows no word: it is left out. Taught phrases may be among them:
        their matches have at least `min_probability`, whatever `min_degree` is.

        >>> for match in index.mine({"damage": ["it was damaged", "it came broken"]}):
        ...     print(match.name, match.document, match.text)
        damage call-2 was damaged.

        Raises:
            QueryError: a phrase is empty, all are unknown, or an option is out of its range.
        """
        from slice_os.teaching.retrieval import mine_taught, one_after_the_other, without_taught

        chosen = MineOptions.of(**options)
        backend = self._existing()
        phrases, taught = without_taught(phrases)
        wording = chosen.parse("").wording
        filters: builtins.list[Condition] = [*self._filters(chosen.filters, backend), *wording]
        matches: Iterator[Match] = iter(())
        if taught:
            matches = mine_taught(
                backend, self.encoder, taught, chosen, filters=filters, on_progress=on_progress
            )
        if phrases or not taught:
            by_phrase = mine_phrases(
                backend,
                self._standalone,
                gather(phrases, counter_examples),
                chosen,
                filters=filters,
                judge=self.judge if chosen.rescore else None,
                on_progress=on_progress,
                on_unknown=on_unknown,
            )
            matches = one_after_the_other(matches, by_phrase)
        return select(matches, chosen)

    def __len__(self) -> int:
        """Return how many documents the index holds, complete ones; 0 if there is no index yet."""
        backend = self._opened()
        return backend.count() if backend else 0

    def __bool__(self) -> bool:
        """Return True: an empty index is one, too."""
        return True

    def get(self, document: str) -> Document | None:
        """Return a document as the index holds it, None if it does not.

        White space between passages is not stored: there are as many line ends, so that offsets
        hold.

        >>> index.get("call-1").text
        'I would like to cancel my subscription today.'
        """
        return get_document(self._existing(), document)

    def passages(
        self, *, filters: Filters = None, after: tuple[str, int] | None = None
    ) -> Iterator[StoredPassage]:
        """Yield all passages with their word vectors, of the documents that meet all filters.

        By the ids of their documents and their numbers, from one state of the index; `after` is
        the document and the number of the passage to go on from.
        """
        backend = self._existing()
        return backend.passages(self._filters(filters, backend), after)

    def list(
        self, *, filters: Filters = None, size: int = 100, offset: int = 0
    ) -> builtins.list[DocumentInfo]:
        """Return `size` documents after the first `offset`, in the order of their ids.

        >>> [(info.document, info.words) for info in index.list()]
        [('call-1', 8), ('call-2', 9)]

        Raises:
            QueryError: a filter is not understood, or size or offset is out of its range.
        """
        if size < 1 or offset < 0:
            raise QueryError("size must be at least 1, offset at least 0.")
        backend = self._existing()
        return backend.documents(self._filters(filters, backend), size, offset)

    def show(
        self, document: str, *, at: int | None = None, passage: int | None = None, context: int = 1
    ) -> Excerpt:
        """Return a document's text, or one of its passages and `context` before and after it.

        That is the passage of the character `at`, an offset in the document as
        `Match.document_start` is, or the one of the number `passage`, as `Match.passage` is.

        >>> index.show("call-2", at=0).text
        'The parcel arrived late and the box was damaged.'

        Raises:
            QueryError: there is no such document, or no such character or passage in it.
        """
        if context < 0:
            raise QueryError("context must be at least 0.")
        return show_document(self._existing(), document, at, passage, context)

    def delete(self, documents: Iterable[str] = (), *, filters: Filters = None) -> int:
        """Delete documents by id, or those whose metadata meets `filters`; return how many.

        >>> index.delete("no such document")
        0
        """
        backend = self._existing(fresh=True)
        documents = [documents] if isinstance(documents, str) else documents
        conditions = self._filters(filters, backend)
        ids = [*documents, *(backend.matching(conditions) if conditions else ())]
        if not ids and not conditions:
            raise QueryError("Nothing to delete: give document ids or a filter.")
        with backend.writer() as writer:
            return writer.delete(ids)

    def holds(self, documents: Iterable[str]) -> set[str]:
        """Return which of these ids are those of documents in the index, complete ones.

        >>> index.holds(["call-1", "call-9"])
        {'call-1'}
        """
        backend = self._existing()
        ids = iter([documents] if isinstance(documents, str) else documents)
        held: set[str] = set()
        while batch := list(islice(ids, LOOKED_UP)):
            stored = backend.stored(batch)
            held |= {name for name, known in stored.items() if known.hash is not None}
        return held

    def status(self) -> IndexStatus:
        """Return the size and state of the index.

        >>> index.status().documents
        2
        """
        return self._existing().status()


open = Index


def index(
    corpus: Corpus | Iterable[Addable],
    location: StrPath,
    *,
    prune: Prune = False,
    on_reject: Callable[[Reject], None] = _warn,
    on_progress: Callable[[IndexReport], None] = lambda report: None,
    max_rate: float | None = None,
    partition: tuple[int, int] | str | None = None,
    **options: Any,
) -> IndexReport:
    """Bring the index at a location up to date with a corpus; see `Index.add`.

    `options` are those of `Index`.
    """
    with Index(location, **options) as opened:
        return opened.add(
            corpus, prune=prune, on_reject=on_reject, on_progress=on_progress, max_rate=max_rate,
            partition=partition,
        )  # fmt: skip
