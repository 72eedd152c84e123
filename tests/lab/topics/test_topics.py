"""Topics from texts to a table, a page and a phrases file; and what they cannot be made of."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import slice_os
from slice_os.cli.main import main
from slice_os.engine.phrases import read_phrases
from slice_os.errors import SliceOSError, TrainingError
from slice_os.lab.topics import modelling, write_page, write_phrases
from slice_os.lab.topics.describing import first_items, ratings
from slice_os.lab.topics.learning import Learning, TopicMatrix
from slice_os.lab.topics.vocabulary import (
    Prepared,
    is_content,
    mine_vocabulary,
    occurrences,
    read_texts,
)
from slice_os.types import Passage

EXAMPLES = Path(__file__).parents[3] / "examples"


def find(corpus, vectors, k=3, **more):
    return slice_os.topics(
        slice_os.read(corpus, id_global=True), k, encoder=vectors, least=3, **more
    )


def words_of(corpus, theme):
    said = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    return {
        word for one in said if one["theme"] == theme for word in re.findall(r"\w+", one["text"])
    }


def plain(report):
    return {**report.to_dict(), "seconds": 0}


def run(*arguments, code=0):
    done = CliRunner().invoke(main, ["topics", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def test_topics_are_the_themes(corpus, vectors):
    report = find(corpus, vectors)
    assert (report.passages, len(report.topics), report.k) == (90, 3, 3)
    assert sum(topic.passages for topic in report.topics) == 90
    assert sum(topic.share for topic in report.topics) == pytest.approx(1)
    said = {document.split("-")[0]: number for document, number in report.documents.items()}
    assert sorted(said.values()) == [1, 2, 3]
    for document, number in report.documents.items():
        assert said[document.split("-")[0]] == number
    for theme, number in said.items():
        topic = report.topics[number - 1]
        assert {word for one in topic.phrases for word in one.text.split()} <= words_of(
            corpus, theme
        )
        assert all(one.document.startswith(theme) for one in topic.examples)
        assert len({one.document for one in topic.examples}) == 3
        assert all(-1 <= x <= 1 for x in topic.place)


def test_examples_are_marked_within_the_text(corpus, vectors):
    for topic in find(corpus, vectors).topics:
        for one in topic.examples:
            assert one.marks
            for start, end in one.marks:
                assert one.text[start:end].strip() == one.text[start:end] != ""
                assert "." not in one.text[start : end - 1]


def test_what_differs_is_said_once_unless_asked(corpus, vectors):
    for topic in find(corpus, vectors).topics:
        words = [frozenset(filter(is_content, one.text.split())) for one in topic.phrases]
        assert all(2 * len(a & b) < len(a | b) for a, b in itertools.combinations(words, 2))
    for topic in find(corpus, vectors, nearest=True).topics:
        cosines = [one.cosine for one in topic.phrases]
        assert cosines == sorted(cosines, reverse=True)


def test_what_a_topics_own_passages_say_describes_it():
    texts = ["green tea and cake", "green tea", "tea and bread", "old ships and bread", "ships"] * 9
    vocabulary = mine_vocabulary(read_texts(texts))
    held = [*occurrences(read_texts(texts), vocabulary.items).values()]
    passages = [Passage(str(k), k, 0, len(text), text) for k, text in enumerate(texts)]
    nothing = np.zeros((1, 1), np.float32)
    found = Prepared(passages, read_texts(texts), vocabulary, nothing, nothing, held)
    topics_of = np.array([0, 0, 0, 1, 1] * 9)
    cosines = np.zeros((len(vocabulary), 2), np.float32)
    rated = ratings(found, topics_of, cosines)
    said = {
        item: [sum(text.count(item) for text in texts[k::5]) for k in range(5)]
        for item in vocabulary.items
    }
    total = sum(map(sum, said.values()))
    for item, row in zip(vocabulary.items, rated, strict=True):
        everywhere = sum(said[item])
        size = len(item.replace(" and ", " ").split()) ** 0.5
        for score, rows, words in zip(row, (slice(0, 3), slice(3, 5)), (9, 5), strict=True):
            more = max(sum(said[item][rows]) - everywhere * words / 14, 0)
            expected = size * more * np.log(1 + total / 2 / everywhere)
            assert score == pytest.approx(expected, rel=1e-5)
    names = [vocabulary.items[first_items(vocabulary, column, 1)[0]] for column in rated.T]
    assert names == ["green tea", "old ships and bread"]
    # Of one topic, and of one that says nothing of the vocabulary, the nearest describe it.
    cosines = np.arange(len(vocabulary), dtype=np.float32)[:, None] / len(vocabulary)
    one = ratings(found, np.zeros(45, int), cosines)[:, 0]
    assert first_items(vocabulary, one, 1) == [len(vocabulary) - 1]


def test_words_of_every_topic_describe_none(corpus, vectors):
    said = [json.loads(line)["text"] for line in corpus.read_text(encoding="utf-8").splitlines()]
    documents = [
        slice_os.Document(str(k), f"{text} Die Welt und der Rest. Die Welt und die Welt.")
        for k, text in enumerate(said)
    ]
    for topic in slice_os.topics(documents, 3, encoder=vectors).topics:
        assert not {"der", "und", "die", "welt"} & set(topic.phrases[0].text.split())


def test_random_rows_keep_their_numbers(corpus, vectors, tmp_path):
    report = find(corpus, vectors, k=9, random_rows=True)
    numbers = [topic.number for topic in report.topics]
    assert len(numbers) < 9  # some are of no passage
    assert set(numbers) <= set(range(1, 10))
    assert numbers != [*range(1, len(numbers) + 1)]
    sizes = [topic.passages for topic in report.topics]
    assert sizes == sorted(sizes, reverse=True)
    assert set(report.documents.values()) <= set(numbers)
    # The other half of the documents: what says the same has the same number.
    lines = corpus.read_text(encoding="utf-8").splitlines(keepends=True)
    themes = []
    for half in (lines[:45], lines[45:]):
        (tmp_path / "half.jsonl").write_text("".join(half), encoding="utf-8")
        documents = find(tmp_path / "half.jsonl", vectors, k=9, random_rows=True).documents
        themes.append({name.split("-")[0].split("#")[-1]: n for name, n in documents.items()})
    assert themes[0] == themes[1]


def test_a_seed_decides(corpus, vectors):
    first = find(corpus, vectors, epochs=2)
    assert plain(find(corpus, vectors, epochs=2)) == plain(first)


@pytest.mark.parametrize("moment", ["phrases", "passages", "topics"])
def test_an_interrupted_run_goes_on_where_it_was(moment, corpus, vectors, tmp_path, monkeypatch):
    monkeypatch.setattr(modelling, "BLOCK", 20)
    monkeypatch.setattr(modelling, "SECONDS", -1)
    seen = []

    def interrupt(name, done, count):
        seen.append((name, done))
        if name == moment and done > count / 3:
            raise KeyboardInterrupt

    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        find(corpus, vectors, output=folder, epochs=9, progress=interrupt)
    last = seen[-1]
    assert {path.name for path in folder.iterdir()} == {"run.json", "state.pt"}
    again = []
    report = find(
        corpus, vectors, output=folder, epochs=9, progress=lambda *one: again.append(one[:2])
    )
    assert again[0][0] == moment
    assert again[0][1] > last[1] if moment != "topics" else again[0][1] > 90
    assert plain(report) == plain(find(corpus, vectors, epochs=9))


def test_another_number_of_topics_needs_no_encoding(corpus, vectors, tmp_path):
    find(corpus, vectors, output=tmp_path / "run")
    again = []
    report = find(
        corpus, vectors, k=4, output=tmp_path / "run", progress=lambda *one: again.append(one[0])
    )
    assert set(again) == {"topics"}
    assert report.k == 4


def test_the_verb_prints_and_writes(corpus, vectors, tmp_path):
    page, phrases = tmp_path / "topics.html", tmp_path / "topics.csv"
    more = ("--html", page, "--phrases", phrases, "--least", 3, "-k", 3)
    done = run(corpus, "--encoder", vectors, *more)
    assert len(done.stdout.splitlines()) == 4
    assert re.search(r"3 topics of 90 passages, [\d,]+ words", done.stderr)
    found = json.loads(run(corpus, "--encoder", vectors, "-k", 3, "--least", 3, "--json").stdout)
    assert found["documents"]["corpus.jsonl#garden-0"] in (1, 2, 3)
    sought = read_phrases(phrases)
    assert [one.phrases for one in sought.values()] == [
        tuple(phrase["text"] for phrase in topic["phrases"]) for topic in found["topics"]
    ]


def test_the_page_loads_nothing_and_escapes_everything(vectors, tmp_path):
    attack = '</style><script>alert("roses & soil")</script><img src=x onerror=alert(1)>'
    documents = [
        slice_os.Document(f"<b>{k}</b>", f"{attack} {word} tulips soil{k % 7}. {word}.")
        for k, word in enumerate(["roses", "oven", "ship", "anchor", "butter"] * 8)
    ]
    report = slice_os.topics(documents, 2, encoder=vectors, least=3)
    write_page(report, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert "<mark>" in page
    assert page.count("<circle") == len(report.topics)
    assert "default-src 'none'" in page
    seen = Seen()
    seen.feed(page)
    assert {"svg", "circle", "mark", "blockquote"} < seen.tags
    assert {name for name, _ in seen.said} <= {"href", "id", "class"} | SHAPES
    assert all(value.startswith("#topic-") for name, value in seen.said if name == "href")


SHAPES = {
    *("lang", "charset", "http-equiv", "content", "name", "viewbox", "role", "aria-label"),
    *("cx", "cy", "r", "x", "y"),
}


class Seen(HTMLParser):
    """What a browser sees: tags, and their attributes."""

    def __init__(self):
        super().__init__()
        self.tags, self.said = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.said += attrs


def test_what_is_written_is_whole_or_not_there(corpus, vectors, tmp_path):
    report = find(corpus, vectors, epochs=1)
    (tmp_path / "page").mkdir()
    for write, name in ((write_page, "page"), (write_phrases, "no/topics.csv")):
        with pytest.raises(SliceOSError, match="cannot be written"):
            write(report, tmp_path / name)
    assert not list(tmp_path.glob("**/.partial*"))


def rows(path, texts):
    path.write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            ["roses", "oven", "ship", "roses oven"] * 6,
            "4 different passages are too few for 3 topi",
        ),
        (["roses and soil"] * 20, "There are 1 different passages"),
        ([f"word{chr(k)}" for k in range(97, 120)], "No word of the text, function words aside"),
        (["zebra stripes"] * 20, "The encoder words knows no word of the text"),
        ([" "] * 3, "There is no text to find topics in"),
    ],
)
def test_corpora_that_hold_too_little(texts, message, vectors, tmp_path):
    file = rows(tmp_path / "some.jsonl", texts)
    done = run(file, "--encoder", vectors, "-k", 3, code=1)
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert message in said
    assert said.endswith(".")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--html", "no/topics.html"], "there is no such folder"),
        (["--phrases", "topics.txt"], "must be called .csv"),
        (["--output", "full"], "is not empty and holds no run"),
        (["--encoder", "none"], "There is no encoder at none"),
    ],
)
def test_what_is_asked_for_cannot_be(more, message, corpus, vectors, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    done = run(corpus, "--encoder", vectors, "-k", 3, "--least", 3, *more, code=1)
    assert message in done.stderr.splitlines()[-1]
    with pytest.raises(TrainingError, match="1 topics"):
        find(corpus, vectors, k=1)


def test_a_run_is_of_one_corpus_and_encoder(corpus, vectors, tmp_path):
    folder = tmp_path / "run"
    find(corpus, vectors, output=folder, epochs=1)
    shorter = tmp_path / "shorter.txt"
    lines = [" ".join(line.split(" ")[:-4]) for line in vectors.read_text().splitlines()]
    shorter.write_text("\n".join(lines))
    with pytest.raises(TrainingError, match=r"another recipe or other data \(encoder"):
        find(corpus, shorter, output=folder)
    other = rows(tmp_path / "other.jsonl", ["roses and soil", "oven and flour"] * 9)
    with pytest.raises(TrainingError, match=r"other data \(texts"):
        find(other, vectors, output=folder, k=2)
    state = folder / "state.pt"
    state.write_bytes(state.read_bytes()[:-100])
    with pytest.raises(TrainingError, match="remove it to begin the run again"):
        find(corpus, vectors, output=folder)


def test_what_cannot_be_read_is_said_and_the_exit_code_is_3(corpus, vectors):
    with corpus.open("a", encoding="utf-8") as file:
        file.write('\n{"text": ""}\n' * 7)
    done = run(corpus, "--encoder", vectors, "-k", 3, "--least", 3, code=3)
    assert done.stderr.count("Rejected: ") == 5
    assert "3 topics" in done.stderr


WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Missing())
from slice_os.cli import main
main()
"""


@pytest.mark.parametrize(
    ("verb", "extras"), [(["topics"], "train"), (["evaluate", "topics"], "train,ranking")]
)
def test_without_torch_the_pip_line_is_named(corpus, verb, extras):
    # In a process of its own: here others have imported what the verb imports.
    command = [sys.executable, "-c", WITHOUT_TORCH, *verb, str(corpus)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"pip install 'slice-os[{extras}]'" in done.stderr


def test_the_loss_is_as_written():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12, 5)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    wanted = Learning(k=2, batch=12, epochs=1, centred=False, orthogonality=0.3)
    matrix = TopicMatrix(wanted, x)
    R = matrix.rows
    p = np.exp(wanted.scale * x @ R.T)
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(matrix.shares(), p, rtol=1e-4)
    z = x[rng.integers(0, 12, (12, 5))]
    r = p @ R
    hinges = np.maximum(0, 1 - (r * x).sum(axis=1)[:, None] + np.einsum("nd,nmd->nm", r, z))
    loss = hinges.sum(axis=1).mean() + 0.3 * ((R @ R.T - np.eye(2)) ** 2).sum()
    import torch

    found = matrix._loss(torch.from_numpy(x), torch.from_numpy(z))
    assert found.item() == pytest.approx(loss, rel=1e-4)
    matrix.learn(lambda done: None)
    assert matrix.epoch == 1
    assert not np.allclose(matrix.rows, R)


def test_rows_begin_as_passages_that_lie_apart():
    rng = np.random.default_rng(0)
    corners = np.eye(4, dtype=np.float32)[np.arange(40) % 4] * 9
    x = corners + 0.1 * rng.standard_normal((40, 4)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for seed in range(5):
        rows = TopicMatrix(Learning(k=4, seed=seed, centred=False), x).rows
        assert sorted(rows.argmax(axis=1).tolist()) == [0, 1, 2, 3]


def test_the_examples_with_the_encoder_inside():
    corpus = slice_os.read(EXAMPLES / "conversations")
    report = slice_os.topics(corpus, 5, threads=1)
    domains = {}
    for document, number in report.documents.items():
        domains.setdefault(number, []).append(document.split("-")[0])
    right = sum(max(map(some.count, some)) for some in domains.values())
    assert right / len(report.documents) > 0.6
    assert report.encoder == "slice-english-v2"
