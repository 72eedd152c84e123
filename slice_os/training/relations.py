"""What a student learns of its teachers: which texts are nearer to each other than others."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from slice_os.encoder import Encoder


def matrix_loss(student: Tensor, teacher: Tensor, temperature: float = 0.05) -> Tensor:
    """Return the divergence of two matrices of cosines, a mean over rows.

    KL(softmax(T / t) || softmax(S / t)) of each row (docs/training.md): which texts are nearer than
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


def similarities(
    teacher: Encoder, texts: Sequence[str], others: Sequence[str] = (), *, like: Tensor
) -> Tensor:
    """Return the teacher's cosines of `texts` with `others`, or with each other, ``[n, m]``."""
    vectors = torch.from_numpy(teacher.encode([*texts, *others])).to(like)
    rows = vectors[: len(texts)]
    return rows @ (vectors[len(texts) :] if others else rows).T


def blended(first: Tensor, second: Tensor, share: float) -> Tensor:
    """Return the mean of two teachers' cosines, `share` of the second.

    Encoders spread their cosines differently: some call nothing less alike than 0.4. The second's
    are stretched first, so that both are on average as far from 1.
    """
    stretch = (1 - first.mean()) / (1 - second.mean()).clamp_min(1e-3)
    return torch.lerp(first, 1 - stretch * (1 - second), share)
