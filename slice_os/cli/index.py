"""The verb index."""

from __future__ import annotations

import json
import sys
import threading
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

from slice_os.cli.log import Run, is_json, progress_bar, say, say_reject, show_done
from slice_os.cli.options import (
    corpus_options,
    index_options,
    json_option,
    layout_options,
    partition_option,
    run_options,
)
from slice_os.cli.output import REJECTED, counted, echo_json, is_terminal
from slice_os.errors import CorpusError
from slice_os.ingest import IndexReport
from slice_os.types import Reject

if TYPE_CHECKING:
    from tqdm import tqdm


SHOWN = 5
"""Files of which the first reject is shown at once; all rejects are in the rejects file."""
TYPES = 8
"""Endings of files that were not read that are named."""


@click.command(
    "index",
    epilog="""\b
Examples:
  slice-os index conversations/ contracts/*.txt --index demo.slice
  slice-os index issues.jsonl --id-field key --text-field summary --text-field body --index i.slice
  zcat notes.txt.gz | slice-os index - --id notes --index notes.slice
  slice-os index corpus/ --index demo.slice --prune     # drop documents that are gone
  slice-os index /mnt/b/docs --root /mnt/b --id-prefix b/ --index demo.slice
  slice-os index corpus/ --index https://host:9200/calls --shards 3
  slice-os index corpus/ --index https://host:9200/calls --max-rate 50 --log-format json \\
    --metrics /var/lib/node_exporter/slice_os.prom
  slice-os index s3://corpus --index https://host:9200/calls --partition 3/8
  slice-os index --from-index https://host:9200/old --index https://host:9200/new
""",
)
@click.argument("paths", nargs=-1)
@click.option(
    "--from-index",
    metavar="URL",
    help="Instead of paths: index the documents of this index of a cluster.",
)
@index_options
@corpus_options
@layout_options
@click.option(
    "--prune",
    is_flag=True,
    help="Delete documents that the paths no longer hold; asks before it deletes more than a "
    "third, and without a terminal keeps them.",
)
@partition_option
@click.option("--prune-all", is_flag=True, help="Like --prune, however many they are.")
@click.option(
    "--rejects",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write what was skipped, with reasons, here.  [default: LOCATION.rejects.jsonl]",
)
@run_options
@json_option
def index_command(
    paths: tuple[str, ...],
    from_index: str | None,
    location: str,
    reading: dict[str, Any],
    prune: bool,
    prune_all: bool,
    rejects: Path | None,
    as_json: bool,
    run: Run,
    **options: Any,
) -> None:
    """Index files, folders, globs or - (stdin); a second run encodes only what changed.

    The id of a file is its path below a root that the index remembers, however it is named here.
    Reads text, Markdown, HTML, JSON, tables, mail and subtitles (also .gz), and with the extra
    'documents' PDF and Office files. What cannot be read is skipped, counted and written to the
    rejects file; the exit code is then 3.
    """
    from slice_os import index as index_corpus
    from slice_os import read, read_index

    run.report = IndexReport()
    if not paths and not from_index:
        raise click.UsageError(
            "Nothing to index: give files, folders, globs or - (stdin), as in 'slice-os index "
            "my-texts/ --index LOCATION', or --from-index URL."
        )
    if paths and from_index:
        raise click.UsageError("Give paths to index, or --from-index, not both.")
    if from_index and not reading.keys() <= {"id_field", "title_field", "text_fields"}:
        raise click.UsageError(
            "With --from-index, of the options that say how paths are read only --id-field, "
            "--title-field and --text-field may be given."
        )
    if "id" in reading and "-" not in paths:
        raise click.UsageError("--id is the id of - (stdin): give - among the paths.")
    share = f".{options['partition'].replace('/', '-')}" if options["partition"] else ""
    if rejects and not _may_be_replaced(rejects):
        raise click.UsageError(f"{rejects} holds something else than rejects: give another path.")
    file = rejects or Path(f"{_local_name(location)}{share}.rejects.jsonl")
    with _Rejects(file, ours=rejects is None) as rejected:
        # Beside an index inside its own corpus, the file would be read while it is written.
        reader = partial(read_index, from_index) if from_index else partial(read, *paths)
        if not from_index:
            reading["exclude"] = [*reading.get("exclude", ()), file]
        corpus = reader(**reading, on_reject=rejected)
        with progress_bar(corpus.bytes_total) as bar:
            try:
                report = index_corpus(
                    corpus,
                    location,
                    prune="all" if prune_all else partial(_agreed, bar) if prune else False,
                    on_reject=rejected,
                    on_progress=lambda now: _advance(run, bar, corpus.bytes_done, now),
                    **options,
                )
            except KeyboardInterrupt:
                bar.close()
                say(
                    "Interrupted: every complete document is in the index; run the command again "
                    "to go on."
                )
                raise click.exceptions.Exit(130) from None
            finally:
                run.more = {
                    "rejected": rejected.count,
                    "ignored": corpus.ignored,
                    "unfollowed": corpus.unfollowed,
                }
    run.report = report
    result = {**report.to_dict(), **run.more}
    if as_json:
        echo_json({"index": location, **result, "rejects": str(file) if rejected.count else None})
    else:
        encoded = ""
        if report.encoded_words:
            rate = report.encoded_words / report.seconds
            encoded = f" {counted(report.encoded_words, 'word')} encoded, {rate:,.0f} words/s."
        replaced = f" ({report.replaced:,} replaced)" if report.replaced else ""
        click.echo(
            f"{location}: {counted(report.documents, 'document')} indexed{replaced}, "
            f"{report.unchanged:,} unchanged, {report.pruned:,} pruned in {report.seconds:.1f} s."
            f"{encoded}"
        )
    if not as_json:
        _say_left_out(corpus)
    if report.kept:
        say(
            f"Nothing was pruned: {counted(report.kept, 'document')}, more than a third, would "
            "have gone. If that is right, give --prune-all."
        )
    if rejected.count:
        say(f"{rejected.count:,} rejected: see {file}.")
    if rejected.count or report.kept:
        raise click.exceptions.Exit(REJECTED)


def _say_left_out(corpus: Any) -> None:
    """Say what of the folders was not read, and why."""
    if corpus.ignored:
        often = sorted(corpus.types.items(), key=lambda pair: -pair[1])[:TYPES]
        types = ", ".join(f"{count:,} {name}" for name, count in often)
        more = ", ..." if len(corpus.types) > TYPES else ""
        say(
            f"{counted(corpus.ignored, 'file')} of unknown format ignored: {types}{more} (name "
            "them to read them as text)."
        )
    if corpus.left_out:
        say(
            f"{counted(corpus.left_out, 'file or folder', 'files or folders')} left out by "
            ".gitignore (--no-gitignore), --exclude or --include."
        )
    if corpus.unfollowed:
        say(f"{counted(corpus.unfollowed, 'link')} out of the folders not followed (--follow).")


def _agreed(bar: tqdm[NoReturn], gone: int, total: int) -> bool:
    """Ask whoever sits at the terminal whether so many documents are to be deleted."""
    if not is_terminal(sys.stdin, sys.stderr) or is_json():
        return False
    bar.close()
    return click.confirm(
        f"{counted(gone, 'document')} of {total:,} are gone from the paths: delete them?", err=True
    )


def _local_name(location: str) -> str:
    """Return what files beside an index are called after: those of a cluster's lie here."""
    location = location.rstrip("/")
    return location.rpartition("/")[2] if "://" in location else str(Path(location).expanduser())


def _may_be_replaced(file: Path) -> bool:
    """Tell whether a file is not there, empty, or holds the rejects of an earlier run."""
    begins = b'{"place": '
    try:
        with file.open("rb") as stream:
            return stream.read(len(begins)) in (b"", begins)
    except OSError:  # what keeps it from being written is said then
        return True


class _Rejects:
    """Writes rejects as JSON lines; our own file of an earlier run goes if nothing is rejected."""

    def __init__(self, file: Path, ours: bool) -> None:
        self._file, self._ours, self.count = file, ours, 0
        self._stream: IO[str] | None = None
        self._one = threading.Lock()  # reading and indexing are two threads
        self._shown: set[str] = set()

    def __call__(self, reject: Reject) -> None:
        line = {"place": reject.place, "reason": reject.reason}
        with self._one:
            if self._stream is None:
                try:
                    self._stream = self._file.open("w", encoding="utf-8")
                except OSError as exc:
                    raise CorpusError(f"{self._file} cannot be written: {exc.strerror}.") from exc
            self._stream.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._stream.flush()
            self.count += 1
            self._show(reject)

    def _show(self, reject: Reject) -> None:
        """Say what is wrong at once, for the first of each of some files."""
        file = reject.place.rpartition("#")[0] or reject.place
        if file not in self._shown and len(self._shown) < SHOWN:
            self._shown.add(file)
            say_reject(reject)

    def __enter__(self) -> _Rejects:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if self._stream is not None:
            self._stream.close()
        elif kind is None and self._ours:
            self._file.unlink(missing_ok=True)


def _advance(run: Run, bar: tqdm[NoReturn], bytes_read: int, now: IndexReport) -> None:
    """Note and show how far a run is."""
    run.report = now
    rate = now.encoded_words / now.seconds if now.seconds else 0
    bar.set_description_str(f"{now.encoded_words:,} words, {rate:,.0f} words/s", refresh=False)
    show_done(bar, bytes_read, now)
