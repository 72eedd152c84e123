"""`slice-os evaluate context`: every step against a naive second computation."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import pytest
import scipy

import slice_os
from slice_os.encoders.info import DEFAULT_FOLDER
from slice_os.errors import EncoderError, EvaluationError
from slice_os.exporters.graph import sentences
from slice_os.lab.evaluate import evaluate_context, plot_context
from slice_os.lab.evaluate.context import read_context
from slice_os.lab.evaluate.scorers import JUDGED, SCORERS, find_words
from slice_os.lab.evaluate.significance import compare
from slice_os.spans import fit_window, length_window
from slice_os.text import count_words, phrasing
from slice_os.text.normal_form import plain
from support.verbs import run

DEFAULT = str(DEFAULT_FOLDER)
HEADER = ["", "line", "paraphrase", "passage", "goldsim"]
PAIRS = [
    ("the customer wants to cancel", "they would like to end the contract", 4.5),
    ("a café in the old town", "a small café downtown", 3.8),
    ("the parcel never arrived", "my delivery is lost", 4.0),
    ("how do I reset my password", "the weather was lovely", 0.2),
    ("she plays the violin", "he reads a newspaper", 0.8),
    ("the invoice is wrong", "I was charged too much", 3.5),
]


def rows():
    fillers = [" ".join(text.split()[:14]).rstrip(".,") for text in sentences()[:12]]
    for k, (query, target, gold) in enumerate(PAIRS):
        passage = f"{fillers[k]}. We said that {target}, and then {fillers[-k - 1]}."
        yield [k, query, target, passage, gold]


@pytest.fixture
def file(tmp_path):
    def write(name="pairs.csv", encoding="cp1252", header=HEADER, more=(), delimiter=","):
        with (tmp_path / name).open("w", encoding=encoding, newline="") as stream:
            out = csv.writer(stream, delimiter=delimiter)
            out.writerow(header)
            out.writerows([*rows(), *more])
        return tmp_path / name

    return write


def shown_cosine(query, in_context, by_words):
    """Return the formula of slice_os.spans.selection."""
    part = min(max((len(query.split()) - 4) / 3, 0), 1)
    share, offset = 0.9 - 0.4 * part, 0.2 + 0.1 * part
    return by_words + share * max(0, offset + (1 - offset) * in_context - by_words)


def naive(encoder, query, target, passage):
    """Return every scorer's score by the plainest means."""

    def cosine(one, other):
        return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))

    def alone(text):
        return encoder.encode([text])[0]

    (words,) = encoder.encode_words([passage])
    asked = alone(query)
    scores, texts = {}, {}
    for i in range(len(words)):
        for j in range(i + 1, min(i + 20, len(words)) + 1):
            scores[i, j] = cosine(words.vectors[i:j].sum(axis=0), asked)
            texts[i, j] = passage[words.starts[i] : words.ends[j - 1]]
    window = fit_window(length_window(count_words(query)), len(words))
    said = phrasing(passage, words.starts, words.ends, 20)
    ours = words.vectors @ encoder.head.context
    ends = np.cumsum(words.counts)
    for k, (count, end) in enumerate(zip(words.counts, ends, strict=True)):
        own = words.pieces[end - count : end]
        ours[k] += (encoder.head.codes[own] * encoder.head.scales[own, None]).sum(axis=0)
    degrees = {}
    for i, j in scores:
        sentence = j - i < window.start and said.sentences[j - i - 1, i]
        if j - i in window or sentence:
            head = cosine(ours[i:j].sum(axis=0), asked)
            degrees[i, j] = shown_cosine(query, scores[i, j], head)

    def preference(span):
        i, j = span
        return degrees[span] - float((said.costs + said.loose)[j - i - 1, i])

    best = max(degrees, key=preference)
    rescored = shown_cosine(
        query, scores[best], cosine(alone(plain(texts[best])), alone(plain(query)))
    )
    start = passage.index(target)
    i, j = next(
        (i, j)
        for i, j in scores
        if words.starts[i] <= start < words.ends[i]
        and words.starts[j - 1] < start + len(target) <= words.ends[j - 1]
    )
    (asked_tokens,), (tokens,) = (list(encoder.encode_tokens([one])) for one in (query, passage))
    assert len(tokens) > len(words)
    np.testing.assert_allclose(tokens.vectors.sum(0), words.vectors.sum(0), atol=1e-4)
    ends = np.concatenate([asked_tokens.vectors[0], asked_tokens.vectors[-1]])
    own = [np.flatnonzero(tokens.starts == start) for start in words.starts]
    return {
        "full context": cosine(alone(passage), asked),
        "start and end": max(
            cosine(
                np.concatenate([tokens.vectors[own[i][0]], tokens.vectors[own[j - 1][-1]]]), ends
            )
            for i, j in scores
        ),
        "single pass": max(scores.values()),
        "window": max(degrees.values()),
        "rescored": (1 + rescored) / 2,
        "n-grams": max(cosine(alone(text), asked) for text in texts.values()),
        "target in context": scores[i, j],
        "target alone": cosine(alone(target), asked),
    }


def test_every_set_up_agrees_with_a_naive_computation(file):
    seen = []
    report = evaluate_context(
        file(),
        scorers=[*{*SCORERS} - {JUDGED}],
        progress=lambda *one: seen.append(one),
        against="window",
    )
    found = {one.name: one for one in report.scorers}
    assert found.keys() == SCORERS.keys() - {JUDGED}
    with slice_os.load_encoder() as encoder:
        for k, query, target, passage, gold in rows():
            assert report.gold[k] == pytest.approx(gold / 5)
            if k % 4:  # the plainest means encode thousands of texts
                continue
            for name, value in naive(encoder, query, target, passage).items():
                near = 2e-3 if name in ("window", "rescored") else 2e-5  # their words are 8 bits
                assert found[name].scores[k] == pytest.approx(value, abs=near), name
    for one in report.scorers:
        assert one.correlation.pearson == scipy.stats.pearsonr(one.scores, report.gold)[0]
        assert one.correlation.spearman == scipy.stats.spearmanr(one.scores, report.gold)[0]
        assert (one.comparison is None) == (one.name == "window")
    assert {name for name, _, _ in seen} == {"single pass", "n-grams"}
    assert seen[-1][1] == seen[-1][2]
    assert found["target alone"].correlation.pearson > 0.8


def test_bm25_finds_words_not_meaning(file, tmp_path):
    said = [
        9,
        "lost delivery",
        "my delivery is lost",
        "Where is it? my delivery is lost, I fear.",
        5,
    ]
    (row,) = evaluate_context(file(more=[said]), scorers=["bm25"]).scorers
    assert row.scores[-1] == max(row.scores) > 0
    assert row.scores[4] == 0  # "she plays the violin" has no word in common


@pytest.mark.parametrize(
    ("name", "encoding", "delimiter"),
    [("a.csv", "utf-8", ","), ("a.csv", "cp1252", ";"), ("a.tsv", "utf-16", "\t")],
)
def test_any_encoding_is_read(file, name, encoding, delimiter):
    pairs = read_context(file(name, encoding, delimiter=delimiter))
    assert [pair.query for pair in pairs] == [query for query, _, _ in PAIRS]


def test_json_lines_and_other_names(tmp_path):
    lines = [
        json.dumps({"query": q, "target": t, "context": p, "score": g}) for _, q, t, p, g in rows()
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert len(read_context(tmp_path / "a.jsonl")) == len(PAIRS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"header": ["", "line", "paraphrase", "passages", "goldsim"]},
            "line 2.*no column passage",
        ),
        ({"more": [[9, "a", "b", "b c", "7"]]}, "line 8.*'7' is not a score from 0 to 5"),
        ({"more": [[9, "a", "b", "b c", "high"]]}, "line 8.*'high'"),
        ({"more": [[9, "", "b", "b c", "3"]]}, "line 8.*nothing in the column line"),
        ({"more": [[9, "b"]]}, "line 8.*columns"),
        ({"name": "pairs.xlsx"}, r"ends in \.csv"),
    ],
)
def test_a_file_that_cannot_be_used(file, change, message):
    with pytest.raises(EvaluationError, match=message) as caught:
        read_context(file(**change))
    assert "\n" not in str(caught.value)


def test_a_file_may_be_packed(file, tmp_path):
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(file().read_bytes()))
    assert read_context(packed) == read_context(file())
    packed.write_bytes(packed.read_bytes()[:100])
    with pytest.raises(EvaluationError, match="cannot be unpacked"):
        read_context(packed)


def test_no_file_no_pairs_no_encoder_no_set_up(file, tmp_path):
    with pytest.raises(EvaluationError, match="There is no file"):
        read_context(tmp_path / "none.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(EvaluationError, match="no header"):
        read_context(tmp_path / "empty.csv")
    (tmp_path / "header.csv").write_text(",".join(HEADER) + "\n")
    with pytest.raises(EvaluationError, match="holds no pair"):
        read_context(tmp_path / "header.csv")
    with pytest.raises(EncoderError, match="There is no encoder at"):
        evaluate_context(file(), encoder=tmp_path / "none")
    with pytest.raises(EvaluationError, match=r"There is no scorer 'best'.*single pass"):
        evaluate_context(file(), scorers=["best"])


def test_a_checkpoint_is_what_it_exports_to(file, checkpoint, tmp_path):
    slice_os.export(checkpoint("bert"), tmp_path / "encoder", "fp32")
    wanted = ["full context", "single pass", "target alone"]
    one = evaluate_context(file(), encoder=checkpoint("bert"), scorers=wanted)
    other = evaluate_context(file(), encoder=tmp_path / "encoder", scorers=wanted)
    for ours, theirs in zip(one.scorers, other.scorers, strict=True):
        np.testing.assert_allclose(ours.scores, theirs.scores, atol=2e-4)


def test_static_word_vectors(file, tmp_path):
    vectors = {"lost": [1, 0], "delivery": [0, 1], "parcel": [0.2, 1], "never": [1, 0.1]}
    lines = [f"{word} {x} {y}" for word, (x, y) in vectors.items()]
    lines.append(". . . 0.5 0.5")  # as in GloVe's largest file
    (tmp_path / "glove.txt").write_text("\n".join(lines))
    report = evaluate_context(file(), encoder=tmp_path / "glove.txt", scorers=["target alone"])
    asked = np.add(vectors["parcel"], vectors["never"])
    cosine = asked @ [1, 1] / (np.linalg.norm(asked) * np.sqrt(2))
    assert report.scorers[0].scores[2] == pytest.approx(cosine)
    for line in ("delivery 1", "delivery 1 2 3"):
        (tmp_path / "glove.txt").write_text(f"lost 1 0\n{line}\n")
        with pytest.raises(EncoderError, match="line 2, is not a word and its 2 numbers"):
            evaluate_context(file(), encoder=tmp_path / "glove.txt")


def test_the_command_line(file, tmp_path):
    command = ["evaluate", "context", file(), "--scorer", "single pass"]
    command += ["--scorer", "target alone", "--plot", tmp_path / "plot.png"]
    shown = run(*command).stdout
    assert "6 pairs" in shown
    assert shown.splitlines()[1].split() == ["scorer", "Pearson", "Spearman", "p"]
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"
    said = json.loads(run(*command, "--json").stdout)
    assert [one["scorer"] for one in said["scorers"]] == ["single pass", "target alone"]
    assert f"{said['scorers'][1]['pearson']:.3f}" in shown
    failed = run("evaluate", "context", tmp_path / "none.csv", ok=1)
    assert failed.stderr.startswith("Error: ")
    assert failed.stderr.count("\n") == 1


def test_a_plot_of_another_kind(file, tmp_path):
    report = evaluate_context(file(), scorers=["single pass"])
    with pytest.raises(EvaluationError, match=r"ends in \.png"):
        plot_context(report, tmp_path / "plot.docx")
    assert not list(tmp_path.glob(".partial*"))


@pytest.mark.parametrize(
    ("passage", "words", "found"),
    [
        ("The party went well; art was on the walls.", "art", (21, "art")),
        ("The party went well; ART was on the walls.", "art", (21, "ART")),
        ("The party went well.", "art", (5, "art")),  # nowhere else
        ("İstanbul is the place. A plan.", "a plan", (23, "A plan")),
        ("nothing", "else", None),
        ("She saw a man play soccer, and left.", "A man play soccer.", (8, "a man play soccer")),
        ("He said: a  man\nplays on.", '"A man plays"', (9, "a  man\nplays")),
        ("They use the U.S. mail here.", "the U.S. mail.", (9, "the U.S. mail")),
        ("What? (really?)", "really?", (7, "really?")),
        ("Nothing at all.", "...", None),
    ],
)
def test_case_spaces_and_edge_punctuation_do_not_count(passage, words, found):
    place = find_words(passage, words)
    assert (place and (place[0], passage[slice(*place)])) == found


def test_the_published_file_is_read_as_it_is(tmp_path):
    """Tab-separated, cp1252, an unnamed first column, targets that end with a full stop."""
    filler = "Looking out of the caf\u00e9\u2019s window in the morning, I saw that"
    lines = ["\tline\tparaphrase\tpassage\tgoldsim"]
    for k, (query, target, gold) in enumerate(PAIRS):
        said = f"{target.capitalize()}."
        lines.append(f"{k}\t{query.capitalize()}.\t{said}\t{filler} {target}, she said.\t{gold}")
    lines.append(f"6\tA man plays.\tA man is playing.\t{filler} nobody was there.\t4.2")
    file = tmp_path / "sts-test-sentences-clean.tsv"
    file.write_bytes("\r\n".join([*lines, ""]).encode("cp1252"))
    pairs = read_context(file)
    assert len(pairs) == 7
    assert pairs[0].passage.startswith(filler)
    wanted = ["single pass", "target in context", "target alone"]
    report = evaluate_context(file, scorers=wanted)
    assert report.not_found == 1
    found = {one.name: one for one in report.scorers}
    assert [np.isnan(one.scores[6]) for one in report.scorers] == [False, True, False]
    expected = scipy.stats.pearsonr(found["target in context"].scores[:6], report.gold[:6])[0]
    assert found["target in context"].correlation.pearson == expected
    expected = scipy.stats.pearsonr(found["single pass"].scores, report.gold)[0]
    assert found["single pass"].correlation.pearson == expected
    assert np.isfinite(found["target in context"].comparison.p)
    done = run("evaluate", "context", file, "--scorer", "target in context")
    assert "1 target not found in the passage" in done.stderr


def naive_okapi(query, passage, passages):
    """As rank-bm25's BM25Okapi: a document at a time, its defaults."""
    texts = [text.split() for text in passages]
    idf = {}
    for word in {word for text in texts for word in text}:
        count = sum(word in text for text in texts)
        idf[word] = np.log(len(texts) - count + 0.5) - np.log(count + 0.5)
    floor = 0.25 * np.mean(list(idf.values()))
    mean = np.mean([len(text) for text in texts])
    own, score = passage.split(), 0.0
    for word in query.split():
        tf, weight = own.count(word), idf.get(word, 0)
        weight = floor if weight < 0 else weight
        score += weight * tf * 2.5 / (tf + 1.5 * (0.25 + 0.75 * len(own) / mean))
    return score


def test_okapi_cuts_words_at_spaces_as_slice_did(file):
    passages = [pair.passage for pair in read_context(file())]
    (row,) = evaluate_context(file(), scorers=["okapi"]).scorers
    expected = [naive_okapi(q, p, passages) for (q, _, _), p in zip(PAIRS, passages, strict=True)]
    assert max(expected) > 0
    assert row.scores == pytest.approx(expected, rel=1e-6)


def test_several_encoders_are_compared_with_the_best_of_each_scorer(file, checkpoint, tmp_path):
    slice_os.export(checkpoint("bert"), tmp_path / "other", "fp32")
    encoders = [None, tmp_path / "other"]
    wanted = ["bm25", "single pass", "target alone"]
    report = evaluate_context(file(), encoder=encoders, scorers=wanted)
    assert report.against == ""
    assert [(one.encoder, one.name) for one in report.scorers] == [
        ("", "bm25"),
        *[(name, scorer) for name in report.encoders for scorer in wanted[1:]],
    ]
    alone = [evaluate_context(file(), encoder=one, scorers=wanted[1:]) for one in encoders]
    singles = [one for report in alone for one in report.scorers]
    for row, single in zip(report.scorers[1:], singles, strict=True):
        np.testing.assert_array_equal(row.scores, single.scores)
        column = [one for one in report.scorers if one.name == row.name]
        best = max(column, key=lambda one: one.correlation.pearson)
        if row is best:
            assert row.comparison is None
        else:
            assert row.comparison == compare(row.scores, best.scores, report.gold)
    command = ["evaluate", "context", file(), "--scorer", "bm25"]
    command += ["--scorer", "single pass", "--encoder", tmp_path / "other", "--encoder", DEFAULT]
    shown = run(*command).stdout.splitlines()
    assert shown[1].split() == ["encoder", "bm25", "single", "pass"]
    assert [line.split()[0] for line in shown[2:]] == ["(words", str(tmp_path / "other"), DEFAULT]
    assert sum("+" in line for line in shown[2:]) == 1
    with pytest.raises(EvaluationError, match="leave --against out"):
        evaluate_context(file(), encoder=encoders, against="window")


def test_the_longest_span_is_chosen(file):
    reports = {
        most: evaluate_context(file(), scorers=["single pass", "start and end"], max_words=most)
        for most in (1, 5, 35)
    }
    for k in range(2):
        one, five, most = (np.array(reports[m].scorers[k].scores) for m in (1, 5, 35))
        assert (one <= five + 1e-6).all()
        assert (five <= most + 1e-6).all()
        assert (one < most - 0.05).any()
    with pytest.raises(EvaluationError, match="0 words cannot be had"):
        evaluate_context(file(), max_words=0)


def test_a_passage_that_points_nowhere_has_the_least_score(tmp_path):
    (tmp_path / "glove.txt").write_text("art 1 0\nwall 0 1\n")
    rows = ["line,paraphrase,passage,goldsim", "art,xyzzy,xyzzy plugh,0"]
    rows += [f"art,wall,the wall {'art ' * n},{n}" for n in range(1, 5)]
    (tmp_path / "pairs.csv").write_text("\n".join(rows))
    report = evaluate_context(tmp_path / "pairs.csv", encoder=tmp_path / "glove.txt")
    assert not [scorer.name for scorer in report.scorers if not np.isfinite(scorer.scores).all()]
