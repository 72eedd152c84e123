"""The principal axes of spans: cosines stay, and the first dimensions say most."""

import numpy as np
import pytest

from slice_os.exporters.folder import principal_axes


def passages(rng, count=40, dimension=16, rank=5):
    """Word vectors that lie near a few directions, spread over all dimensions."""
    directions = rng.standard_normal((rank, dimension))
    return [
        (
            rng.standard_normal((30, rank)) @ directions
            + 0.05 * rng.standard_normal((30, dimension))
        ).astype(np.float32)
        for _ in range(count)
    ]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_rotation_after_which_the_first_dimensions_say_most():
    found = passages(np.random.default_rng(1))
    axes = principal_axes(found)
    assert axes.dtype == np.float32
    np.testing.assert_allclose(axes.T @ axes, np.eye(16), atol=1e-5)
    np.testing.assert_array_equal(axes, principal_axes(found))
    words = unit(np.concatenate(found))
    turned = words @ axes
    np.testing.assert_allclose(turned @ turned.T, words @ words.T, atol=1e-4)
    energy = (turned**2).mean(axis=0)
    assert energy[:5].sum() > 0.99
    assert (words[:, :5] ** 2).sum(axis=1).mean() < 0.7
    # Words are not the spans that it was made of: nearly sorted.
    assert (np.diff(energy) < 0.05).all()


def test_no_orthogonal_matrix_keeps_more_of_single_words():
    found = [one[:1] for one in passages(np.random.default_rng(2), count=300)]
    axes = principal_axes(found)
    words = unit(np.concatenate(found))
    kept = ((words @ axes)[:, :3] ** 2).sum()
    assert kept == pytest.approx((np.linalg.svd(words)[1][:3] ** 2).sum(), rel=1e-4)


@pytest.mark.parametrize("words", [0, 1, 15])
def test_too_few_words(words):
    with pytest.raises(ValueError, match="too few"):
        principal_axes([np.ones((words, 16), np.float32)] if words else [])
