"""Plots, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from slice_os.errors import EvaluationError, needs
from slice_os.files import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ENDINGS = (".png", ".svg", ".pdf")


def check_picture(path: str | Path) -> None:
    """Raise EvaluationError unless a plot can be written to `path`; called before the work."""
    path = Path(path)
    if path.suffix.lower() not in ENDINGS or not path.parent.is_dir():
        raise EvaluationError(
            f"{path} cannot be drawn: give a file that ends in {', '.join(ENDINGS)}, in a folder "
            "that exists."
        )
    _figure(1, 1)


def scatter(
    path: str | Path,
    across: Sequence[float],
    series: Mapping[str, Sequence[float]],
    x_label: str,
    y_label: str,
) -> None:
    """Draw each series against `across`, side by side, into .png, .svg or .pdf.

    Raises:
        EvaluationError: The file cannot be written, or its name has another ending.
        MissingExtraError: matplotlib is not installed.
    """
    columns = min(3, max(1, len(series)))
    rows = -(-len(series) // columns)
    figure = _figure(4 * columns, 3.2 * rows)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis, (name, values) in zip(axes, series.items(), strict=False):
        axis.scatter(across, values, s=6, alpha=0.4, linewidths=0)
        axis.set_title(name)
        axis.set_xlabel(x_label)
        axis.set_ylabel(y_label)
    for axis in axes[len(series) :]:
        axis.set_visible(False)
    _save(figure, path)


def curves(
    path: str | Path,
    across: Sequence[float],
    series: Mapping[str, Sequence[float]],
    x_label: str,
    threshold: float,
    interval: tuple[float, float],
) -> None:
    """Draw series of shares over `across`, with a threshold and the interval that it lies in.

    Raises:
        EvaluationError: The file cannot be written, or its name has another ending.
        MissingExtraError: matplotlib is not installed.
    """
    figure = _figure(6, 4)
    axis = figure.subplots()
    for name, values in series.items():
        axis.plot(across, values, label=name, drawstyle="steps-pre")
    axis.axvspan(*interval, alpha=0.15, color="gray")
    axis.axvline(threshold, color="gray", linestyle="--", label=f"{threshold:.3f}")
    axis.set_xlabel(x_label)
    axis.set_ylim(0, 1.02)
    axis.legend()
    _save(figure, path)


def _figure(width: float, height: float) -> Figure:
    with needs("Drawing", "evaluate"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, path: str | Path) -> None:
    path = Path(path)
    try:
        with whole(path) as partial:
            figure.savefig(partial)
    except (OSError, ValueError) as exc:
        raise EvaluationError(
            f"{path} cannot be drawn ({exc}): give a file that ends in .png, .svg or .pdf."
        ) from exc
