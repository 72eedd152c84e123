"""The verbs pack and load."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from slice_os.cli.log import progress_bar, say, say_reject, share_bar, show_done
from slice_os.cli.options import (
    cluster_options,
    corpus_options,
    device_option,
    encoder_option,
    index_option,
    json_option,
    partition_option,
    passage_words_option,
    rate_option,
    threads_option,
)
from slice_os.cli.output import REJECTED, counted, echo_json


@click.command(
    "pack",
    epilog="""\b
Examples:
  slice-os pack corpus/ --output packed/
  slice-os pack s3://corpus --output /mnt/packed --partition 3/8
  slice-os pack s3://corpus --output /mnt/packed --ray auto --workers 32 --gpus 0.5
""",
)
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--output",
    "folder",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the Parquet files.",
)
@partition_option
@passage_words_option("The most words of a passage.")
@click.option(
    "--ray",
    "address",
    metavar="ADDRESS",
    help="Encode on the Ray cluster of this address, auto for the one that this machine is in, "
    "local for one of its own. All machines have to reach the paths and the folder.",
)
@click.option("--workers", type=click.IntRange(min=1), default=2, help="With --ray: that encode.")
@click.option("--gpus", type=click.FloatRange(min=0), default=0.0, help="With --ray: of a worker.")
@encoder_option
@device_option
@threads_option
@corpus_options
@rate_option
@json_option
def pack_command(
    paths: tuple[str, ...],
    folder: Path,
    reading: dict[str, Any],
    address: str | None,
    workers: int,
    gpus: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Encode files to Parquet, which 'slice-os load' writes to an index without an encoder.

    No index is needed, and runs side by side may write to one folder. A second run encodes only
    what changed. What cannot be read is skipped and named; the exit code is then 3.
    """
    from slice_os import pack, read

    if address is not None:
        if options["partition"] or options["max_rate"]:
            raise click.UsageError("With --ray there is no --partition and no --max-rate.")
        from slice_os.integrations.ray import pack as pack_on_ray

        pack = partial(pack_on_ray, address=address, workers=workers, gpus=gpus)
        del options["partition"], options["max_rate"], options["device"]
        options["cpus"] = options.pop("threads") or 1
    corpus = read(*paths, **reading, on_reject=say_reject)
    with progress_bar(corpus.bytes_total) as bar:
        try:
            report = pack(
                corpus,
                folder,
                on_reject=say_reject,
                on_progress=lambda now: show_done(bar, corpus.bytes_done, now),
                **options,
            )
        except KeyboardInterrupt:
            bar.close()
            say("Interrupted: complete documents are packed; run the command again to go on.")
            raise click.exceptions.Exit(130) from None
    if as_json:
        echo_json({"folder": str(folder), **report.to_dict()})
    else:
        click.echo(
            f"{folder}: {counted(report.documents, 'document')} packed, {report.unchanged:,} "
            f"unchanged in {report.seconds:.1f} s."
        )
    if report.rejected:
        raise click.exceptions.Exit(REJECTED)


@click.command(
    "load",
    epilog="""\b
Examples:
  slice-os load packed/ --index https://host:9200/calls --shards 3
  slice-os load packed/ --index calls.slice
""",
)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@index_option
@cluster_options
@rate_option
@json_option
def load_command(folder: Path, location: str, as_json: bool, **options: Any) -> None:
    """Write what 'slice-os pack' has encoded to an index; what is there is left as it is."""
    from slice_os import load

    try:
        with share_bar("documents") as tell:
            report = load(folder, location, on_progress=tell, on_reject=say_reject, **options)
    except KeyboardInterrupt:
        say("Interrupted: complete documents are in the index; run the command again to go on.")
        raise click.exceptions.Exit(130) from None
    if as_json:
        echo_json(report.to_dict())
    else:
        there = report.documents - report.loaded - report.rejected
        click.echo(
            f"{location}: {counted(report.loaded, 'document')} loaded, {there:,} there before."
        )
    if report.rejected:
        raise click.exceptions.Exit(REJECTED)
