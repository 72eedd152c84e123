"""An index in a cluster: opening and making it, writing to it, and its generations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from typing import Any

from slice_os.errors import ClusterError, EncoderMismatchError, LocationError, RefusedError
from slice_os.storage.cluster import generations
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.dialect import dialect_of
from slice_os.storage.cluster.hold import hold, lift_block
from slice_os.storage.cluster.load_settings import Loading, put_replicas
from slice_os.storage.cluster.mapping import GENERATION, named_index, read_meta, render_template
from slice_os.storage.cluster.read import ClusterReader
from slice_os.storage.cluster.requests import FREE, Cluster
from slice_os.storage.cluster.responses import IndexDescription, decoded, nested
from slice_os.storage.cluster.settings import Layout, parse_location
from slice_os.storage.cluster.write import ClusterWriter
from slice_os.storage.contract import Backend, Generation, IndexMeta
from slice_os.types import Reject


class ClusterBackend(ClusterReader, Backend):
    """An index in a cluster; see `Backend` for the contract. Threads may share it."""

    _held: str | None = None
    """The alias by which writers are held off, while they are."""

    @classmethod
    def open(cls, location: str, **options: Any) -> ClusterBackend | None:
        address = parse_location(location)
        with ExitStack() as on_failure:
            client = on_failure.enter_context(Client(address, **options))
            dialect = dialect_of(client)
            indexes = client.request(
                "GET",
                f"/{address.name}",
                kind=dict[str, IndexDescription],
                ignore_unavailable="true",
            )
            if not indexes:
                generations.check_named(client, dialect)
                return None
            index, description = named_index(address.name, indexes)
            meta, layout = read_meta(index, description, dialect)
            uuid = str(description["settings"]["index"].get("uuid"))
            opened = cls(Cluster(client, dialect, index), meta, layout, uuid)
            on_failure.pop_all()
        return opened

    @classmethod
    def create(
        cls,
        location: str,
        meta: IndexMeta,
        *,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ClusterBackend:
        address = parse_location(location)
        index = GENERATION.format(address.name, 1)
        body: dict[str, Any] = {"aliases": {address.name: {}, FREE.format(address.name): {}}}
        with Client(address, **options) as client:
            # Without settings the index is made from a template that was applied, if one was.
            if settings or not _is_template_applied(client, meta):
                layout = _without_all_dimensions(Layout.of(settings or {}), meta)
                rendered = render_template(address.name, meta, layout, dialect_of(client))
                body |= rendered["template"]
            made = _make(client, index, body)
            try:
                opened = cls.open(location, **options)
            except LocationError as exc:
                if not made:
                    raise
                client.request("DELETE", f"/{index}")
                raise LocationError(
                    f"The cluster's templates make {index} another index than slice-os needs: look "
                    f"at those that match its name, or apply one again. ({exc})"
                ) from exc
        if opened is None:
            raise LocationError(f"The index {location} was removed meanwhile: run this again.")
        return opened

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        Layout.of(settings)  # refuses unknown ones
        for name, wanted in settings.items():
            has = getattr(self.layout, name)
            if name == "dimensions":
                has, wanted = (value or self.meta.dimension for value in (has, wanted))
            if name == "replicas":
                put_replicas(self.cluster, wanted)
            elif wanted != has:
                raise LocationError(
                    f"The index {self.location} has {name.replace('_', ' ')} {has}, {wanted} was "
                    "asked for: leave the option out, or index to a new location."
                )

    def writer(
        self,
        on_reject: Callable[[Reject], None] = lambda reject: None,
        partition: tuple[int, int] | None = None,
    ) -> ClusterWriter:
        return ClusterWriter(
            self.cluster,
            self.layout,
            self._known,
            on_reject,
            is_live=self._uuid is not None,
            loading=Loading(self.cluster, partition),
        )

    def generations(self) -> list[Generation]:
        return generations.list_generations(self.cluster)

    def generation(self, number: int) -> ClusterBackend:
        cluster = self._beside(number)
        meta, layout = read_meta(cluster.index, cluster.describe(), cluster.dialect)
        return ClusterBackend(cluster, meta, layout)

    def next_generation(self, meta: IndexMeta, settings: Mapping[str, Any]) -> ClusterBackend:
        number = max(generation.number for generation in self.generations()) + 1
        kept = asdict(self.layout)
        if meta.dimension != self.meta.dimension:
            kept["dimensions"] = None
        layout = _without_all_dimensions(Layout.of({**kept, **settings}), meta)
        cluster = generations.make_generation(self.cluster, number, meta, layout)
        return ClusterBackend(cluster, meta, layout)

    def note_build(self, build: Mapping[str, Any] | None, token: object = ...) -> bool:
        return generations.note_build(self.cluster, build, token)

    def swap(self, number: int) -> None:
        lift_block(self._beside(number))
        generations.move_alias(self.cluster, number, self._held)
        self.note_move()

    def drop(self, number: int) -> None:
        self.cluster.client.request("DELETE", f"/{self._beside(number).index}")

    @contextmanager
    def hold(self, *, wait: bool = True) -> Iterator[None]:
        with hold(self.cluster) as self._held:
            try:
                yield
            finally:
                self._held = None

    def changes(self) -> object:
        return generations.changes(self.cluster)

    def close(self) -> None:
        self.cluster.client.close()

    def _beside(self, number: int) -> Cluster:
        """Return the requests to another generation."""
        index = GENERATION.format(self.cluster.address.name, number)
        return Cluster(self.cluster.client, self.cluster.dialect, index)


def _without_all_dimensions(layout: Layout, meta: IndexMeta) -> Layout:
    """Return a layout in which all dimensions of the encoder are None, however they are asked."""
    return replace(layout, dimensions=None) if layout.dimensions == meta.dimension else layout


def _is_template_applied(client: Client, meta: IndexMeta) -> bool:
    """Tell whether `templates apply` has put a template there; raise if it is for another encoder.

    Raises:
        LocationError: it names no encoder.
        EncoderMismatchError: it names another.
    """
    name = client.address.name
    try:
        templates = client.request(
            "GET", f"/_index_template/{name}", None, list[dict[str, Any]], "index_templates"
        )
    except ClusterError:  # there is none, or it is not ours to know
        return False
    path = ("index_template", "template", "mappings", "_meta", "slice_os", "encoder")
    if not templates or (made_for := nested(templates[0], *path)) is None:
        return False
    encoder = decoded(made_for, str, client.url, "name")
    weights_hash = decoded(made_for, str, client.url, "weights_hash")
    if not weights_hash:
        raise LocationError(
            f"The template {name} names no encoder",
            hint=f"'slice-os templates apply --index {client.address}' puts one there that does.",
        )
    if weights_hash != meta.weights_hash:
        raise EncoderMismatchError(
            f"The template {name} is for the encoder {encoder} (weights {weights_hash[:12]}), not "
            f"for {meta.encoder} (weights {meta.weights_hash[:12]}): apply one for it, or give the "
            "other encoder's folder."
        )
    return True


def _make(client: Client, index: str, body: dict[str, Any]) -> bool:
    """Make an index; False if it is there."""
    try:
        client.request("PUT", f"/{index}", body)
    except RefusedError as exc:
        if exc.kind == "resource_already_exists_exception":
            return False
        raise
    return True
