"""`slice_os.serve`: indexes over HTTP, until it is told to stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from slice_os.encoders.encoder import EncoderLike
from slice_os.encoders.judge import ENGLISH, JudgeLike
from slice_os.errors import needs
from slice_os.options import ServeOptions, takes
from slice_os.server.process import Locations, check_address, open_all, run


@takes(ServeOptions)
def serve(
    indexes: Locations,
    *,
    encoder: EncoderLike = None,
    device: str = "auto",
    threads: int | None = None,
    judge: JudgeLike = ENGLISH,
    on_ready: Callable[[str], object] = lambda url: None,
    **options: Any,
) -> None:
    """Answer over HTTP of an index, or of several by name, until Ctrl-C or SIGTERM.

    The first is asked where a request names none (docs/server.md). What runs is finished first; a
    second Ctrl-C ends it at once. `on_ready` is told the URL when it can be asked. Nothing is
    written but to the folder `workspace`.

    Raises:
        LocationError: there is no index at a location, the address cannot be had, or it is not this
            machine's own and there is no token in the environment's SLICE_OS_TOKEN.
        MissingExtraError: the extra ``serve`` is not installed.
    """
    chosen = ServeOptions.of(**options)
    token = check_address(chosen)
    with needs("Serving", "serve"):
        from slice_os.server.app import create_app
        from slice_os.server.mining import Stopping
    with ExitStack() as stack:
        opened = open_all(stack, indexes, encoder, device, threads, judge)
        stopping = Stopping()
        app = create_app(opened, token=token, stopping=stopping, **options)
        run(app, chosen, on_ready, stop=stopping.begin)
