"""Attention: where heads may stand, masks, guarded rows, what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.attention import Attention, Heads
from tilewright.graph.types import Array, TensorType
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.te import te

Random = Callable[..., Array]
BATCH, HEADS, ROWS, PLACES, DEPTH = 2, 3, 4, 5, 6


def expressed(op: Attention, *arrays: Array) -> Array:
    """What the tensor expression computes."""
    inputs = [te.placeholder(a.shape, "float32", name=f"x{n}") for n, a in enumerate(arrays)]
    func = te.func(*inputs, *op.express(*inputs, name="y"), name="attention")
    (result,) = evaluate(func, list(arrays)).values()
    return result


def spelled(q: Array, k: Array, v: Array, scale: float, mask: Array | float = 0.0) -> Array:
    """[batch, head, place, depth] of each -> the same of the result."""
    scores = np.einsum("bhsd,bhtd->bhst", q, k) * scale + mask
    powers = np.exp(scores - scores.max(axis=3, keepdims=True))
    return np.einsum("bhst,bhtd->bhsd", powers / powers.sum(axis=3, keepdims=True), v)


def parts(random_array: Random) -> tuple[Array, Array, Array]:
    return (
        random_array(1, BATCH, HEADS, ROWS, DEPTH),
        random_array(1, BATCH, HEADS, PLACES, DEPTH),
        random_array(1, BATCH, HEADS, PLACES, 7),
    )


@pytest.mark.parametrize("outer", [False, True])
def test_heads_may_stand_before_or_behind_the_places(random_array: Random, outer: bool) -> None:
    q, k, v = parts(random_array)
    wanted = spelled(q, k, v, 0.5)
    turn = (0, 2, 1, 3)
    for axes in ((True, True, True), (False, True, False), (False, False, False)):
        op = Attention(HEADS, 0.5, *(Heads(outer=one) for one in axes), outer=outer)
        arrays = [
            np.ascontiguousarray(a if one else a.transpose(turn))
            for a, one in zip((q, k, v), axes, strict=True)
        ]
        (got,) = op.reference(*arrays)
        expected = wanted if outer else wanted.transpose(turn)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(expressed(op, *arrays), expected, rtol=1e-5, atol=1e-6)


def test_heads_may_stand_side_by_side_with_others(random_array: Random) -> None:
    joined = random_array(1, BATCH, ROWS, 3 * HEADS, DEPTH)
    op = Attention(HEADS, 0.25, Heads(0), Heads(HEADS), Heads(2 * HEADS))
    q, k, v = (joined[:, :, n * HEADS : (n + 1) * HEADS].transpose(0, 2, 1, 3) for n in range(3))
    wanted = spelled(q, k, v, 0.25).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(op.reference(joined, joined, joined)[0], wanted, rtol=1e-5)
    found = expressed(op, joined, joined, joined)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(), (PLACES,), (1, 1, ROWS, PLACES), (BATCH, HEADS, 1, PLACES)])
def test_a_mask_broadcasts(random_array: Random, shape: tuple[int, ...]) -> None:
    outer = Heads(outer=True)
    op = Attention(HEADS, 1.0, outer, outer, outer, outer=True)
    q, k, v = parts(random_array)
    mask = random_array(2, *shape)
    wanted = spelled(q, k, v, 1.0, mask)
    np.testing.assert_allclose(op.reference(q, k, v, mask)[0], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(expressed(op, q, k, v, mask), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan])
def test_a_guarded_row_without_a_finite_largest_score_is_zero(
    random_array: Random, value: float
) -> None:
    outer = Heads(outer=True)
    op = Attention(HEADS, 1.0, outer, outer, outer, guarded=True, outer=True)
    q, k, v = parts(random_array)
    mask = np.zeros((ROWS, PLACES), np.float32)
    mask[1] = -np.inf
    mask[1, 2] = value
    for got in (op.reference(q, k, v, mask)[0], expressed(op, q, k, v, mask)):
        assert not got[:, :, 1].any()
        assert np.isfinite(got).all()
        assert got[:, :, 0].any()
    open_ = Attention(HEADS, 1.0, outer, outer, outer, outer=True)
    for got in (open_.reference(q, k, v, mask)[0], expressed(open_, q, k, v, mask)):
        assert np.isnan(got[:, :, 1]).all()
        assert np.isfinite(got[:, :, 0]).all()


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan])
def test_of_a_masked_attention_only_a_row_without_a_score_is_zero(
    random_array: Random, value: float
) -> None:
    op = Attention(HEADS, 1.0, *(Heads(outer=True),) * 3, outer=True, masked=True)
    q, k, v = parts(random_array)
    mask = np.zeros((ROWS, PLACES), np.float32)
    mask[1] = -np.inf
    mask[1, 2] = value
    for got in (op.reference(q, k, v, mask)[0], expressed(op, q, k, v, mask)):
        assert np.isfinite(got[:, :, 0]).all()
        hidden = got[:, :, 1]
        assert not hidden.any() if value == -np.inf else np.isnan(hidden).all()


def test_a_weight_that_is_no_normal_number_is_zero(random_array: Random) -> None:
    """A mask of -100 makes such; products with them would take a hundred times as long."""
    op = Attention(HEADS, 1.0, *(Heads(outer=True),) * 3, outer=True)
    q, k, v = parts(random_array)
    q, mask = np.zeros_like(q), np.zeros(PLACES, np.float32)
    mask[1:], v[:, :, 1:] = -100, 1e36
    np.testing.assert_array_equal(expressed(op, q, k, v, mask), v[:, :, :1].repeat(ROWS, 2))
    mask[1:] = -80
    assert (expressed(op, q, k, v, mask) > 1).all()


def test_zero_times_a_value_that_is_no_number_is_none(random_array: Random) -> None:
    op = Attention(HEADS, 1.0, *(Heads(outer=True),) * 3, guarded=True, outer=True)
    q, k, v = parts(random_array)
    v[:, :, 3] = np.nan
    mask = np.full(PLACES, -np.inf, np.float32)
    for got in (op.reference(q, k, v, mask)[0], expressed(op, q, k, v, mask)):
        assert np.isnan(got).all()


def refused(op: Attention, *shapes: tuple[int, ...]) -> str:
    with pytest.raises(ModelError) as caught:
        op.infer(tuple(TensorType("float32", shape) for shape in shapes))
    return str(caught.value)


def test_what_does_not_fit_is_refused() -> None:
    x = (1, 4, 2, 8)
    assert refused(Attention(2, 1.0), x, x, (4, 2, 8)) == (
        "ModelError: Attention: expected arrays of four axes, got float32[1, 4, 2, 8], "
        "float32[1, 4, 2, 8], float32[4, 2, 8]. [heads-rank]"
    )
    listed = "float32[1, 4, 2, 8], float32[1, 4, 2, 8], float32[1, 4, 2, 8]"
    for op, count in ((Attention(3, 1.0), 3), (Attention(2, 1.0, key=Heads(1)), 2)):
        assert refused(op, x, x, x) == (
            f"ModelError: Attention: expected {count} heads of q, k and v that fit, got {listed}. "
            "[heads-fit]"
        )
    assert refused(Attention(2, 1.0), x, x, x, (3, 4)) == (
        "ModelError: Attention: shapes do not broadcast: axis -2 has sizes [3, 4] in "
        "float32[1, 2, 4, 4], float32[3, 4]. [op-broadcast]"
    )
    assert refused(Attention(2, 1.0), x, x, x, (5, 2, 4, 4)) == (
        "ModelError: Attention: expected a mask that broadcasts to float32[1, 2, 4, 4]. "
        "[heads-mask]"
    )
