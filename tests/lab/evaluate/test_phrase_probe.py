"""The probe of phrase vectors, and how its pairs are split."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from slice_os.encoders import Encoder, EncoderInfo
from slice_os.errors import EvaluationError
from slice_os.lab.evaluate.phrase_probe import (
    balanced_sets,
    probe,
    probe_sets,
    raw_vectors,
    split_paraphrases,
)
from slice_os.lab.evaluate.phrase_sets import PhrasePair
from slice_os.types import Words

PAIRS = [
    PhrasePair(f"word{k} shared{k % 4} a{k}", f"b{k} shared{k % 4} c{k}", 1.0) for k in range(400)
]


class Known(Encoder):
    """A text's only word has the vector that is given for it, of any length."""

    def __init__(self, vectors):
        self._vectors_of = vectors
        self.info = EncoderInfo("known", "1", "none", "fp32", len(next(iter(vectors.values()))))

    def encode_words(self, texts):
        for text in texts:
            ends = np.array([0, len(text)], np.int32)
            vector = np.asarray(self._vectors_of[text], np.float32)
            yield Words(ends[:1], ends[1:], vector[None])


def test_pairs_are_split_the_same_each_time():
    parts = split_paraphrases(PAIRS)
    assert [len(part) for part in parts] == [280, 60, 60]
    assert {pair for part in parts for pair in part} == set(PAIRS)
    assert parts == split_paraphrases(PAIRS)
    assert parts[0] != PAIRS[:280]


def test_a_pair_and_its_mirror_image_are_in_one_part():
    mirrored = [PhrasePair(pair.second, pair.first, 1.0) for pair in PAIRS[::2]]
    parts = [
        {frozenset((pair.first, pair.second)) for pair in part}
        for part in split_paraphrases([*PAIRS, *mirrored, *PAIRS[:9]])
    ]
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(PAIRS)
    assert [len(part) for part in parts] == [280, 60, 60]


@pytest.mark.parametrize("kind", ["random", "one word"])
def test_each_paraphrase_has_a_pair_that_is_none(kind):
    known = {(pair.first, pair.second) for pair in PAIRS}
    for part, source in zip(probe_sets(PAIRS, kind), split_paraphrases(PAIRS), strict=True):
        own = {(pair.first, pair.second) for pair in source}
        for yes, no in zip(part[::2], part[1::2], strict=True):
            assert yes.yes
            assert not no.yes
            assert (yes.first, yes.second) in own
            assert no.first == yes.first
            assert (no.first, no.second) not in known
        if kind == "one word":
            cues = {True: Counter(), False: Counter()}
            for row in part:
                (word,) = set(row.first.split()) & set(row.second.split())
                cues[row.yes][word] += 1
            assert cues[True] == cues[False]


def test_paraphrases_that_share_no_word_or_two_are_not_filtered_ones():
    pairs = [PhrasePair("a b", "c d", 1.0), PhrasePair("a b e", "a b f", 1.0)] * 20
    with pytest.raises(EvaluationError, match="No paraphrases are left to probe with"):
        probe(Known({"a": [1]}), probe_sets(pairs, "one word"))


def test_it_learns_what_the_vectors_tell_and_no_more():
    rng = np.random.default_rng(1)
    first = {pair.first: rng.normal(size=8) for pair in PAIRS}
    random = first | {pair.second: rng.normal(size=8) for pair in PAIRS}
    # Of paraphrases the signs of the first numbers agree.
    telling = {text: vector.copy() for text, vector in random.items()}
    for pair in PAIRS:
        telling[pair.second][0] = np.sign(telling[pair.first][0]) * 5
        telling[pair.first][0] *= 5
    told = []
    sets = probe_sets(PAIRS, "random")
    right = probe(Known(telling), sets, told.append)
    assert len(right) == 120
    assert (probe(Known(telling), sets) == right).all()  # the seed is always the same
    assert right.mean() > 0.6 > probe(Known(random), sets).mean()
    assert told[0].startswith("epoch 1: 0.")
    assert 3 <= len(told) <= 100


def test_vectors_keep_their_length():
    vectors = raw_vectors(Known({"long": [3, 4], "short": [0.3, 0.4]}), ["long", "short"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [5, 0.5], rtol=1e-6)


def test_the_verb_works_without_torch(tmp_path):
    rows = "".join(f"{pair.first}|||{pair.second}|||1.0\n" for pair in PAIRS)
    (tmp_path / "ppdb-train.txt").write_text(rows)
    (tmp_path / "turney.txt").write_text("bass fiddle | contrabass | bass | fiddle | violin\n")
    code = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch': raise ImportError(name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from slice_os.cli import main; sys.argv = ['slice-os', *sys.argv[1:]]; main()"
    )
    command = [sys.executable, "-c", code, "evaluate", "phrases", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Turney, all choices" in done.stdout
    assert "probe" not in done.stdout
    said = "PPDB, probe is left out. The probe of phrase vectors needs an optional package: "
    assert f"{said}pip install 'slice-os[train]'." in done.stderr


def test_paws_is_probed_with_as_many_of_each_answer():
    pairs = [PhrasePair(f"a{k} b", f"b a{k}", float(k % 3 == 0)) for k in range(1500)]
    for part, source in zip(balanced_sets(pairs), split_paraphrases(pairs), strict=True):
        yes = sum(pair.score for pair in source)
        assert Counter(row.yes for row in part) == {True: yes, False: yes}
        assert {(row.first, row.second) for row in part} <= {(p.first, p.second) for p in source}
    rng = np.random.default_rng(0)
    vectors = {text: rng.normal(size=4) for pair in pairs for text in (pair.first, pair.second)}
    for pair in pairs:
        vectors[pair.second][0] = 9 * pair.score
    assert probe(Known(vectors), balanced_sets(pairs)).mean() > 0.9
