"""The `slice-os` command: its verbs, and what becomes of errors."""

from __future__ import annotations

import difflib
import getpass
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click
import msgspec

from slice_os import __version__
from slice_os.cli.log import is_json, say
from slice_os.cli.output import plain
from slice_os.errors import ClusterError, SliceOSError

VERBS = {
    "index": "cli.index",
    "search": "cli.search",
    "mine": "cli.mine",
    "teach": "cli.teach",
    "topics": "lab.cli.topics",
    "list": "cli.documents",
    "show": "cli.documents",
    "status": "cli.documents",
    "delete": "cli.documents",
    "serve": "cli.serve",
    "mcp": "cli.serve",
    "reindex": "cli.operate",
    "swap": "cli.operate",
    "rollback": "cli.operate",
    "generations": "cli.operate",
    "doctor": "cli.doctor",
    "check": "cli.doctor",
    "backup": "cli.operate",
    "restore": "cli.operate",
    "pack": "cli.packing",
    "load": "cli.packing",
    "plan": "cli.plan",
    "templates": "cli.cluster",
    "query": "cli.cluster",
    "connector": "cli.cluster",
    "evaluate": "lab.cli.evaluate",
    "calibrate": "cli.calibrate",
    "dataset": "lab.cli.dataset",
    "train": "lab.cli.train",
    "export": "lab.cli.train",
    "encoder-info": "cli.encoders",
}
"""Verb -> the module of slice_os that holds it, in the order that the help shows."""

DEBUG = "SLICE_OS_DEBUG"


class LazyGroup(click.Group):
    """Loads a verb when it is called, and names the nearest verb for a typo."""

    def __init__(self, *args: Any, modules: Mapping[str, str], **more: Any) -> None:
        """Take the table verb -> module of `slice_os` that holds it, in the help's order."""
        super().__init__(*args, **more)
        self._modules = modules

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        """Return the verbs in the order of the help."""
        return list(self._modules)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        """Load a verb."""
        if cmd_name not in self._modules:
            return None
        place, _, function = self._modules[cmd_name].partition(":")
        module = import_module(f"slice_os.{place}")
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(module, function or f"{name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or name the nearest."""
        near = difflib.get_close_matches(args[0], self._modules, 1)
        if near and args[0] not in self._modules:
            ctx.fail(f"There is no command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)


class Verbs(LazyGroup):
    """The verbs; maps errors."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; every error is one sentence, of a log in JSON one object."""
        try:
            return self._invoke(ctx)
        except click.ClickException as exc:
            if not is_json():
                raise
            say(exc.format_message(), logging.ERROR)
            raise click.exceptions.Exit(exc.exit_code) from exc

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            with _terminate_as_interrupt():
                return self._run(ctx)
        except SliceOSError as exc:
            raise click.ClickException(plain(str(exc))) from exc
        except BrokenPipeError:  # the reader of our output, `head` for one, has had enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except KeyboardInterrupt:
            say("Interrupted.")
            raise click.exceptions.Exit(130) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except OSError as exc:
            where = f"{exc.filename}: " if exc.filename else ""
            raise click.ClickException(f"{where}{exc.strerror or exc}.") from exc
        except Exception as exc:
            if os.environ.get(DEBUG):
                raise
            reason = "" if is_json() else f": {exc}"  # which may quote a document
            raise click.ClickException(
                f"Unexpected {type(exc).__name__}{reason}. This is a bug: set {DEBUG}=1, run the "
                "command again and report what it prints."
            ) from exc

    def _run(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as exc:
            cause: BaseException | None = exc
            while cause is not None and not isinstance(cause, KeyboardInterrupt):
                cause = cause.__cause__
            if cause is not None:  # while an extension module was loaded
                raise cause from None
            raise


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end a verb as Ctrl-C does: what is done is kept, what is temporary goes."""
    if threading.current_thread() is not threading.main_thread():  # signals are not ours
        yield
        return
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    """What slice-os.toml in the working folder may say; the environment goes before it."""

    index: str = ""
    encoder: str = ""
    judge: str = ""


def read_settings(file: Path = Path("slice-os.toml")) -> None:
    """Set the environment's variables of the settings in a file, if there is one.

    Raises:
        click.UsageError: the file is not TOML, or holds something else.
    """
    if not file.is_file():
        return
    try:
        settings = msgspec.toml.decode(file.read_bytes(), type=Settings)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise click.UsageError(f"{file} cannot be used: {exc}.") from exc
    for name, value in msgspec.structs.asdict(settings).items():
        if value:
            os.environ.setdefault(f"SLICE_OS_{name.upper()}", value)


def _ask(prompt: str) -> str:
    try:
        return getpass.getpass(prompt)
    except EOFError:
        raise ClusterError(
            "No password was given: run this again, or set it in the environment."
        ) from None


@click.group(
    name="slice-os",
    cls=Verbs,
    modules=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  slice-os index conversations/ contracts/ --index demo.slice
  slice-os search "the customer wants to cancel" --index demo.slice
  slice-os mine phrases.txt --index demo.slice --min-degree 0.8 --output matches.csv

\b
Shell completion (bash; likewise zsh_source, fish_source):
  eval "$(_SLICE_OS_COMPLETE=bash_source slice-os)"
""",
)
@click.version_option(__version__, prog_name="slice-os")
@click.pass_context
def main(context: click.Context) -> None:
    """Find the few words that matter inside long texts, however they are said."""
    from slice_os.cli.output import is_terminal, wanted_color
    from slice_os.storage import module_for

    read_settings()
    module_for("https://", "credentials").ask_with(_ask if is_terminal(sys.stdin) else None)
    # Remarks on styles and small defects of files, which are read all the same, and on buckets.
    warnings.filterwarnings("ignore", module=r"(openpyxl|pypdf)\b")
    for library in ("pypdf", "gcsfs"):
        logging.getLogger(library).setLevel(logging.CRITICAL + 1)
    context.color = wanted_color()
    for stream in (sys.stdout, sys.stderr):  # an argument may be no UTF-8, as a path may
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
