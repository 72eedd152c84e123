"""Topics as one page of HTML, which loads nothing, and as a phrases file for `mine`."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from slice_os.errors import CorpusError
from slice_os.files import write_whole

if TYPE_CHECKING:
    from slice_os.lab.topics.describing import Example, Topic
    from slice_os.lab.topics.modelling import TopicReport

WIDTH, HEIGHT, MARGIN = 900, 520, 60
LARGEST = 34
"""Radius of the circle of the largest topic; areas are as the numbers of passages."""
LETTER, LINE = 6.5, 14
"""What a label on the map takes, about: of width a character, of height."""
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em;
  color: #222; background: #fff }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2em } table { border-collapse: collapse }
td, th { padding: .2em .8em .2em 0; text-align: left; vertical-align: top }
td.n, th.n { text-align: right } small, .where { color: #666 } mark { background: #ffe27a }
blockquote { margin: .6em 0; padding-left: .8em; border-left: 3px solid #ddd }
blockquote { white-space: pre-line }
.where { white-space: normal; font-size: .85em } svg { width: 100%; height: auto }
circle { fill: #4c78a8; fill-opacity: .45; stroke: #2f5277 } a:hover circle { fill-opacity: .8 }
text { font-size: 12px; text-anchor: middle; fill: #222 }
"""


def write_page(report: TopicReport, file: str | Path) -> None:
    """Write topics as one page that loads nothing: a map, a table, phrases, marked passages.

    Raises:
        CorpusError: The file cannot be written.
    """
    _write(Path(file), page(report))


def write_phrases(report: TopicReport, file: str | Path) -> None:
    """Write the topics' phrases as a phrases file for `mine`: a .csv, a name a topic.

    Raises:
        CorpusError: The file is not called .csv, or cannot be written.
    """
    if Path(file).suffix.lower() != ".csv":
        raise CorpusError(f"The phrases file {file} must be called .csv: it has names and phrases.")
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["name", "phrase"])
    rows.writerows((topic.name, phrase.text) for topic in report.topics for phrase in topic.phrases)
    _write(Path(file), text.getvalue())


def _write(file: Path, text: str) -> None:
    try:
        write_whole(file, text)
    except OSError as exc:
        raise CorpusError(f"{file} cannot be written: {exc.strerror}.") from exc


def page(report: TopicReport) -> str:
    """Return the page."""
    topics = report.topics
    head = (
        f"{len(topics):,} topics of {report.passages:,} passages, {report.words:,} words, "
        f"{len(report.documents):,} documents; encoder {report.encoder}."
    )
    # Whatever a text holds, the page loads and runs nothing.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>Topics</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f"<h1>Topics</h1>\n<p>{escape(head)}</p>",
        _map(topics),
        _table(topics),
        *map(_topic, topics),
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _map(topics: Sequence[Topic]) -> str:
    """Return the map: near topics are alike, areas are numbers of passages.

    A label that would lie on that of a larger topic is left out: it is said when pointed at.
    """
    most = max(topic.passages for topic in topics)
    circles = []
    labelled: list[tuple[float, float, float]] = []
    for topic in topics:
        x = WIDTH / 2 + topic.place[0] * (WIDTH / 2 - MARGIN)
        y = HEIGHT / 2 + topic.place[1] * (HEIGHT / 2 - MARGIN)
        radius = max(LARGEST * (topic.passages / most) ** 0.5, 3)
        name = topic.phrases[0].text
        half = LETTER * len(name) / 2
        label = ""
        if all(abs(x - a) > half + b or abs(y - c) > LINE for a, c, b in labelled):
            labelled.append((x, y, half))
            label = f'<text x="{x:.1f}" y="{y + 4:.1f}">{escape(name)}</text>'
        circles.append(
            f'<a href="#topic-{topic.number}"><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
            f"<title>{escape(topic.name)}, {topic.passages:,} passages</title></circle>{label}</a>"
        )
    body = "\n".join(circles)
    about = "A map of the topics; near ones are alike, and larger ones have more passages."
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{about}">\n{body}\n</svg>\n'
        f"<p><small>{about} Two principal components of their directions.</small></p>"
    )


def _table(topics: Sequence[Topic]) -> str:
    rows = [
        f'<tr><td class="n"><a href="#topic-{topic.number}">{topic.number}</a></td>'
        f'<td class="n">{topic.passages:,}</td><td class="n">{100 * topic.share:.1f}</td>'
        f"<td>{escape(', '.join(phrase.text for phrase in topic.phrases[:5]))}</td></tr>"
        for topic in topics
    ]
    return (
        '<table>\n<tr><th class="n">topic</th><th class="n">passages</th>'
        '<th class="n">share, %</th><th>phrases</th></tr>\n' + "\n".join(rows) + "\n</table>"
    )


def _topic(topic: Topic) -> str:
    phrases = ", ".join(
        f"{escape(item.text)} <small>{item.count:,}</small>" for item in topic.phrases
    )
    sentences = "\n".join(f"<li>{escape(item)}</li>" for item in topic.sentences)
    return "\n".join(
        [
            f'<h2 id="topic-{topic.number}">{escape(topic.name)}</h2>',
            f"<p>{topic.passages:,} passages, {100 * topic.share:.1f} % of the text.</p>",
            f"<p>{phrases}</p>",
            f"<ul>\n{sentences}\n</ul>",
            *map(_example, topic.examples),
        ]
    )


def _example(example: Example) -> str:
    parts, at = [], 0
    for start, end in example.marks:
        parts.append(escape(example.text[at:start]))
        parts.append(f"<mark>{escape(example.text[start:end])}</mark>")
        at = end
    body = "".join(parts) + escape(example.text[at:])
    where = f"{example.document}, characters {example.start} to {example.end}"
    return f'<blockquote>{body}<br><span class="where">{escape(where)}</span></blockquote>'
