"""Queries, phrases, filters and encoder folders that nobody meant: an answer, or one clear error.

`make fuzz` tries twenty times as many.
"""

from __future__ import annotations

import json
import os
import random
import shutil

import pytest

import slice_os
from slice_os.encoders.info import DEFAULT_FOLDER
from slice_os.text.filters import parse_filters

pytestmark = pytest.mark.slow

CASES = int(os.environ.get("SLICE_OS_FUZZ", "300"))
PIECES = [
    "cancel", "my subscription", "year", "kind.of", "a", "é", "日本語", "🦉", "\u0301", "\u202e",
    '"', "'", "-", "+", "*", "?", "~", "\\", "/", "(", ")", "[", "]", "{", "}", "^", ":", "=", "!=",
    ">=", "<", ">", "<=", " in ", " or ", " exists", " prefix ", ",", ".", "..", "..=", "%", "_",
    " ", "  ", "\n", "\t", "\x00", "\x7f", "\ud800", "0", "-1", "1e999", "nan", "NEAR", "AND",
    "NOT", "1" * 400, "x" * 5000, "2020-01-01", "true", "null", "[]", "--", "';DROP TABLE meta;",
]  # fmt: skip
VALUES = [None, True, 0, -1, 10**30, 1.5, float("nan"), "", [], [[]], {}, {"a": {}}, "x" * 300]


def text(rng, most=6):
    return "".join(rng.choice(PIECES) for _ in range(rng.randrange(most)))


def asked(work):
    """Return what comes of something; an error has to be ours, and one sentence."""
    try:
        return work()
    except slice_os.SliceOSError as exc:
        said = str(exc)
        assert said.strip().endswith((".", ")", "?")), said
        assert "\n" not in said
        return None


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    location = tmp_path_factory.mktemp("fuzz") / "fuzz.slice"
    texts = ["I want to cancel my subscription.", "Nobody answered.", "日本語の本。 Owls: 🦉."]
    slice_os.index(
        [
            slice_os.Document(
                f"d{n}", f"{texts[n % 3]} {n}", metadata={"year": 2000 + n, "kind": {"of": "a"}}
            )
            for n in range(9)
        ],
        location,
    )
    with slice_os.open(location) as opened:
        yield opened
        assert len(opened) == 9
    assert slice_os.check(location).healthy


def test_queries(index):
    rng = random.Random(1)
    for _ in range(CASES):
        query, options = text(rng), {}
        if rng.random() < 0.3:
            options["must"] = [text(rng) for _ in range(rng.randrange(3))]
            options["must_not"] = text(rng)
        options["mode"] = rng.choice(["hybrid", "lexical", "dense"])
        options["literal"] = rng.random() < 0.3
        options["size"] = rng.choice([1, 10, 100])
        hits = asked(lambda q=query, o=options: index.search(q, **o))
        for hit in hits or ():
            assert 0 <= hit.degree <= 1
            assert hit.text


def test_phrases(index):
    rng = random.Random(2)
    for _ in range(CASES // 4):
        phrases = {text(rng): [text(rng) for _ in range(rng.randrange(3))] for _ in range(2)}
        degree = rng.choice([0.5, 0.8, 1.0, 0.0, -1, 2, float("nan")])
        found = asked(lambda p=phrases, d=degree: list(index.mine(p, min_degree=d, top=5)))
        for match in found or ():
            assert index.get(match.document).text[match.document_start : match.document_end]


def test_filters(index):
    rng = random.Random(3)
    for _ in range(CASES):
        made = [text(rng) for _ in range(rng.randrange(1, 3))]
        if rng.random() < 0.3:
            made = {text(rng, 3): rng.choice(VALUES) for _ in range(2)}
        asked(lambda m=made: parse_filters(m))
        asked(lambda m=made: index.search("cancel", filters=m, mode="lexical"))
        asked(lambda m=made: index.list(filters=m))


def test_encoder_folders(tmp_path):
    rng = random.Random(4)
    for number in range(CASES // 25):
        folder = tmp_path / str(number % 4)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(DEFAULT_FOLDER, folder)
        name = rng.choice(["encoder.json", "encoder.json", "tokenizer.json", "model.onnx"])
        file = folder / name
        data = file.read_bytes()
        place = rng.randrange(len(data))
        how = rng.randrange(4)
        if how == 0:
            data = data[:place]
        elif how == 1 and name != "model.onnx":
            values = json.loads(data)
            key = rng.choice([*values])
            values[key] = rng.choice([one for one in VALUES if one == one])
            data = json.dumps(values).encode()
        elif how == 2:
            data = data[:place] + rng.randbytes(20) + data[place:]
        else:
            data = data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]
        file.write_bytes(data)

        def use(folder=folder):
            with slice_os.load_encoder(folder) as encoder:
                return list(encoder.encode_words(["I want to cancel."]))

        asked(use)
