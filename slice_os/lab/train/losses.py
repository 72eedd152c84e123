"""SLICE's losses over triples and the best spans that they see, and teachers' similarities.

SLICE is Orbach et al. (2023), Span-Aggregatable, Contextualized Word Embeddings for Effective
Phrase Mining; its loss is that of section 3.1.

Which span of a passage is best is found without a gradient, from tables of numbers: dot products of
the query with every word, and span norms from the Gram matrix of the words. Only the best spans'
vectors are formed, so training costs little more than encoding: nothing is of size spans x
dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
    others, whatever the cosines are. Both are float ``[m, n]``; the student's have a gradient.
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
    take nearly all of a row. Both are float ``[K, K]``; the student's have a gradient.
    """
    own = torch.eye(len(student), dtype=torch.bool, device=student.device)
    wanted = functional.softmax((teacher / temperature).masked_fill(own, -torch.inf), dim=1)
    log = functional.log_softmax((student / temperature).masked_fill(own, -torch.inf), dim=1)
    return -(wanted * log.masked_fill(own, 0.0)).sum(dim=1).mean()


def blended(
    first: Tensor,
    second: Sequence[Encoder],
    share: float,
    texts: Sequence[str],
    others: Sequence[str] = (),
) -> Tensor:
    """Return a mean of teachers' cosines of `texts` with `others`, or with each other, ``[n, m]``.

    `share` goes to the second teachers in equal parts, the rest to `first`. Encoders spread their
    cosines differently: some give no two texts less than 0.4. So the second ones' are rescaled,
    until their mean distance from 1 is that of `first`.
    """
    goal = (1 - share) * first
    for teacher in second:
        vectors = torch.from_numpy(teacher.encode([*texts, *others])).to(first)
        rows = vectors[: len(texts)]
        distances = 1 - rows @ (vectors[len(texts) :] if others else rows).T
        stretch = (1 - first.mean()) / distances.mean().clamp_min(1e-3)
        goal = goal + share / len(second) * (1 - stretch * distances)
    return goal


def _degrees(cosines: Tensor) -> Tensor:
    """Return the degrees of `cosines`, in float32 at least: half precision has too few of them."""
    return (1.0 + cosines.to(torch.promote_types(cosines.dtype, torch.float32))) / 2.0


LENGTHS = range(1, 11)
"""Span lengths in training, as in Orbach et al. (2023), section 5 (MAX_SIZE is 10)."""


class BestSpans(NamedTuple):
    """The best spans: words ``starts..ends`` (half-open, int64) and their `cosines`.

    Only the cosines have a gradient. Where a passage has no span they are -1, without a gradient,
    and the span is 0..0.
    """

    cosines: Tensor
    starts: Tensor
    ends: Tensor


def best_spans(
    queries: Tensor,
    words: Tensor,
    counts: Tensor,
    lengths: range | Sequence[range] = LENGTHS,
    *,
    crossed: bool = False,
) -> BestSpans:
    """Return the best span of passages for queries, of the lengths that each is compared with.

    A tie goes to fewer words, then further to the front. A passage shorter than the window counts
    as a whole (`slice_os.spans.fit_window`). A span whose words cancel, to a squared norm under
    the square root of the dtype's precision of their energy, points nowhere and is no span. A NaN
    in a word that counts gives NaN.

    Args:
        queries: Float ``[Q, d]``, of unit length.
        words: Float ``[B, N, d]``, the sums of each word's token vectors; whatever stands past a
            passage's words is ignored, NaN included.
        counts: Int ``[B]``, how many words each passage has, 0..N.
        lengths: A range of span lengths, or one for each query.
        crossed: Compare every query with every passage, not query b with passage b alone.

    Returns:
        Tensors ``[B]``; ``[Q, B]`` if `crossed`. Cosines are float32, or float64 if `words` are,
        also where autocast is on.
    """
    windows = [lengths] * len(queries) if isinstance(lengths, range) else lengths
    device = words.device
    bounds = torch.tensor(
        [[window[0] for window in windows], [window[-1] for window in windows]],
        dtype=torch.int64,
        device=device,
    )
    longest = min(max((window[-1] for window in windows), default=0), words.shape[1])
    with torch.autocast(device.type, enabled=False):
        dtype = torch.promote_types(words.dtype, torch.float32)
        padded = torch.arange(words.shape[1], device=device) >= counts[:, None]
        clean = words.to(dtype).masked_fill(padded[:, :, None], 0.0)
        # From here on [P, B] are the pairs of query and passage: P is Q if crossed, else 1.
        axis = 1 if crossed else 0
        asked = queries.to(dtype).unsqueeze(axis)
        with torch.no_grad():
            present, starts, ends = _search(
                asked, clean, counts, bounds.unsqueeze(axis + 1), longest
            )
            places = torch.arange(words.shape[1], device=device)
            inside = (places >= starts[:, :, None]) & (places < ends[:, :, None])
        vectors = torch.einsum("pbn,bnd->pbd", inside.to(dtype), clean)
        norms = torch.linalg.vector_norm(vectors, dim=-1).masked_fill(~present, 1.0)
        cosines = torch.einsum("pbd,pbd->pb", vectors, asked) / norms
        best = BestSpans(cosines.masked_fill(~present, -1.0), starts, ends)
    return best if crossed else BestSpans(*(part[0] for part in best))


def _search(
    asked: Tensor, words: Tensor, counts: Tensor, bounds: Tensor, longest: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return whether there is a span, and the best one's start and end, each ``[P, B]``.

    `asked` is ``[Q, 1, d]`` or ``[1, B, d]``, `words` ``[B, N, d]`` with zeros past `counts`;
    `bounds` int ``[2, Q, 1]`` or ``[2, 1, B]``, the first and last length, none above `longest`
    that a passage could hold.
    """
    scores = torch.einsum("pbd,bnd->pbn", asked, words)
    sums = torch.nn.functional.pad(scores.cumsum(-1), (1, 0))
    shortest = torch.minimum(bounds[0], counts)  # a shorter passage counts as a whole
    values = [scores.new_full(scores.shape[:2], -torch.inf)]
    starts = [torch.zeros_like(values[0], dtype=torch.int64)]
    for length, norms in enumerate(_norms(words, longest), start=1):
        cosines = (sums[:, :, length:] - sums[:, :, :-length]) / norms
        ends = torch.arange(length, words.shape[1] + 1, device=words.device)
        wanted = (shortest <= length) & (length <= bounds[1])
        spans = (ends <= counts[:, None]) & (norms != 0) & wanted[:, :, None]
        value, start = cosines.masked_fill_(~spans, -torch.inf).max(-1)
        values.append(value)
        starts.append(start)
    value, length_of = torch.stack(values).max(0)
    present = value != -torch.inf  # NaN too: a student that has diverged must not go unseen
    start = torch.stack(starts).gather(0, length_of[None])[0]
    return present, start, start + length_of


def _norms(words: Tensor, longest: int) -> Iterator[Tensor]:
    """Yield the norms ``[B, N - l + 1]`` of the spans of l = 1..`longest` words, by start.

    A norm is 0 where the words cancel. With G the Gram matrix, adding word j to a span that begins
    at word i adds to the squared norm

        |i..j|^2 = |i..j-1|^2 + 2 (G[i, j] + ... + G[j-1, j]) + G[j, j]

    so each length takes one more diagonal of G.
    """
    gram = torch.bmm(words, words.mT)
    share = torch.finfo(words.dtype).eps ** 0.5
    single = gram.diagonal(dim1=1, dim2=2)
    beside = torch.zeros_like(single)  # the sum in brackets
    squares, energies = single, single
    for length in range(1, longest + 1):
        if length > 1:
            last = single[:, length - 1 :]
            beside = beside[:, 1:] + gram.diagonal(length - 1, dim1=1, dim2=2)
            squares = squares[:, :-1] + 2.0 * beside + last
            energies = energies[:, :-1] + last
        # Not <=, which would take infinite words for words that cancel.
        yield squares.masked_fill(squares < share * energies, 0.0).sqrt()
