"""What an `Index` works with: the live generation at a location, an encoder, a judge."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from slice_os.encoders import Encoder, EncoderLike, StandaloneVectors, load_encoder
from slice_os.encoders.judge import ENGLISH, Judge, JudgeLike, load_judge
from slice_os.errors import EncoderMismatchError, GoneError, LocationError, MovedError
from slice_os.storage import Backend, IndexMeta, backend_for, connection
from slice_os.storage.findings import nothing_at
from slice_os.text.filters import Filter, parse_filters, unknown_field

Filters = Mapping[str, object] | Iterable[str | Filter] | None
StrPath = str | Path
LEAST_PASSAGE_WORDS = 5
Opened = TypeVar("Opened", bound="OpenedIndex")
Found = TypeVar("Found")


class OpenedIndex:
    """The live generation at a location, opened when it is needed, and its models."""

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
        self._was_deleted = False
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
        words = backend.meta.passage_words
        if self._passage_words not in (None, words):
            raise LocationError(
                f"The index {self.location} has passages of {words} words, {self._passage_words} "
                "were asked for: leave the option out, or index to a new location."
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
        return f"{type(self).__name__}({self.location!r})"

    def __enter__(self: Opened) -> Opened:
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
                hint=f"'slice-os reindex --index {self.location}' makes its next generation with "
                "this one, and encodes nothing.",
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
                self._was_deleted = opened is None and (known is not None or self._was_deleted)
                # A search that is under way may go on with the former one.
                self._backend = opened
            elif opened is not None:
                opened.close()
            return self._backend

    def _existing(self, *, fresh: bool = False) -> Backend:
        """Return the live generation."""
        backend = self._opened(fresh=fresh)
        if backend is None and self._was_deleted:
            raise LocationError(
                f"There is no index at {self.location} any more, as it was deleted since it was "
                "opened",
                hint="restore a backup of it, or index what it is to hold again.",
            )
        if backend is None:
            raise nothing_at(self.location)
        return backend

    def _of_live(
        self, search: Callable[[Backend], builtins.list[Found]], filters: Filters
    ) -> builtins.list[Found]:
        """Return what a search of the live generation gives, even if another became live."""
        backend = self._existing()
        try:
            results = search(backend)
        except (GoneError, MovedError):  # it was live some seconds ago, and is deleted
            if (now := self._existing(fresh=True)) is backend:
                raise
            return search(now)
        if any(results):
            return results
        # What was remembered may be outdated.
        self._filters(filters, now := self._existing())
        return results if now is backend else search(now)

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

    def _filters(self, filters: Filters, backend: Backend) -> builtins.list[Filter]:
        """Return filters; a QueryError names a field that no document has, and those like it."""
        conditions = parse_filters(filters)
        for field in dict.fromkeys(name for condition in conditions for name in condition.fields):
            if not backend.has_field(field):
                raise unknown_field(self.location, field, backend.fields())
        return conditions
