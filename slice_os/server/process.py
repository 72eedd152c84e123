"""What serves, as a process: its address and token, its indexes, and how it ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from slice_os.api import Index
from slice_os.encoders.encoder import EncoderLike, open_encoder
from slice_os.encoders.judge import JudgeLike, load_judge
from slice_os.errors import LocationError
from slice_os.opened_index import StrPath
from slice_os.options import ServeOptions

if TYPE_CHECKING:
    import socket

    import uvicorn

    from slice_os.server.guard import App

TOKEN = "SLICE_OS_TOKEN"
FINISHING = 30
"""Seconds that what runs has, once the server is told to end, until its connections are closed."""
CONNECTIONS = 500
"""Connections at most: each may hold a body, and a file of the process."""
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
Locations = StrPath | Mapping[str, StrPath]


def run(
    app: App,
    options: ServeOptions,
    on_ready: Callable[[str], object],
    *,
    path: str = "",
    stop: Callable[[], object] = lambda: None,
) -> None:
    """Run an ASGI application until Ctrl-C or SIGTERM, of which `stop` is told.

    Raises:
        LocationError: the address cannot be had.
    """
    import uvicorn

    from slice_os.server.protocol import ImpatientProtocol

    with closing(listen(options.host, options.port)) as listening:
        config = uvicorn.Config(
            app,
            http=ImpatientProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=FINISHING,
        )
        server = uvicorn.Server(config)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        with _stopped_by_signals(server, stop):
            on_ready(f"http://{shown}:{port}/{path}")
            server.run([listening])


def check_address(options: ServeOptions) -> str:
    """Return the token in the environment, if there is one.

    Raises:
        LocationError: the address can be reached from elsewhere, and there is none.
    """
    token = os.environ.get(TOKEN, "")
    if not is_local(options.host) and not token:
        raise LocationError(
            f"An address other than this machine's own, {options.host}, needs a token",
            hint=f"set {TOKEN} to a long random text, such as 'openssl rand -hex 32' prints, and "
            "put a proxy with TLS before it (docs/server.md).",
        )
    return token


def hosts_of(options: ServeOptions) -> frozenset[str]:
    """Return the names by which a server may be asked for; none: by any."""
    local = LOCAL if is_local(options.host) else frozenset()
    return local | frozenset(map(str.lower, options.allow_hosts))


def is_local(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    return host in ("localhost", "::1") or host.startswith("127.")


def by_name(indexes: Locations) -> dict[str, StrPath]:
    """Return locations by name; a single one is called default."""
    named = dict(indexes) if isinstance(indexes, Mapping) else {"default": indexes}
    if not named:
        raise LocationError("There is no index to serve: give at least one.")
    return named


def open_all(
    stack: ExitStack,
    indexes: Locations,
    encoder: EncoderLike,
    device: str,
    threads: int | None,
    judge: JudgeLike,
) -> dict[str, Index]:
    """Open indexes by name, with one encoder and one judge for all, until a stack is left.

    Raises:
        LocationError: there is no index at one of the locations.
        EncoderMismatchError: one was made by another encoder.
    """
    loaded = stack.enter_context(open_encoder(encoder, device, threads))
    reading = load_judge(judge, device, threads)
    if reading is not None and reading is not judge:
        stack.callback(reading.close)
    opened: dict[str, Index] = {}
    for name, location in by_name(indexes).items():
        opened[name] = stack.enter_context(Index(location, encoder=loaded, judge=reading))
        opened[name].status()  # there is one
        opened[name].encoder  # noqa: B018 - and it was made by this encoder
    return opened


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, so that the port is known and had before anybody is told."""
    import socket

    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio leaves its connections with Nagle's delay of 40 ms.
    listening = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(512)
    except OSError as exc:
        listening.close()
        raise LocationError(
            f"{host}:{port} cannot be listened at ({exc.strerror or exc}): give another --port, "
            "0 for a free one, or another --host."
        ) from exc
    return listening


@contextmanager
def _stopped_by_signals(server: uvicorn.Server, stop: Callable[[], object]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a server in order; handlers are as before afterwards.

    uvicorn's own would raise the signal again, as if the end in order had been an interruption.
    """

    def end(which: int, frame: Any) -> None:
        stop()
        server.handle_exit(which, frame)

    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {which: signal.signal(which, end) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for which, handler in former.items():
            signal.signal(which, handler)
