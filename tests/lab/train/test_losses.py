"""The loss against numbers worked out by hand, and against its formula."""

import math

import pytest
import torch

from slice_os.lab.train.losses import best_spans, in_batch_loss, slice_loss


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
