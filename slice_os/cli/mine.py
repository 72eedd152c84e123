"""The verb mine."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from slice_os.answers import mining_report
from slice_os.cli.log import progress_bar
from slice_os.cli.options import (
    index_options,
    json_option,
    judge_option,
    lines_option,
    record_options,
)
from slice_os.cli.output import REJECTED, as_cell, counted, echo_json, plain, shorten
from slice_os.encoders.judge import ENGLISH
from slice_os.engine.phrases import Sought
from slice_os.errors import QueryError, SliceOSError
from slice_os.options import MineOptions
from slice_os.types import Match


@click.command(
    "mine",
    epilog="""\b
Examples:
  slice-os mine phrases.txt --index demo.slice --min-degree 0.8 --output matches.csv
  slice-os mine "wants to cancel" "my card was stolen" --index demo.slice
  slice-os mine --phrase "wants to cancel" --not "does not want to cancel" --index demo.slice --nl
  slice-os mine phrases.txt --index demo.slice --judge my-judge --min-degree 0.6
  slice-os mine cancel.json --min-probability 0.7 --index demo.slice
  slice-os mine phrases.csv --per-document --top 20 --sort degree --index demo.slice
""",
)
@click.argument("given", nargs=-1, metavar="[FILE_OR_PHRASE]...")
@index_options
@click.option("--phrase", "phrases", multiple=True, help="A phrase; may be repeated.")
@click.option(
    "--not",
    "counter_examples",
    multiple=True,
    metavar="NAME=TEXT",
    help="A counter-example: a span nearer to it than to the phrases of that name is no match. "
    "NAME= may be left out if there is one name. May be repeated.",
)
@record_options(MineOptions)
@judge_option("english")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A .csv or .jsonl file for the matches; default: stdout.",
)
@json_option
@lines_option
def mine_command(
    given: tuple[str, ...],
    location: str,
    encoder: str | None,
    device: str,
    threads: int | None,
    judge: str | None,
    phrases: tuple[str, ...],
    counter_examples: tuple[str, ...],
    output: Path | None,
    as_json: bool,
    as_lines: bool,
    **options: Any,
) -> None:
    """Find every span that says one of the phrases; of those that overlap, the best.

    A file is what 'teach' has written, or holds a phrase a line, or is a .csv with the columns name
    and phrase, optionally not; what is no file, nor called like one, is a phrase. Rows of one name
    are phrases of which any matches; the column not holds counter-examples. In a phrases file
    @FILE is a taught phrase, of which --min-probability decides, and not --min-degree. A phrase may
    hold "exact words" and -word, as a query of 'search' does. - is stdin. Counts come last. A
    phrase of which the encoder knows no word is left out, with a warning; the exit code is then 3.
    """
    from slice_os import open as open_index
    from slice_os.engine.phrases import gather, is_phrase, read_phrases
    from slice_os.teaching.retrieval import add_taught, read_mixed

    named: dict[str, Sought] = {}
    taught: dict[str, Any] = {}

    def add(name: str, texts: Sought) -> None:
        known = named.get(name, Sought(()))
        examples = known.counter_examples + texts.counter_examples
        named[name] = Sought(known.phrases + texts.phrases, examples)

    for text in given:
        if is_phrase(text):
            phrases = (*phrases, text)
            continue
        of_file, taught_of_file = read_mixed(Path(text), read_phrases)
        if output and output.exists() and text != "-" and output.samefile(text):
            raise QueryError(f"{output} is what is mined for: write the matches to another file.")
        for name, texts in of_file.items():
            add(name, texts)
        add_taught(taught, taught_of_file)
    for text in phrases:
        add(text, Sought((text,)))
    if not named and not taught:
        raise QueryError("Nothing to mine for: give a file of phrases, or --phrase.")
    for example in counter_examples:
        name, text = _counter_example(example, named)
        named = gather(named, {name: text})
    if both := taught.keys() & named.keys():
        raise QueryError(
            f"A phrase and a taught phrase are called {both.pop()!r}: mine for them one by one, or "
            "give them names in a phrases file."
        )
    counts: Counter[str] = Counter(dict.fromkeys([*taught, *named], 0))
    collected: list[dict[str, Any]] = []
    unknown: list[str] = []
    with (
        open_index(
            location, encoder=encoder, device=device, threads=threads, judge=judge or ENGLISH
        ) as index,
        _matches_to(output, collected if as_json else None, as_lines) as write,
        progress_bar(1.0) as bar,
    ):
        for match in index.mine(
            {**taught, **named},
            on_progress=lambda done: bar.update(done - bar.n),
            on_unknown=unknown.append,
            **options,
        ):
            bar.set_description_str(f"{counts.total():,} matches", refresh=False)
            counts[match.name] += 1
            bar.clear()  # it may stand where the match is printed
            write(match)
    if as_json:
        report = mining_report(options["min_degree"], counts, unknown)
        matches = {} if output else {"matches": collected}
        echo_json({**report, "output": output and str(output), **matches})
    else:
        width = max(len(shorten(name, 60)) for name in counts)
        for name, count in counts.items():
            click.echo(f"{shorten(name, 60):<{width}}  {count:>8,}", err=output is None)
        where = f" in {output}" if output else ""
        click.echo(f"{counted(counts.total(), 'match', 'matches')}{where}.", err=True)
    if unknown:
        click.echo(
            f"{counted(len(unknown), 'phrase')} left out, of which the encoder knows no word: "
            f"{', '.join(shorten(name, 40) for name in unknown[:5])}"
            f"{', …' if len(unknown) > 5 else ''}.",
            err=True,
        )
        raise click.exceptions.Exit(REJECTED)


def _counter_example(example: str, named: Mapping[str, Sought]) -> tuple[str, str]:
    """Return the name and the text of a counter-example; the longest name that it begins with."""
    names = sorted((name for name in named if example.startswith(f"{name}=")), key=len)
    if names:
        return names[-1], example[len(names[-1]) + 1 :]
    if len(named) == 1:
        return next(iter(named)), example
    raise QueryError(
        f"The counter-example {example!r} does not say whose it is: write NAME=TEXT, NAME one of "
        f"{', '.join(map(repr, list(named)[:5]))}."
    )


@contextmanager
def _matches_to(
    output: Path | None, collected: list[dict[str, Any]] | None, as_lines: bool
) -> Iterator[Callable[[Match], None]]:
    """Give a function that writes a match; a file appears when it is complete, or interrupted."""
    if output is None:
        if collected is not None:
            yield lambda match: collected.append(match.to_dict())
        elif as_lines:
            yield lambda match: echo_json(match.to_dict(), indent=None)
        else:
            yield _echo_match
        return
    if output.suffix.lower() not in (".csv", ".jsonl"):
        raise QueryError(f"The output {output} must be called .csv or .jsonl.")
    part = output.with_name(output.name + ".part")
    try:
        with part.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
            if output.suffix.lower() == ".csv":
                table = csv.DictWriter(stream, [field.name for field in fields(Match)])
                table.writeheader()
                yield lambda match: table.writerow(
                    {name: as_cell(value) for name, value in match.to_dict().items()}
                )
            else:
                yield lambda match: _write_line(match, stream)
        part.replace(output)
    except KeyboardInterrupt:
        part.replace(output)
        click.echo(f"What was found until then is in {output}.", err=True)
        raise
    except OSError as exc:
        raise SliceOSError(f"{output} cannot be written: {exc.strerror}.") from exc
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _write_line(match: Match, stream: Any) -> None:
    """Write a match as a JSON line."""
    stream.write(json.dumps(match.to_dict(), ensure_ascii=False) + "\n")


def _echo_match(match: Match) -> None:
    shown = f"{match.degree:.3f}" if match.probability is None else f"p {match.probability:.2f}"
    degree = click.style(shown, fg="green", bold=True)
    place = f"{plain(match.document)}:{match.document_start}-{match.document_end}"
    place += f" {plain(match.speaker)}:" if match.speaker else ""
    name = match.name if match.phrase == match.name else f"{match.name} ({match.phrase})"
    click.echo(f"{degree}  {shorten(name, 40)}  {place}  {shorten(match.text, 100)}")
