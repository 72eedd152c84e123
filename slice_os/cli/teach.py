"""The verb teach."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slice_os.cli.options import index_options, json_option
from slice_os.cli.output import counted, echo_json, is_terminal, plain
from slice_os.errors import QueryError, TeachingError

if TYPE_CHECKING:
    from slice_os.teaching.record import Estimate, Label
    from slice_os.teaching.session import Question, Session

KEYS = "y: yes, n: no, s: skip, b: back, m: mark the right words, q: quit"


@click.command(
    "teach",
    epilog="""\b
Examples:
  slice-os teach "the customer wants to cancel" --index demo.slice --output cancel.json
  slice-os mine cancel.json --index demo.slice
  slice-os calibrate phrases.txt --draw 60 --output sample.csv --index demo.slice
  slice-os teach topics.csv --name "credit card" --index demo.slice --output card.json
  slice-os teach "wants to cancel" --labels sample.csv --index demo.slice --output cancel.json
  slice-os teach --from cancel.json --index new.slice --output cancel-new.json
""",
)
@click.argument("phrases", nargs=-1)
@index_options
@click.option(
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The .json file of the taught phrase, written after every answer. Where it exists, it is "
    "gone on with.",
)
@click.option("--name", help="What its matches are called.  [default: the first phrase]")
@click.option(
    "--labels",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Teach with the labels of a .csv, .tsv, .jsonl or .json file, and ask nothing: what "
    "'calibrate --draw' writes, or an export of Argilla, Label Studio or Prodigy.",
)
@click.option(
    "--from",
    "former",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Teach anew with the phrases and labels of a taught phrase, as after another encoder.",
)
@click.option(
    "--round",
    "count",
    type=click.IntRange(1, 50),
    default=5,
    show_default=True,
    help="Questions before it learns from the answers.",
)
@click.option("--seed", default=0, show_default=True, help="Decides what is asked at random.")
@json_option
def teach_command(
    phrases: tuple[str, ...],
    location: str,
    encoder: str | None,
    device: str,
    threads: int | None,
    output: Path,
    name: str | None,
    labels: Path | None,
    former: Path | None,
    count: int,
    seed: int,
    as_json: bool,
) -> None:
    """Teach a phrase with a few answers: yes, these words say it, or no.

    PHRASES say in words what is looked for; a phrases file, as for 'mine', gives those of one name
    (--name, if it has several: a topic of 'topics --phrases', say). What is shown is chosen: some
    of the best, some that are doubtful, some at random. Every answer is kept in --output at once;
    after each round a line says how many there are, and what precision and recall they let expect.
    q or Ctrl-C ends it, the same command goes on. 'mine', and 'search --taught', take the file.
    """
    from slice_os import open as open_index
    from slice_os.teaching.labels import read_labels

    if not phrases and not former and not output.exists():
        raise QueryError("There is no phrase to teach: give one, or --from.")
    given: list[Label] | None = read_labels(labels, name) if labels else None
    asks = given is None and former is None
    if asks and not _has_terminal():
        raise TeachingError(
            "There is no terminal to ask in: give labels in a file with --labels, or --from."
        )
    texts, name = _phrases(phrases, name)
    with open_index(location, encoder=encoder, device=device, threads=threads) as index:
        session = index.teach(
            texts, name=name, output=output, labels=given, taught=former, seed=seed
        )
        for sentence in session.stale:
            click.echo(sentence, err=True)
        if asks:
            try:
                _loop(session, count)
            finally:
                if session.pending:
                    session.learn()
        session.save()
    estimate = session.estimate()
    if as_json:
        echo_json({
            "output": str(output),
            "labels": len(session.labels),
            "stale": session.stale,
            "estimate": estimate and estimate.to_dict(),
        })  # fmt: skip
        return
    click.echo(_line(session, estimate))
    click.echo(f"{output} holds {session.name!r} with {counted(len(session.labels), 'label')}.")


def _phrases(given: Sequence[str], name: str | None) -> tuple[list[str], str | None]:
    """Return the phrases that are given, in words or by files, and what they are called."""
    from slice_os.engine.phrases import gather, is_phrase, read_phrases

    files = [text for text in given if not is_phrase(text)]
    texts = [text for text in given if text not in files]
    named = {
        called: sought.phrases
        for file in files
        for called, sought in gather(read_phrases(Path(file))).items()
    }
    if not named:
        return texts, name
    chosen = name if name in named or len(named) > 1 else next(iter(named))
    if chosen not in named:
        raise QueryError(
            f"The phrases have {len(named)} names ({', '.join(list(named)[:5])}): say which is "
            "taught with --name."
        )
    return [*texts, *named[chosen]], name or chosen


def _has_terminal() -> bool:
    return is_terminal(sys.stdin)


def _loop(session: Session, count: int) -> None:
    """Ask until there is nothing left, or nobody answers any more."""
    click.echo(f"{KEYS}.", err=True)
    while questions := session.ask(count):
        at = 0
        while at < len(questions):
            key = _ask(questions[at])
            if key == "q":
                return
            if key == "b":
                at = max(at - 1, 0)
                session.back(questions[at])
                continue
            if not _answer(session, questions[at], key):
                continue
            at += 1
        click.echo(_line(session, session.learn()))
    click.echo("All that was found has been answered.", err=True)


def _ask(question: Question) -> str:
    words = click.style(plain(question.text), fg="green", bold=True)
    sentence = " ".join(f"{plain(question.before)}«{words}»{plain(question.after)}".split())
    click.echo(f"\n{question.probability:.2f}  {plain(question.document)}\n{sentence}")
    click.echo("y/n/s/b/m/q ", nl=False)
    while True:
        try:
            key = click.getchar().lower()
        except (EOFError, KeyboardInterrupt):
            key = "q"
        if key in ("\x03", "\x04", ""):
            key = "q"
        if key in "ynsbmq":
            click.echo(key)
            return key


def _answer(session: Session, question: Question, key: str) -> bool:
    """Take an answer; False if it was none after all."""
    if key == "s":
        session.skip(question)
        return True
    if key != "m":
        session.answer(question, key == "y")
        return True
    words = str(click.prompt("The words that say it", default="", show_default=False)).strip()
    shown = f"{question.before}{question.text}{question.after}"
    at = _nearest(shown, words, len(question.before))
    if at < 0:
        click.echo("These words are not in the sentence: copy some of it.", err=True)
        return False
    start = question.start - len(question.before) + at
    try:
        session.answer(question, True, (start, start + len(words)))
    except TeachingError as exc:
        click.echo(str(exc), err=True)
        return False
    return True


def _nearest(text: str, words: str, at: int) -> int:
    """Return where some words stand nearest to `at`; -1 if they do not, or are none."""
    if not words:
        return -1
    places: list[int] = []
    begin = text.lower().find(words.lower())
    while begin >= 0:
        places.append(begin)
        begin = text.lower().find(words.lower(), begin + 1)
    return min(places, key=lambda place: abs(place - at), default=-1)


def _line(session: Session, estimate: Estimate | None) -> str:
    """Return what is known of the phrase, in one line."""
    if estimate is None:
        return f"{counted(len(session.labels), 'label')}: too few to tell anything yet."

    def share(value: float, interval: Sequence[float]) -> str:
        return f"{value:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"

    if estimate.precision_interval == (0.0, 1.0):
        return (
            f"{counted(estimate.labels, 'label')}, {estimate.right} yes; nothing has a probability "
            f"of {estimate.probability:g} yet"
        )
    degree = session.taught().degree(estimate.probability)
    parts: list[Any] = [
        f"{counted(estimate.labels, 'label')}, {estimate.right} yes",
        f"precision {share(estimate.precision, estimate.precision_interval)}",
        f"recall {share(estimate.recall, estimate.recall_interval)}",
        f"at probability {estimate.probability:g} (degree {min(degree, 1):.3f})",
    ]
    if estimate.fallback:
        parts.append("the phrase alone ranks as long as no answer says yes")
    return "; ".join(parts)
