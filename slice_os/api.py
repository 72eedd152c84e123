"""The library: an `Index` and, for each verb of the command line, the function it calls."""

from __future__ import annotations

import builtins
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from slice_os.corpus import Corpus
from slice_os.corpus.addable import Addable, as_documents
from slice_os.encoders import Encoder, EncoderLike, StandaloneVectors, load_encoder
from slice_os.encoders.judge import Judge
from slice_os.encoders.judges import ENGLISH, JudgeLike, load_judge
from slice_os.engine import Hits, mine_phrases, search_passages, select
from slice_os.engine.document_text import get_document, show_document
from slice_os.engine.phrases import Named, Sought, Texts, gather
from slice_os.errors import EncoderMismatchError, GoneError, LocationError, MovedError, QueryError
from slice_os.ingest import LOOKED_UP, IndexReport, Prune, claim_roots, index_documents
from slice_os.options import MineOptions, SearchOptions, WordingOptions, takes
from slice_os.storage import Backend, IndexMeta, backend_for, connection
from slice_os.storage.contract import IndexStatus, StoredPassage
from slice_os.teaching.finding import mine_taught, search_taught
from slice_os.teaching.labels import check_labels
from slice_os.teaching.record import Label, TaughtPhrase, read_taught
from slice_os.teaching.rocchio import Liked, turned
from slice_os.teaching.session import Session, resumed
from slice_os.text import Query, parse_query
from slice_os.text.filters import Condition, Filter, parse_filters, unknown_field
from slice_os.types import Document, DocumentInfo, Excerpt, Float32, Match, Reject

Filters = Mapping[str, object] | Iterable[str | Filter] | None
StrPath = str | Path
_log = logging.getLogger(__name__)
LEAST_PASSAGE_WORDS = 5
TOGETHER = 64
"""Queries that `search_many` asks at once."""


def _ignore(_: object) -> None:
    return None


def _warn(reject: Reject) -> None:
    _log.warning("%s was skipped: %s.", reject.place, reject.reason)


class Index:
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

    def __init__(
        self,
        location: StrPath,
        *,
        encoder: EncoderLike = None,
        device: str = "auto",
        threads: int | None = None,
        passage_words: int | None = None,
        store: Sequence[str] | None = None,
        cluster: Mapping[str, Any] | None = None,
        credentials: Mapping[str, str] | None = None,
        client: Any = None,
        judge: JudgeLike = ENGLISH,
    ) -> None:
        self.location = os.fspath(location)  # TypeError, if it is none
        if passage_words is not None and passage_words < LEAST_PASSAGE_WORDS:
            raise LocationError(
                f"Passages of {passage_words} words are too short: use at least "
                f"{LEAST_PASSAGE_WORDS}."
            )
        self._connection = connection(credentials, client)
        self._backend = backend_for(self.location).open(self.location, **self._connection)
        self._encoder: Encoder | None = None
        self._load: Callable[[], Encoder] = partial(load_encoder, encoder, device, threads)
        self._vectors: StandaloneVectors | None = None
        self._judge: Judge | None = None
        self._load_judge: Callable[[], Judge | None] = partial(load_judge, judge, device, threads)
        self._given_judge = judge
        self._given = encoder  # an encoder object stays its owner's to close
        self._loading, self._opening = Lock(), Lock()
        self._passage_words = passage_words
        self._store = None if store is None else tuple(store)
        self._cluster = dict(cluster or {})
        if self._backend is not None:
            self._checked(self._backend)

    def _checked(self, backend: Backend) -> Backend:
        """Return an index that is as it is asked for; close another, and raise LocationError."""
        try:
            self._check(backend)
        except BaseException:
            backend.close()
            raise
        return backend

    def _check(self, backend: Backend) -> None:
        has, wanted = backend.meta.passage_words, self._passage_words
        if wanted not in (None, has):
            raise LocationError(
                f"The index {self.location} has passages of {has} words, {wanted} were asked for: "
                "leave the option out, or index to a new location."
            )
        stores = backend.meta.store
        if self._store not in (None, stores):
            held = "all metadata" if stores is None else ", ".join(stores) or "none"
            raise LocationError(
                f"The index {self.location} stores {held}, {', '.join(self._store or ())} was "
                "asked for: leave the option out, or index to a new location."
            )
        if self._cluster:
            backend.check_settings(self._cluster)

    def __repr__(self) -> str:
        return f"Index({self.location!r})"

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the index and the encoder."""
        if self._backend:
            self._backend.close()
        if self._encoder and self._encoder is not self._given:
            self._encoder.close()
        if self._judge and self._judge is not self._given_judge:
            self._judge.close()

    @property
    def encoder(self) -> Encoder:
        """The encoder, loaded and checked against the index at first use."""
        with self._loading:  # threads that search at once load it once
            if self._encoder is None:
                self._encoder = self._load()
        if self._backend:
            self._backend.meta.check_encoder(self.location, self._encoder.info)
        if self._backend and self._backend.meta.phrase_head != self._encoder.info.phrase_head:
            raise EncoderMismatchError(
                f"The index {self.location} was made with another phrase head of the encoder "
                f"{self._encoder.info.name}",
                hint=(
                    f"'slice-os reindex --index {self.location}' makes its "
                    "next generation with this one, and encodes nothing."
                ),
            )
        return self._encoder

    @property
    def _standalone(self) -> StandaloneVectors:
        """The encoder, which remembers the vectors of spans and queries from run to run."""
        encoder = self.encoder
        with self._loading:
            if self._vectors is None:
                self._vectors = StandaloneVectors(encoder)
        return self._vectors

    @property
    def judge(self) -> Judge | None:
        """The judge, loaded at first use; None if there is none."""
        with self._loading:
            if self._judge is None:
                self._judge = self._load_judge()
        return self._judge

    def _opened(self, *, fresh: bool = False) -> Backend | None:
        """Return the live generation, None if there is no index.

        One that was made, or made live, meanwhile is opened; in a cluster, for reads, that may be
        noticed some seconds later. Who writes asks for what is `fresh`.
        """
        known = self._backend
        if known is not None and fresh:
            known.forget()
        if known is not None and known.was_live():
            return known
        opened = backend_for(self.location).open(self.location, **self._connection)
        if opened is not None and known is None:
            opened = self._checked(opened)
        with self._opening:  # a moment: other threads may have asked the same meanwhile
            if self._backend is known:
                # A search that is under way may go on with the former one.
                self._backend = opened
            elif opened is not None:
                opened.close()
            return self._backend

    def _existing(self, *, fresh: bool = False) -> Backend:
        """Return the live generation."""
        backend = self._opened(fresh=fresh)
        if backend is None:
            raise LocationError(
                f"There is no index at {self.location}",
                hint=(
                    "make one with "
                    f"'slice-os index PATHS --index {self.location}'"
                    f"{_or_address(self.location)}."
                ),
            )
        return backend

    def _made(self) -> Backend:
        """Make the index, or open it if somebody else does."""
        info = self.encoder.info
        words = {} if self._passage_words is None else {"passage_words": self._passage_words}
        meta = IndexMeta(
            info.name,
            info.weights_hash,
            info.dimension,
            store=self._store,
            phrase_head=info.phrase_head,
            **words,
        )
        options: dict[str, Any] = {**self._connection}
        if self._cluster:
            options["settings"] = self._cluster
        made = backend_for(self.location).create(self.location, meta, **options)
        self._backend = self._checked(made)  # a cluster's template may have made it otherwise
        return self._backend

    def add(
        self,
        documents: Corpus | Iterable[Addable],
        *,
        prune: Prune = False,
        on_reject: Callable[[Reject], None] = _warn,
        on_progress: Callable[[IndexReport], None] = _ignore,
        max_rate: float | None = None,
    ) -> IndexReport:
        """Add documents, or replace those of the same id; what has not changed is not encoded.

        They may be texts, pairs of an id and a text, or dicts with a ``text``, too.
        The files of a `Corpus` (`slice_os.read`) have their ids under the roots that the index
        remembers. With `prune`, documents that are not among them are deleted, of a `Corpus` those
        under its paths; if they are more than a third, only with ``prune="all"``, or if `prune` is
        a function that, called with their number and that of all, agrees. A document that cannot
        be indexed is handed to `on_reject`, which warns by default, and counted; the others are
        indexed. `max_rate` is the most passages a second that are encoded and written.

        >>> report = index.add([("call-1", "I would like to cancel my subscription today.")])
        >>> report.documents, report.unchanged
        (0, 1)
        """
        documents = as_documents(documents)
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
        )

    def _filters(self, filters: Filters, backend: Backend) -> builtins.list[Filter]:
        """Return filters; a QueryError names a field that no document has, and those like it."""
        conditions = parse_filters(filters)
        for field in dict.fromkeys(name for condition in conditions for name in condition.fields):
            if not backend.has_field(field):
                raise unknown_field(self.location, field, backend.fields())
        return conditions

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

    def search_taught(
        self,
        taught: TaughtPhrase | StrPath,
        *,
        filters: Filters = None,
        size: int = 10,
        offset: int = 0,
        min_probability: float = 0.0,
    ) -> Hits:
        """Return the best passages for a taught phrase, or the file of one, by probability."""
        taught = taught if isinstance(taught, TaughtPhrase) else read_taught(taught)
        backend = self._existing()
        return search_taught(
            backend, self.encoder, taught, filters=self._filters(filters, backend), size=size,
            offset=offset, probability=min_probability,
        )  # fmt: skip

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
        parsed = [_parse(query, chosen, chosen.literal) for query in queries]
        judge = self.judge if chosen.rescore else None
        turn: Callable[[Float32], Float32] | None = None
        if liked or disliked:
            turn = partial(turned, standalone=self._standalone, liked=liked, disliked=disliked)

        def search(backend: Backend) -> builtins.list[Hits]:
            filters = self._filters(chosen.filters, backend)
            hits: list[Hits] = []
            while batch := parsed[len(hits) : len(hits) + TOGETHER]:  # more take too much memory
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

        backend = self._existing()
        try:
            hits = search(backend)
        except (GoneError, MovedError):  # it was live some seconds ago, and is deleted
            if (now := self._existing(fresh=True)) is backend:
                raise
            return search(now)
        if any(hits):
            return hits
        # What was remembered may be outdated.
        self._filters(chosen.filters, now := self._existing())
        return hits if now is backend else search(now)

    @takes(MineOptions)
    def mine(
        self,
        phrases: str | Named | TaughtPhrase | Mapping[str, Texts | Sought | TaughtPhrase],
        *,
        counter_examples: Mapping[str, Texts] | None = None,
        on_progress: Callable[[float], object] = _ignore,
        on_unknown: Callable[[str], object] = _ignore,
        **options: Any,
    ) -> Iterator[Match]:
        """Yield every match of the phrases; see `slice_os.engine.mine_phrases`.

        Taught phrases may be among them: their matches have at least `min_probability`, whatever
        `degree` is (`slice_os.teaching.finding.mine_taught`).

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
        chosen = MineOptions.of(**options)
        wording = _parse("", chosen, literal=False).wording
        backend = self._existing()
        phrases, taught = _apart(phrases)
        filters: builtins.list[Condition] = [*self._filters(chosen.filters, backend), *wording]
        by_teaching: Iterator[Match] = iter(())
        if taught:
            by_teaching = mine_taught(
                backend,
                self.encoder,
                taught,
                probability=chosen.min_probability,
                filters=filters,
                graph=chosen.graph,
                on_progress=on_progress,
            )
            if not phrases:
                return _select(by_teaching, chosen)
        matches = mine_phrases(
            backend,
            self._standalone,
            gather(phrases, counter_examples),
            chosen,
            filters=filters,
            judge=self.judge if chosen.rescore else None,
            on_progress=on_progress,
            on_unknown=on_unknown,
        )
        return _select(_both(by_teaching, matches) if taught else matches, chosen)

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
        backend, ids = self._existing(), iter(documents)
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


def _parse(text: str, options: WordingOptions, literal: bool) -> Query:
    """Return a query with the words that have to stand, or not to stand, in a passage."""
    return parse_query(text, must=options.must, must_not=options.must_not, literal=literal)


def _select(matches: Iterator[Match], options: MineOptions) -> Iterator[Match]:
    return select(matches, top=options.top, per_document=options.per_document, sort=options.sort)


def _apart(
    phrases: str | Named | TaughtPhrase | Mapping[str, Texts | Sought | TaughtPhrase],
) -> tuple[str | Named, dict[str, TaughtPhrase]]:
    """Return phrases without those that were taught, and these by name."""
    if isinstance(phrases, TaughtPhrase):
        return {}, {phrases.name: phrases}
    if not isinstance(phrases, Mapping):
        return phrases, {}
    taught = {name: phrase for name, phrase in phrases.items() if isinstance(phrase, TaughtPhrase)}
    rest = {name: text for name, text in phrases.items() if not isinstance(text, TaughtPhrase)}
    return rest, taught


def _both(first: Iterator[Match], second: Iterator[Match]) -> Iterator[Match]:
    """Yield the matches of two; closing it closes the one that is under way."""
    yield from first
    yield from second


def _or_address(location: str) -> str:
    """Return what to say of a folder's name that looks like a cluster without https://."""
    looks = re.match(r"[\w.-]+:\d+/", location)
    return f", or write https://{location} for one in a cluster" if looks else ""


open = Index


def index(
    corpus: Corpus | Iterable[Addable],
    location: StrPath,
    *,
    prune: Prune = False,
    on_reject: Callable[[Reject], None] = _warn,
    on_progress: Callable[[IndexReport], None] = _ignore,
    max_rate: float | None = None,
    **options: Any,
) -> IndexReport:
    """Bring the index at a location up to date with a corpus; see `Index.add`.

    `options` are those of `Index`.
    """
    with Index(location, **options) as opened:
        return opened.add(
            corpus, prune=prune, on_reject=on_reject, on_progress=on_progress, max_rate=max_rate
        )
