"""SLICE's losses over triples, and divergence from a teacher's similarities.

SLICE is Orbach et al. (2023), Span-Aggregatable, Contextualized Word Embeddings for Effective
Phrase Mining; its loss is that of section 3.1. Of a passage it sees the cosine of the query with
the best span, as `best_spans` gives it.
"""

from __future__ import annotations

from collections.abc import Sequence

from slice_os.encoders import Encoder
from slice_os.errors import needs

with needs("Training an encoder", "train"):
    import torch

from torch import Tensor
from torch.nn import functional

SCALE = 30.0
"""SLICE's lambda."""


def slice_loss(positive: Tensor, negative: Tensor, scale: float = SCALE) -> Tensor:
    """Return SLICE's loss, a mean over the batch.

    Of each query, with s+ and s- the degrees of its positive and its negative:

        L = -scale s+ + log(e^(scale s+) + e^(scale s-)),    s = (1 + cos) / 2

    which is log(1 + e^(scale (s- - s+))), a softplus, so that no exponential overflows.

    Args:
        positive: Float ``[Q]``, cosines of the queries with the passages that answer them.
        negative: Float ``[Q]``, with the passages that do not.
        scale: The lambda of the formula.

    Returns:
        A scalar, float32, or float64 if the cosines are.
    """
    return functional.softplus(scale * (_degrees(negative) - _degrees(positive))).mean()


def in_batch_loss(cosines: Tensor, scale: float = SCALE) -> Tensor:
    """Return `slice_loss` with every other passage of the batch as a negative.

    Of each query q, with b the passages of the batch:

        L = -scale s_qq + log(sum_b e^(scale s_qb)),    s = (1 + cos) / 2

    Args:
        cosines: Float ``[Q, B]``, ``Q <= B``: passage q answers query q; the others, also those
            past Q, are negatives of it.
        scale: The lambda of the formula.

    Returns:
        A scalar, float32, or float64 if the cosines are.
    """
    answers = torch.arange(len(cosines), device=cosines.device)
    return functional.cross_entropy(scale * _degrees(cosines), answers)


def matrix_loss(student: Tensor, teacher: Tensor, temperature: float = 0.05) -> Tensor:
    """Return the divergence of two matrices of cosines, a mean over rows.

    KL(softmax(T / t) || softmax(S / t)) of each row, as Hinton et al. (2015), Distilling the
    Knowledge in a Neural Network, section 2, soften both: it says which texts are nearer than
    others, whatever the cosines are.

    Args:
        student: Float ``[m, n]``, with a gradient.
        teacher: Float ``[m, n]``.
        temperature: The t of the formula.
    """
    return functional.kl_div(
        functional.log_softmax(student / temperature, dim=1),
        functional.log_softmax(teacher / temperature, dim=1),
        reduction="batchmean",
        log_target=True,
    )


def row_loss(student: Tensor, teacher: Tensor, temperature: float = 0.05) -> Tensor:
    """Return the cross-entropy of the rows of two matrices of cosines, a mean over rows.

    Wada et al. (2025), section 2.3: -1/K sum_i sum_(j != i) q_ij log p_ij, with q and p the softmax
    of row i of teacher and student over j != i, at the temperature. The diagonal, 1 in both, would
    take nearly all of a row.

    Args:
        student: Float ``[K, K]``, with a gradient.
        teacher: Float ``[K, K]``.
        temperature: The tau of the formula.
    """
    own = torch.eye(len(student), dtype=torch.bool, device=student.device)
    wanted = functional.softmax((teacher / temperature).masked_fill(own, -torch.inf), dim=1)
    log = functional.log_softmax((student / temperature).masked_fill(own, -torch.inf), dim=1)
    return -(wanted * log.masked_fill(own, 0.0)).sum(dim=1).mean()


def similarities(
    teacher: Encoder, texts: Sequence[str], others: Sequence[str] = (), *, like: Tensor
) -> Tensor:
    """Return the teacher's cosines of `texts` with `others`, or with each other, ``[n, m]``."""
    vectors = torch.from_numpy(teacher.encode([*texts, *others])).to(like)
    rows = vectors[: len(texts)]
    return rows @ (vectors[len(texts) :] if others else rows).T


def blended(first: Tensor, second: Tensor, share: float) -> Tensor:
    """Return the mean of two teachers' cosines, `share` of the second.

    Encoders spread their cosines differently: some give no two texts less than 0.4. The second's
    are rescaled first, so that their mean distance from 1 is the first's.
    """
    stretch = (1 - first.mean()) / (1 - second.mean()).clamp_min(1e-3)
    return torch.lerp(first, 1 - stretch * (1 - second), share)


def _degrees(cosines: Tensor) -> Tensor:
    """Return the degrees of `cosines`, in float32 at least: half precision has too few of them."""
    return (1.0 + cosines.to(torch.promote_types(cosines.dtype, torch.float32))) / 2.0
