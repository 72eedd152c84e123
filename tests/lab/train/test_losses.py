"""Losses against numbers worked out by hand; best spans against a naive version."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize
from torch.utils._python_dispatch import TorchDispatchMode

from slice_os.lab.train.losses import best_spans, in_batch_loss, slice_loss
from slice_os.spans import fit_window


def test_slice_loss_of_numbers_worked_out_by_hand():
    """Degrees 0.8 and 0.6, 0.5 and 0.5: log(1 + e^-6) = 0.0024757 and log 2 = 0.6931472."""
    positive, negative = torch.tensor([0.6, 0.0]), torch.tensor([0.2, 0.0])
    loss = slice_loss(positive, negative)
    assert loss.shape == ()
    assert float(loss) == pytest.approx((0.0024757 + 0.6931472) / 2, abs=1e-6)


def test_the_scale_is_the_lambda_of_the_formula():
    """Degrees 0.75 and 0.25 at scale 4: log(1 + e^-2) = 0.1269280."""
    loss = slice_loss(torch.tensor([0.5]), torch.tensor([-0.5]), scale=4.0)
    assert float(loss) == pytest.approx(0.1269280, abs=1e-6)


def test_slice_loss_is_its_formula():
    torch.manual_seed(0)
    positive, negative = (2 * torch.rand(2, 50, dtype=torch.float64) - 1).requires_grad_()
    good, bad = (1 + positive) / 2, (1 + negative) / 2
    formula = (-30 * good + torch.log(torch.exp(30 * good) + torch.exp(30 * bad))).mean()
    loss = slice_loss(positive, negative)
    torch.testing.assert_close(loss, formula, rtol=1e-7, atol=1e-9)
    for ours, theirs in zip(
        torch.autograd.grad(loss, (positive, negative)),
        torch.autograd.grad(formula, (positive, negative)),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("scale", [30.0, 1e4])
@pytest.mark.parametrize("lead", [2.0, -2.0])
def test_no_lead_overflows(lead, scale):
    positive = torch.tensor([lead / 2], requires_grad=True)
    loss = slice_loss(positive, torch.tensor([-lead / 2]), scale)
    assert loss.item() == pytest.approx(max(-lead / 2 * scale, 0), abs=1e-6)
    loss.backward()
    assert float(positive.grad) == pytest.approx(-scale / 2 if lead < 0 else 0.0, abs=1e-6)
    crossed = in_batch_loss(torch.tensor([[lead / 2, -lead / 2]]), scale)
    torch.testing.assert_close(crossed, loss.detach())


def test_in_batch_loss_of_numbers_worked_out_by_hand():
    """Degrees 1 and 0.5, 0.5 and 1, at scale 2: log(1 + e^-1) = 0.3132617 for both queries."""
    loss = in_batch_loss(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), scale=2.0)
    assert float(loss) == pytest.approx(0.3132617, abs=1e-6)
    # A third passage, of degree 0.5: log(1 + 2 / e).
    loss = in_batch_loss(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), scale=2.0)
    assert float(loss) == pytest.approx(math.log(1 + 2 / math.e), abs=1e-6)


def test_in_batch_loss_is_its_formula():
    torch.manual_seed(1)
    cosines = (2 * torch.rand(4, 6, dtype=torch.float64) - 1).requires_grad_()
    good = 30 * (1 + cosines) / 2
    formula = (-good.diagonal() + torch.exp(good).sum(1).log()).mean()
    loss = in_batch_loss(cosines)
    torch.testing.assert_close(loss, formula)
    ours, theirs = (torch.autograd.grad(one, cosines)[0] for one in (loss, formula))
    torch.testing.assert_close(ours, theirs)
    expected = slice_loss(torch.tensor([0.3]), torch.tensor([0.1]))
    torch.testing.assert_close(in_batch_loss(torch.tensor([[0.3, 0.1]])), expected)


def test_half_precision_is_widened():
    """A lead of 0.01 in cosine near 1 is less than bfloat16 can add to 1, but not than it holds."""
    positive, negative = (torch.tensor([value]).bfloat16() for value in (0.02, 0.01))
    loss = slice_loss(positive, negative)
    assert loss.dtype == torch.float32
    assert float(loss) == pytest.approx(
        float(slice_loss(positive.float(), negative.float())), abs=1e-6
    )
    assert in_batch_loss(torch.eye(2).bfloat16()).dtype == torch.float32


def test_descending_finds_the_words_that_answer():
    """Word vectors that learn by the loss alone: the best span of the answer comes to the query."""
    torch.manual_seed(2)
    queries = torch.nn.functional.normalize(torch.randn(4, 16), dim=1)
    words = torch.randn(8, 12, 16).requires_grad_()
    counts = torch.randint(3, 13, (8,))
    optimiser = torch.optim.Adam([words], lr=0.05)
    losses = []
    for _ in range(40):
        loss = in_batch_loss(best_spans(queries, words, counts, crossed=True).cosines)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 < losses[0]


# float32 words of about unit length, spans of up to 12 of them: some ten roundings of 6e-8 each.
CLOSE = {"rtol": 1e-5, "atol": 2e-6}
EXACT = {"rtol": 1e-9, "atol": 1e-12}


def make(seed, passages, most, dimension, queries=None, dtype=torch.float64):
    """Queries, padded words and counts; one passage has all `most` words."""
    torch.manual_seed(seed)
    queries = normalize(torch.randn(queries or passages, dimension, dtype=dtype), dim=1)
    words = torch.randn(passages, most, dimension, dtype=dtype)
    words += torch.randn(dimension, dtype=dtype)  # spans are neighbours, as a model's are
    counts = torch.randint(0, most + 1, (passages,))
    counts[seed % passages] = most
    return queries, words, counts


def naive(query, words, lengths):
    """The best (cosine, start, end) of one passage ``[n, d]`` without padding, by brute force."""
    best = (torch.tensor(-1.0, dtype=words.dtype), 0, 0)
    if not len(words):
        return best
    spans = [
        (i, i + length)
        for length in fit_window(lengths, len(words))
        for i in range(len(words) - length + 1)
    ]
    vectors = torch.stack([words[i:j].sum(0) for i, j in spans])
    cosines = (vectors @ query) / vectors.norm(dim=1)
    at = int(cosines.argmax())
    return cosines[at], *spans[at]


def naive_pairs(queries, words, counts, windows, crossed):
    pairs = (
        [[(q, b) for b in range(len(words))] for q in range(len(queries))]
        if crossed
        else [[(b, b) for b in range(len(words))]]
    )
    found = [
        [naive(queries[q], words[b, : int(counts[b])], windows[q]) for q, b in row] for row in pairs
    ]
    cosines = torch.stack([torch.stack([cell[0] for cell in row]) for row in found])
    starts, ends = (torch.tensor([[cell[n] for cell in row] for row in found]) for n in (1, 2))
    return tuple(part if crossed else part[0] for part in (cosines, starts, ends))


def compare(queries, words, counts, lengths, crossed, **tolerance):
    """Ours equals naive: cosines, spans, and the gradients of a weighted sum of the cosines."""
    windows = [lengths] * len(queries) if isinstance(lengths, range) else lengths
    leaves = [queries.requires_grad_(), words.requires_grad_()]
    ours = best_spans(*leaves, counts, lengths, crossed=crossed)  # type: ignore[call-arg]
    cosines, starts, ends = naive_pairs(*leaves, counts, windows, crossed)  # type: ignore[call-arg]
    assert ours.cosines.dtype == words.dtype
    torch.testing.assert_close(ours.cosines, cosines, **tolerance)
    assert torch.equal(ours.starts, starts)
    assert torch.equal(ours.ends, ends)
    weights = torch.randn_like(cosines)
    for got, expected in zip(
        torch.autograd.grad((ours.cosines * weights).sum(), leaves),
        torch.autograd.grad((cosines * weights).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(got, expected, **tolerance)


windows = st.builds(
    lambda shortest, more: range(shortest, shortest + more), st.integers(1, 8), st.integers(1, 6)
)


@settings(max_examples=120, deadline=None)
@given(
    st.integers(0, 10**6),
    st.tuples(st.integers(1, 4), st.integers(1, 24), st.sampled_from([3, 8, 33])),
    st.integers(1, 5),
    windows | st.lists(windows, min_size=5, max_size=5),
    st.booleans(),
)
def test_best_spans_equal_naive(seed, sizes, queries, lengths, crossed):
    tensors = make(seed, *sizes, queries if crossed else None)  # type: ignore[call-arg]
    own = lengths if isinstance(lengths, range) else lengths[: len(tensors[0])]
    compare(*tensors, own, crossed=crossed, **EXACT)  # type: ignore[call-arg]


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_float32_equals_naive(seed, crossed):
    tensors = make(seed, 4, 40, 384, dtype=torch.float32)
    compare(*tensors, range(1, 13), crossed=crossed, **CLOSE)  # type: ignore[call-arg]


@pytest.mark.parametrize("crossed", [False, True])
def test_the_gradient_is_the_derivative(crossed):
    queries, words, _ = make(1, 3, 6, 4)
    counts = torch.tensor([6, 2, 0])
    leaves = (queries.requires_grad_(), words.requires_grad_())

    def cosines(queries, words):
        return best_spans(queries, words, counts, range(1, 5), crossed=crossed).cosines

    assert torch.autograd.gradcheck(cosines, leaves)


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("rubbish", [math.nan, math.inf, 1e30, -1e30])
def test_what_stands_past_the_words_does_not_matter(rubbish, crossed):
    queries, words, _ = make(2, 4, 9, 8, dtype=torch.float32)
    counts = torch.tensor([9, 4, 1, 0])
    results = []
    for filling in (0.0, rubbish):
        padded = words.clone()
        for row, count in enumerate(counts.tolist()):
            padded[row, count:] = filling
        leaves = (queries.clone().requires_grad_(), padded.requires_grad_())
        best = best_spans(*leaves, counts, range(1, 5), crossed=crossed)
        assert bool((best.ends <= counts).all())
        results.append((*best, *torch.autograd.grad(best.cosines.sum(), leaves)))
    for clean, filled in zip(*results, strict=True):
        torch.testing.assert_close(clean, filled, rtol=0, atol=0)
    past = torch.arange(9) >= counts[:, None]
    assert not results[1][-1][past].any()


@pytest.mark.parametrize("crossed", [False, True])
def test_a_passage_without_words_has_cosine_minus_one_and_no_gradient(crossed):
    queries, words, counts = make(3, 2, 0, 8)
    for tensor in (words, torch.full((2, 5, 8), math.nan, dtype=words.dtype)):
        leaves = (queries.requires_grad_(), tensor.requires_grad_())
        best = best_spans(*leaves, counts * 0, crossed=crossed)
        assert bool((best.cosines == -1).all())
        assert not best.starts.any()
        assert not best.ends.any()
        for gradient in torch.autograd.grad(best.cosines.sum(), leaves):
            assert bool((gradient == 0).all())


def test_a_word_of_zeros_points_nowhere():
    queries = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    words = torch.tensor([[[0.0, 0.0], [-1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]).requires_grad_()
    best = best_spans(queries, words, torch.tensor([2, 2]), range(1, 2))
    torch.testing.assert_close(best.cosines, torch.tensor([-math.sqrt(0.5), -1.0]))
    assert best.starts.tolist() == [1, 0]
    assert best.ends.tolist() == [2, 0]
    best.cosines.sum().backward()
    assert bool(words.grad.isfinite().all())
    assert not words.grad[1].any()


def test_words_that_cancel_are_no_span():
    """What is left of a and -a is mostly rounding, which could point anywhere."""
    torch.manual_seed(0)
    word, rest = torch.randn(2, 32, 64)
    queries = normalize(rest, dim=1)
    counts = torch.full((32,), 3)
    words = torch.stack((word, -word + 1e-3 * queries, torch.zeros_like(word)), dim=1)
    best = best_spans(queries, words, counts, range(2, 3))
    assert bool((best.cosines < 0.9).all())
    assert bool((best.starts == 1).all())
    # 100 a, -100 a and rest: the energy is that of all three words.
    words = torch.stack((100 * word, -100 * word, rest), dim=1)
    assert bool((best_spans(queries, words, counts, range(3, 4)).cosines == -1).all())
    words = torch.stack((10 * word, -10 * word, rest), dim=1)
    assert bool((best_spans(queries, words, counts, range(3, 4)).cosines > 0.9).all())


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_student_that_has_diverged_does_not_go_unseen(wrong):
    queries, words, _ = make(4, 2, 5, 8, dtype=torch.float32)
    words[0, 2] = wrong
    best = best_spans(queries, words, torch.tensor([5, 5]))
    assert best.cosines.isnan().tolist() == [True, False]
    alone = best_spans(queries[:1], words[:1, 2:3], torch.tensor([1]))
    assert bool(alone.cosines.isnan().all())


def test_a_tie_goes_to_fewer_words_then_to_the_front():
    words = torch.tensor([[0.0, 1.0], [2.0, 0.0], [2.0, 0.0], [2.0, 0.0]])[None]
    queries = torch.tensor([[1.0, 0.0]])
    best = best_spans(queries, words, torch.tensor([4]))
    assert (int(best.starts), int(best.ends)) == (1, 2)
    best = best_spans(queries, words, torch.tensor([4]), range(2, 4))
    assert (int(best.starts), int(best.ends)) == (1, 3)


@pytest.mark.parametrize("crossed", [False, True])
def test_autocast_does_not_reach_it(crossed):
    queries, words, counts = make(5, 4, 30, 64, dtype=torch.float32)
    plain = best_spans(queries, words, counts, crossed=crossed)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = best_spans(queries, words, counts, crossed=crossed)
    for one, other in zip(plain, cast, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_words_of_half_precision_give_close_float32_values():
    queries, words, counts = make(6, 4, 30, 64, dtype=torch.float32)
    plain = best_spans(queries, words, counts)
    words = words.bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = best_spans(queries.bfloat16(), words, counts)
    assert half.cosines.dtype == torch.float32
    torch.testing.assert_close(half.cosines, plain.cosines, rtol=0, atol=1e-2)  # 8 bits of mantissa
    half.cosines.sum().backward()
    assert words.grad.dtype == torch.bfloat16
    assert bool(words.grad.isfinite().all())


class Largest(TorchDispatchMode):
    """Notes the size of the largest tensor that any operation gives, backward included."""

    def __init__(self):
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for part in result if isinstance(result, tuple | list) else (result,):
            if isinstance(part, torch.Tensor):
                self.size = max(self.size, part.numel())
        return result


@pytest.mark.parametrize("crossed", [False, True])
def test_nothing_of_size_spans_times_dimensions_is_formed(crossed):
    """Nothing is larger than the words, though the spans have ten times as many numbers."""
    queries, words, _ = make(7, 4, 50, 96, dtype=torch.float32)
    tensors = queries.requires_grad_(), words.requires_grad_(), torch.full((4,), 50)
    kept = []
    hooks = torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.numel()) or tensor, lambda tensor: tensor
    )
    with hooks:
        best = best_spans(*tensors, crossed=crossed)
    assert 0 < sum(kept) < words.numel() / 2  # for the gradient
    with Largest() as largest:
        best = best_spans(*tensors, crossed=crossed)
        best.cosines.sum().backward()
    assert largest.size == words.numel()
