"""SLICE's objective (docs/training.md): a passage that answers the query beats one that does not.

It sees of a passage its best span's cosine with the query alone, as `best_spans` gives it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

SCALE = 30.0
"""SLICE's lambda: how much a lead in degree counts."""


def slice_loss(positive: Tensor, negative: Tensor, scale: float = SCALE) -> Tensor:
    """Return SLICE's loss, a mean over the batch.

    Of each query (docs/training.md):

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


def _degrees(cosines: Tensor) -> Tensor:
    """Return the degrees of `cosines`, in float32 at least: half precision has too few of them."""
    return (1.0 + cosines.to(torch.promote_types(cosines.dtype, torch.float32))) / 2.0
