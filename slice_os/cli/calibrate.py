"""The verb calibrate."""

from __future__ import annotations

from pathlib import Path

import click

from slice_os.calibration.gold import LEAST
from slice_os.cli.log import share_bar
from slice_os.cli.options import Decorator, an_index, encoder_option, json_option
from slice_os.cli.output import counted, echo_columns, echo_json
from slice_os.errors import EvaluationError

degree_option: Decorator = click.option(
    "--min-degree",
    type=click.FloatRange(0, 1),
    default=LEAST,
    show_default=True,
    help="The minimum degree of a match.",
)
rescore_option: Decorator = click.option(
    "--rescore/--no-rescore",
    default=True,
    show_default=True,
    help="As 'mine' does: encode what may be a match alone.",
)


@click.command(
    "calibrate",
    epilog="""\b
Examples:
  slice-os calibrate gold.jsonl --precision 0.9 --index demo.slice
  slice-os calibrate phrases.txt --draw 100 --output sample.csv --index demo.slice
  slice-os calibrate sample.csv --precision 0.9 --plot sample.png     # labelled by you
""",
)
@click.argument("file", type=click.Path(path_type=Path))
@an_index(metavar="LOCATION", help="The index that is mined, if one is.")
@encoder_option
@click.option("--precision", type=click.FloatRange(0, 1, min_open=True), help="Target precision.")
@click.option("--recall", type=click.FloatRange(0, 1, min_open=True), help="Target recall.")
@click.option("--draw", type=click.IntRange(min=1), help="Draw so many matches to label.")
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="The .csv file for --draw."
)
@degree_option
@rescore_option
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Plot precision and recall.",
)
@json_option
def calibrate_command(
    file: Path,
    location: str | None,
    encoder: str | None,
    precision: float | None,
    recall: float | None,
    draw: int | None,
    output: Path | None,
    min_degree: float,
    rescore: bool,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Find the degree that reaches a precision or a recall on your own texts.

    FILE is either marked spans (.jsonl: query, document, start, end; with --index), or a .csv drawn
    by --draw from a file of phrases, in which you wrote yes or no into the column correct; its
    column sentence shows each match where it stands.
    """
    from slice_os import open as open_index
    from slice_os.calibration.labels import draw_sample, is_labelled, labels_from_gold, read_labels
    from slice_os.calibration.plots import check_picture
    from slice_os.calibration.thresholds import calibrate as calibrate_labels
    from slice_os.calibration.thresholds import check_wanted, plot_curve
    from slice_os.engine.phrases import read_phrases

    if draw:
        if output is None or location is None:
            raise EvaluationError("A sample needs --output and --index.")
        with open_index(location, encoder=encoder) as index, share_bar("mining") as tell:
            phrases = read_phrases(file)
            matches = index.mine(phrases, min_degree=min_degree, rescore=rescore, on_progress=tell)
            count = draw_sample(matches, output, draw, index=index)
        click.echo(
            f"{counted(count, 'match', 'matches')} in {output}: write yes or no "
            "into the column correct, then run slice-os calibrate on it."
        )
        return
    check_wanted(precision, recall)
    if plot:
        check_picture(plot)
    if location is not None and not is_labelled(file):
        with open_index(location, encoder=encoder) as index, share_bar("mining") as tell:
            labels = labels_from_gold(file, index, min_degree, rescore=rescore, progress=tell)
        warn_of_missing(labels.missing)
    else:
        labels = read_labels(file)
    calibration = calibrate_labels(labels, precision=precision, recall=recall)
    if plot:
        plot_curve(labels, plot, calibration)
    if as_json:
        echo_json(calibration.to_dict())
        return
    rows = [
        ("degree", calibration.degree, calibration.degree_interval),
        ("precision", calibration.precision, calibration.precision_interval),
        ("recall", calibration.recall, calibration.recall_interval),
    ]
    click.echo(f"From {counted(calibration.labels, 'labelled match', 'labelled matches')}:")
    echo_columns(
        ["", "value", "95 % interval"],
        [
            [name, f"{value:.3f}", f"{interval[0]:.3f} to {interval[1]:.3f}"]
            for name, value, interval in rows
        ],
    )


def warn_of_missing(missing: int) -> None:
    """Say how many documents of a file the index does not hold."""
    if missing:
        click.echo(
            f"The index does not hold {counted(missing, 'document')} of the file: what is marked "
            "there counts as not found.",
            err=True,
        )
