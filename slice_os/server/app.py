"""The endpoints: what each asks of the library. Before them stands `slice_os.server.guard`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import msgspec
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import Receive, Scope, Send

from slice_os import __version__
from slice_os.answers import document_list, to_json
from slice_os.api import Index
from slice_os.encoders import Encoder
from slice_os.errors import SliceOSError
from slice_os.options import ServeOptions
from slice_os.server import embeddings, openapi
from slice_os.server.batching import SearchQueue, shown
from slice_os.server.bodies import (
    Body,
    MineBody,
    SearchBody,
    TeachBody,
    check,
    check_page,
    decode,
    index_name,
)
from slice_os.server.failures import OverloadedError, RequestError, failure, status_of
from slice_os.server.guard import App, Guard
from slice_os.server.metrics import Metrics
from slice_os.server.mining import Mining, Stopping
from slice_os.server.parquet import columns_of, parquet
from slice_os.server.process import hosts_of
from slice_os.server.same import same
from slice_os.server.teaching import teach
from slice_os.server.workspace import Workspace

PAGE = Path(__file__).with_name("page")
BATCHES = 2
"""Batches of searches that run at once, of one index."""
LONG = 2
"""Threads that mine and teach, beside those that search."""
MININGS = 32
"""Minings under way at most; each has an open index, and a thread in turns."""
STALLED = 30.0
"""Seconds after which a client that takes nothing of a stream is left."""
Result = TypeVar("Result")


class Service:
    """Indexes behind endpoints, with the threads that answer."""

    def __init__(
        self, indexes: Mapping[str, Index], options: ServeOptions, stopping: Stopping
    ) -> None:
        self.indexes, self.options, self.stopping = dict(indexes), options, stopping
        self.encoder: Encoder = self.indexes[self.name(None)].encoder
        self.workspace = Workspace(options.workspace)
        self.metrics = Metrics()
        self.searching = ThreadPoolExecutor(BATCHES * len(indexes), "slice-os-search")
        self.reading = ThreadPoolExecutor(4, "slice-os-read")
        self.long = ThreadPoolExecutor(LONG, "slice-os-mine")
        self.minings = WeakSet[Mining]()
        self.metrics.mining.set_function(lambda: len(self.minings))
        self.queues = {
            name: SearchQueue(index, self.searching, BATCHES, self.metrics)
            for name, index in self.indexes.items()
        }

    def name(self, name: str | None) -> str:
        """Return the name of an index, by default the first; RequestError if there is none."""
        return index_name(name, self.indexes)

    async def read(self, function: Callable[[], Result]) -> Result:
        """Call what reads an index in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.reading, function)

    def close(self) -> None:
        """Let what runs end."""
        for pool in (self.searching, self.reading, self.long):
            pool.shutdown(cancel_futures=True)


class JsonLines(Response):
    """Lines as they come; a client that stops to read is left after a while."""

    media_type = "application/x-ndjson"

    def __init__(self, lines: AsyncGenerator[str, None]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._lines) as lines:
            async for line in lines:
                message = {"type": "http.response.body", "body": line.encode()}
                sending = asyncio.ensure_future(send({**message, "more_body": True}))
                # wait_for would swallow that it is cancelled, where the client goes just then.
                if not (await asyncio.wait([sending], timeout=STALLED))[0]:
                    sending.cancel()
                    return
        await send({"type": "http.response.body", "body": b""})


def as_response(answer: Any, status: int = 200) -> Response:
    """Return an answer as JSON."""
    content = answer if isinstance(answer, bytes) else to_json(answer).encode()
    return Response(content, status, media_type="application/json")


def create_app(
    indexes: Mapping[str, Index],
    *,
    token: str = "",
    stopping: Stopping | None = None,
    **options: Any,
) -> App:
    """Return an ASGI application that answers of some indexes, for a server of your own.

    Args:
        indexes: By name; the first is asked where a request names none. They stay their owner's to
            close, after the application's lifespan has ended.
        token: What requests must show as ``Authorization: Bearer TOKEN``, if anything.
        stopping: What is told when the server is to end.
        options: Those of `slice_os.options.ServeOptions`.

    Raises:
        LocationError: there is no index, or the workspace cannot be used.
    """
    chosen = ServeOptions.of(**options)
    service = Service(indexes, chosen, stopping or Stopping())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)

    app = FastAPI(
        title="slice-os", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url=None, summary="Search and mining by spans of words, next to BM25.",
    )  # fmt: skip
    app.add_exception_handler(SliceOSError, _failed)
    app.add_exception_handler(Exception, _failed)
    app.add_exception_handler(StarletteHTTPException, _refused)
    _add_endpoints(app, service, token)
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    guarded = Guard(app, chosen, token, hosts_of(chosen), service.metrics)
    if not chosen.cors:
        return guarded
    return CORSMiddleware(
        guarded,
        allow_origins=chosen.cors,
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type"],
    )


async def _failed(request: Request, error: Exception) -> Response:
    if request.url.path.startswith("/v1/"):
        return as_response(embeddings.openai_failure(error), status_of(error))
    return as_response(failure(error), status_of(error))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException | StarletteHTTPException)
    answer = {"error": f"{error.detail}: {request.method} {request.url.path[:100]}", "hint": ""}
    response = as_response(answer, error.status_code)
    response.headers.update(error.headers or {})
    return response


def _add_endpoints(app: FastAPI, service: Service, token: str) -> None:
    limits, workspace = service.options, service.workspace

    async def body_of(request: Request, kind: type[Body]) -> Body:
        asked = decode(await request.body())
        body = kind.of(**asked)
        check(body, limits)  # type: ignore[arg-type]
        request.state.asked = {name: asked[name] for name in ("query", "phrases") if name in asked}
        return body

    @app.post("/api/search", **openapi.SEARCH)
    async def search(request: Request) -> Response:
        body = await body_of(request, SearchBody)
        name = service.name(body.index)
        if body.query is not None:
            return as_response(await service.queues[name].search(body))
        index = service.indexes[name]

        def find() -> bytes:
            hits = index.search_taught(
                workspace.read(str(body.taught)),
                filters=body.filters,
                size=body.size,
                offset=body.offset,
                min_probability=body.min_probability,
            )
            return shown(index, hits, body)

        return as_response(await service.read(find))

    @app.post("/api/mine", **openapi.MINE)
    async def mine(request: Request) -> Response:
        body = await body_of(request, MineBody)
        if len(service.minings) >= MININGS:
            raise OverloadedError(f"{MININGS} minings are under way: ask again later.")
        taught = workspace.read_all(body.taught)
        mining = Mining(
            service.indexes[service.name(body.index)],
            body,
            taught,
            limits.max_seconds,
            service.stopping,
        )
        service.minings.add(mining)
        await asyncio.get_running_loop().run_in_executor(service.long, mining.begin)
        return JsonLines(mining.lines(service.long))

    async def same_as(request: Request, body: SearchBody | MineBody, verb: str) -> Response:
        index = service.indexes[service.name(body.index)]
        url = request.query_params.get("url", str(request.base_url)).rstrip("/")
        made = partial(same, index, body, f"{url}/api/{verb}", workspace, token=bool(token))
        return as_response(msgspec.to_builtins(await service.read(made)))

    @app.post("/api/same/search", **openapi.SAME_SEARCH)
    async def same_search(request: Request) -> Response:
        return await same_as(request, await body_of(request, SearchBody), "search")

    @app.post("/api/same/mine", **openapi.SAME_MINE)
    async def same_mine(request: Request) -> Response:
        return await same_as(request, await body_of(request, MineBody), "mine")

    @app.post("/api/parquet", **openapi.PARQUET)
    async def as_parquet(request: Request) -> Response:
        body = columns_of(await request.body())
        content = await service.read(partial(parquet, body))
        return Response(content, media_type=openapi.PARQUET_TYPE)

    @app.post("/api/teach", **openapi.TEACH)
    async def teach_phrase(request: Request) -> Response:
        body = await body_of(request, TeachBody)
        index = service.indexes[service.name(body.index)]
        taught = await asyncio.get_running_loop().run_in_executor(
            service.long, teach, index, body, workspace
        )
        return as_response(msgspec.to_builtins(taught))

    @app.get("/api/taught", **openapi.TAUGHT_NAMES)
    async def taught_names() -> Response:
        return as_response({"taught": await service.read(workspace.names)})

    @app.get("/api/taught/{name}", **openapi.TAUGHT)
    async def taught_phrase(name: str) -> Response:
        return as_response(await service.read(workspace.read(name).to_dict))

    @app.get("/api/documents", **openapi.DOCUMENTS)
    async def documents(request: Request) -> Response:
        asked = request.query_params
        index = service.indexes[service.name(asked.get("index"))]
        size, offset = _number(asked, "size", 100), _number(asked, "offset", 0)
        check_page(size, offset, limits)
        filters = asked.getlist("filter")
        page = await service.read(lambda: index.list(filters=filters, size=size + 1, offset=offset))
        return as_response(document_list(page, size))

    @app.get("/api/documents/{document:path}", **openapi.DOCUMENT)
    async def document(document: str, request: Request) -> Response:
        asked = request.query_params
        index = service.indexes[service.name(asked.get("index"))]
        at = _number(asked, "at", 0) if "at" in asked else None
        context = _number(asked, "context", 1)
        excerpt = await service.read(lambda: index.show(document, at=at, context=context))
        return as_response(excerpt.to_dict())

    @app.get("/api/status", **openapi.STATUS)
    async def status(request: Request) -> Response:
        index = service.indexes[service.name(request.query_params.get("index"))]
        return as_response((await service.read(index.status)).to_dict())

    @app.get("/api/server", **openapi.SERVER)
    async def server() -> Response:
        shown_limits = ("max_body", "max_phrases", "max_characters", "max_size", "max_seconds")
        return as_response(
            {
                "version": __version__,
                "indexes": list(service.indexes),
                "encoder": service.encoder.info.name,
                "workspace": workspace.is_kept,
                "limits": {name: getattr(limits, name) for name in shown_limits},
            }
        )

    @app.post("/v1/embeddings", **openapi.EMBEDDINGS)
    async def embed(request: Request) -> Response:
        body = embeddings.parse(decode(await request.body()))
        return as_response(await embeddings.embed(service.encoder, body, limits, service.searching))

    @app.get("/v1/models", **openapi.MODELS)
    async def models() -> Response:
        return as_response(embeddings.models(service.encoder))

    @app.get("/healthz", **openapi.HEALTH)
    async def health() -> Response:
        return as_response({"status": "ok"})

    @app.get("/metrics", **openapi.METRICS)
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    description = openapi.description(app)

    @app.get("/openapi.json", include_in_schema=False)
    async def schema() -> Response:
        return as_response(description)


def _number(asked: Mapping[str, str], name: str, default: int) -> int:
    """Return a whole number of a query string; RequestError if it is none from 0 on."""
    text = asked.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise RequestError(f"{name} must be a whole number from 0 on, not {text[:30]!r}.")
    return int(text)
