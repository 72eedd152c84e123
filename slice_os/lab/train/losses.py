"""Losses over triples, SLICE's and Phrase-BERT's, and divergence from a teacher's similarities.

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

    Raises:
        ValueError: The shapes differ, or there is no query.
    """
    if positive.ndim != 1 or positive.shape != negative.shape or not len(positive):
        raise ValueError(
            f"Cosines {tuple(positive.shape)} and {tuple(negative.shape)}: give [Q] and [Q]."
        )
    return functional.softplus(scale * (_degrees(negative) - _degrees(positive))).mean()


def triplet_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0) -> Tensor:
    """Return Phrase-BERT's loss (Wang et al. 2021, section 3.1), a mean over the batch.

    Of each triplet of vectors p, p+ and p-, as they are, not scaled to unit length:

        L = max(0, margin + |p - p+| - |p - p-|)

    Args:
        anchor: Float ``[B, d]``, phrases.
        positive: Float ``[B, d]``, their paraphrases, or contexts that they stand in.
        negative: Float ``[B, d]``, others.
        margin: By how much a negative should be farther away, above 0.

    Returns:
        A scalar, float32, or float64 if the vectors are.

    Raises:
        ValueError: The shapes differ, or there is no triplet.
    """
    shapes = [tuple(one.shape) for one in (anchor, positive, negative)]
    if len(set(shapes)) != 1 or anchor.ndim != 2 or not len(anchor):
        raise ValueError(f"Vectors {', '.join(map(str, shapes))}: give three of [B, d].")
    return functional.triplet_margin_loss(anchor, positive, negative, margin=margin)


def in_batch_loss(
    cosines: Tensor, scale: float = SCALE, *, negatives: Tensor | None = None
) -> Tensor:
    """Return `slice_loss` with every other passage of the batch as a negative.

    Of each query q, that with more in its denominator:

        L = -scale s_qq + log(sum_b e^(scale s_qb) + sum_k e^(scale s_qk)),    s = (1 + cos) / 2

    with b the passages of the batch and k the query's own negatives.

    Args:
        cosines: Float ``[Q, B]``, ``Q <= B``: passage q answers query q; the others, also those
            past Q, are negatives of it.
        scale: The lambda of the formula.
        negatives: Float ``[Q, K]``, cosines with K further negatives of each query's own.

    Returns:
        A scalar, float32, or float64 if the cosines are.

    Raises:
        ValueError: The shapes do not belong together, or there is no query.
    """
    if cosines.ndim != 2 or not 1 <= len(cosines) <= cosines.shape[1]:
        raise ValueError(f"Cosines {tuple(cosines.shape)}: give [Q, B], with 1 <= Q <= B.")
    degrees = _degrees(cosines)
    if negatives is not None:
        if negatives.ndim != 2 or len(negatives) != len(cosines):
            raise ValueError(
                f"Negatives {tuple(negatives.shape)}: give [{len(cosines)}, K], "
                "a row for each query."
            )
        degrees = torch.cat((degrees, _degrees(negatives)), dim=1)
    answers = torch.arange(len(cosines), device=cosines.device)
    return functional.cross_entropy(scale * degrees, answers)


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
