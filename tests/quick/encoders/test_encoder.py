import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slice_os.encoders import StandaloneVectors, load_encoder
from slice_os.encoders.batching import windows, windows_of
from slice_os.errors import EncoderError

TEXTS = [
    "The customer wants to cancel the subscription because it costs too much.",
    "Alice was beginning to get very tired of sitting by her sister on the bank, and of having "
    "nothing to do: once or twice she had peeped into the book her sister was reading.",
    "",
    "Refunds.",
    "naïve cafés serve 😀 and 我们走 to those who wait, unbelievably",
    "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money.",
]


def cosines(a, b):
    return (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


def test_word_vectors_are_the_sums_of_raw_token_vectors(encoder, naive):
    for text in filter(None, TEXTS):
        (words,) = encoder.encode_words([text])
        offsets, vectors = naive(text)
        for start, end, vector in zip(words.starts, words.ends, words.vectors, strict=True):
            own = [i for i, (a, _) in enumerate(offsets) if start <= a < end]
            np.testing.assert_allclose(vector, vectors[own].sum(0), atol=1e-5)


def test_text_vectors_are_unit_means_of_raw_token_vectors(encoder, naive):
    for text in filter(None, TEXTS):
        mean = naive(text)[1].mean(0)
        np.testing.assert_allclose(
            encoder.encode([text])[0], mean / np.linalg.norm(mean), atol=1e-5
        )


def test_a_text_does_not_depend_on_its_neighbours(encoder):
    together = list(encoder.encode_words(TEXTS))
    whole = encoder.encode(TEXTS)
    for text, words, vector in zip(TEXTS, together, whole, strict=True):
        (alone,) = encoder.encode_words([text])
        assert (words.starts == alone.starts).all()
        assert (words.vectors == alone.vectors).all()
        assert (vector == encoder.encode([text])[0]).all()
        assert (np.linalg.norm(words.vectors, axis=1) > 0.1).all()


def test_order_and_counts_over_many_chunks(encoder):
    texts = [" ".join(["word"] * (i % 7)) for i in range(1100)]
    assert [len(words) for words in encoder.encode_words(texts)] == [i % 7 for i in range(1100)]


@pytest.mark.parametrize(("text", "most"), [("one two", 513), ("x" * 300_000, 3)])
def test_reads_ahead_in_bounds(encoder, text, most):
    read = []
    words = encoder.encode_words(read.append(1) or text for _ in iter(int, 1))
    next(words)
    words.close()
    assert len(read) <= most


def test_no_texts(encoder):
    assert list(encoder.encode_words([])) == []
    assert encoder.encode([]).shape == (0, 384)


def test_unit_norms_and_paraphrases(encoder):
    a, b, c = encoder.encode(["cancel my contract", "end my subscription", "the cat sat down"])
    assert np.linalg.norm([a, b, c], axis=1) == pytest.approx(1, abs=1e-5)
    assert a @ b > a @ c + 0.2


@given(st.integers(0, 1200), st.integers(6, 60))
def test_windows_take_every_token_once_with_context(tokens, capacity):
    planned = list(windows(tokens, capacity))
    taken = [i for _, _, low, high in planned for i in range(low, high)]
    assert taken == list(range(tokens))
    margin = capacity // 4 // 2
    for start, end, low, high in planned:
        assert end - start == min(capacity, tokens)
        assert low == 0 or low - start >= margin
        assert high == tokens or end - high >= margin


def test_a_window_never_splits_a_words_sum(encoder):
    # 300 words of two tokens each: with windows the sums must be of the same tokens as without.
    text = "unbelievable cats " * 200
    (tokenized,) = encoder._tokenizer.split([text])
    rows = list(windows_of(0, tokenized, 101))
    counts = np.zeros(len(tokenized.words.first), int)
    for row in rows:
        ends = np.append(row.first[1:], row.stop - row.skip)
        counts[row.word : row.word + len(row.first)] += ends - row.first
    expected = np.diff(np.append(tokenized.words.first, tokenized.words.owned))
    assert (counts == expected).all()


def test_a_long_text_has_vectors_like_its_parts(encoder):
    sentence = TEXTS[1] + " "
    (long,) = encoder.encode_words([sentence * 40])
    assert len(long) == 40 * len(sentence.split())
    (part,) = encoder.encode_words([sentence * 5])
    n = len(part)
    middle = long.vectors[4 * n : 5 * n]
    assert cosines(middle, part.vectors).mean() > 0.8
    vector = encoder.encode([sentence * 40])[0]
    assert vector @ encoder.encode([sentence])[0] > 0.8


def test_a_line_of_fifty_thousand_words_loses_none(encoder):
    (tokenized,) = encoder._tokenizer.split(["to be or not " * 12_500])
    rows = list(windows_of(0, tokenized, encoder._capacity))
    assert sum(row.stop - row.skip for row in rows) == 50_000
    (words,) = encoder.encode_words(["to be or not " * 1_250])
    assert len(words) == 5_000
    assert (np.linalg.norm(words.vectors, axis=1) > 0.1).all()


def test_a_word_of_half_a_million_characters(encoder):
    (words,) = encoder.encode_words(["x" * 500_000])
    assert words.ends.tolist() == [500_000]
    assert encoder.encode(["x" * 500_000]).any()


def test_many_threads_at_once(encoder):
    alone = encoder.encode(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        for vectors in pool.map(encoder.encode, [TEXTS] * 24):
            assert (vectors == alone).all()
        counts = pool.map(lambda _: [len(w) for w in encoder.encode_words(TEXTS)], range(8))
        assert len({tuple(one) for one in counts}) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_names_the_text(encoder, monkeypatch, value):
    run = encoder._graph.run

    def broken(ids, mask):
        hidden = run(ids, mask)
        hidden[:, 2] = value
        return hidden

    monkeypatch.setattr(encoder._graph, "run", broken)
    with pytest.raises(EncoderError, match="not finite for the text that begins with 'The cust"):
        list(encoder.encode_words([TEXTS[0]] * 3))
    with pytest.raises(EncoderError, match="not finite"):
        encoder.encode(TEXTS[:1])


def test_bound_inputs_and_outputs_give_the_same(encoder):
    # The GPU's path, run on the CPU: the two need the same results.
    ids = np.array([[101, 2023, 2003, 102], [101, 2023, 102, 0]])
    mask = (ids > 0).astype(np.int64)
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    assert (encoder._graph._run_bound(feed) == encoder._graph.run(ids, mask)).all()


def test_a_closed_encoder_says_so():
    encoder = load_encoder(threads=1)
    assert len(repr(encoder)) < 80
    with encoder:
        encoder.encode(["a"])
    encoder.close()
    with pytest.raises(EncoderError, match="closed"):
        encoder.encode(["a"])
    with pytest.raises(EncoderError, match="closed"):
        list(encoder.encode_words(["a"]))


def test_encoders_of_one_folder_have_its_graph_in_memory_once(folder):
    one, other = load_encoder(folder), load_encoder(folder)
    assert one._graph is other._graph  # type: ignore[attr-defined]
    wanted = one.encode(TEXTS)
    one.close()
    assert (other.encode(TEXTS) == wanted).all()
    os.utime(folder / "model.onnx")
    with other, load_encoder(folder) as written_since:
        assert written_since._graph is not other._graph  # type: ignore[attr-defined]


def test_closing_while_another_thread_encodes():
    encoder = load_encoder(threads=1)
    words = encoder.encode_words(TEXTS[1] for _ in range(200))
    next(words)
    encoder.close()
    with pytest.raises(EncoderError, match="closed"):
        list(words)


def test_a_dropped_encoder_leaves_no_threads():
    before = threading.active_count()
    encoder = load_encoder(threads=2)
    list(encoder.encode_words(TEXTS))
    del encoder
    gc.collect()
    for _ in range(100):
        if threading.active_count() == before:
            break
        time.sleep(0.02)
    assert threading.active_count() == before


PROGRAM = """
from slice_os.encoders import load_encoder
encoder = load_encoder(threads=2)
words = encoder.encode_words("some words to encode again and again " * 20 for _ in iter(int, 1))
next(words)
print("running", flush=True)
{then}
"""


def test_the_interpreter_exits_with_batches_left():
    code = PROGRAM.format(then="")
    done = subprocess.run([sys.executable, "-c", code], timeout=10, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_the_program():
    code = PROGRAM.format(then="for _ in words: pass")
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout.readline() == "running\n"
        program.send_signal(signal.SIGINT)
        try:
            _, errors = program.communicate(timeout=20)
        finally:
            program.kill()
    assert re.search(r"KeyboardInterrupt\s*$", errors)


def test_importing_the_room_loads_no_runtime():
    code = "import sys, slice_os.encoders; print({'onnxruntime', 'tokenizers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_encoding_reports_nothing_to_anybody(tmp_path):
    # onnxruntime's telemetry would leave its files; on machines for tests it keeps quiet by itself.
    unset = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "ORT_DISABLE_TELEMETRY")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    code = "import slice_os; print(slice_os.load_encoder().encode(['a']).shape)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**environment, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("(1, 384)\n", "")
    assert list(tmp_path.rglob("*")) == []


def test_texts_that_are_remembered_have_their_own_vectors(encoder, monkeypatch):
    monkeypatch.setattr("slice_os.encoders.encoder.REMEMBERED", 5)
    texts = [f"text number {n}" for n in range(9)]
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))
    standalone = StandaloneVectors(encoder)

    def asked(seed):
        drawn = np.random.default_rng(seed).choice(texts, 4).tolist()
        return drawn, standalone.encode(drawn)

    with ThreadPoolExecutor(4) as pool:
        for drawn, given_vectors in pool.map(asked, range(60)):
            np.testing.assert_array_equal(given_vectors, [vectors[text] for text in drawn])
    assert standalone.encode([]).shape == (0, encoder.info.dimension)


def test_a_text_that_is_remembered_is_not_encoded_again(encoder, monkeypatch):
    standalone = StandaloneVectors(encoder)
    first = standalone.encode(["wants to cancel", "a refund"])
    monkeypatch.setattr(encoder, "encode", None)  # it cannot be called
    np.testing.assert_array_equal(standalone.encode(["a refund.", "a refund"]), first[[1, 1]])
