"""graph/kernels/online_attention.py: tiles of keys give what all keys together give, whatever they
hold.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.kernels.fused_kernel import FusedKernel, KernelOperand, KernelStep
from tilewright.graph.kernels.online_attention import OnlineAttention, as_online
from tilewright.graph.ops.attention import Attention, Heads
from tilewright.graph.plan.choose import choose
from tilewright.graph.plan.fusion import fuse
from tilewright.graph.plan.pricing import Pricer
from tilewright.graph.types import TensorType
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

Array = np.ndarray


def computed(op: Attention, *arrays: Array) -> Array:
    """What the stages of an operator give."""
    inputs = [
        te.placeholder(a.shape, str(a.dtype), name=n) for a, n in zip(arrays, "qkvm", strict=False)
    ]
    func = te.func(*inputs, *op.express(*inputs, name="y"), name="f")
    return evaluate(func, dict(zip("qkvm", arrays, strict=False)))["y"]


def parts(rows: int, places: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    shapes = (2, rows, 3, 4), (2, places, 3, 4), (2, places, 3, 5)
    q, k, v = (rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
    return q, k, v


@pytest.mark.parametrize("places", [1, 16, 31, 48])
@pytest.mark.parametrize("outer", [False, True])
def test_tiles_give_what_all_keys_together_give(places: int, outer: bool) -> None:
    op = OnlineAttention(3, 0.5, outer=outer, tile=16)
    arrays = parts(5, places)
    (expected,) = op.reference(*arrays)
    np.testing.assert_allclose(computed(op, *arrays), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("guard", ["none", "guarded", "masked"])
@pytest.mark.parametrize("value", [-np.inf, np.inf])
def test_rows_and_tiles_without_a_finite_largest_score(guard: str, value: float) -> None:
    """Row 0 has one such score in its first tile, row 1 has no other ones there, row 2 nowhere."""
    guards = {"guarded": guard == "guarded", "masked": guard == "masked"}
    op = OnlineAttention(3, 0.5, **guards, tile=16)
    arrays = parts(5, 40)
    mask = np.zeros((5, 40), np.float32)
    mask[0, 3] = value
    mask[1, :16] = value
    mask[2] = value
    with np.errstate(invalid="ignore"):
        (expected,) = op.reference(*arrays, mask)
        np.testing.assert_allclose(computed(op, *arrays, mask), expected, rtol=2e-5, atol=2e-6)
    is_zero = guard == "guarded" or (guard == "masked" and value < 0)
    assert np.isnan(expected[:, 2]).all() is np.bool_(not is_zero)


def fused(rows: int, places: int) -> FusedKernel:
    shapes = (2, rows, 3, 4), (2, places, 3, 4), (2, places, 3, 5)
    operands = (
        KernelOperand(n, TensorType("float32", s)) for n, s in zip("qkv", shapes, strict=True)
    )
    return FusedKernel(tuple(operands), (KernelStep(Attention(3, 0.5, Heads()), (0, 1, 2)),))


def test_a_tile_holds_no_more_keys_than_there_are() -> None:
    for places, tile in ((3, 16), (17, 32), (500, 64)):
        online = as_online(fused(9, places))
        assert online is not None
        assert online.steps[0].op == OnlineAttention(3, 0.5, Heads(), tile=tile)


def test_few_rows_and_other_operators_are_no_case_of_it() -> None:
    assert as_online(fused(2, 100)) is None
    online = as_online(fused(9, 9))
    assert online is not None
    assert as_online(online) is None


@pytest.mark.parametrize(
    ("target", "strict", "title"),
    [
        ("cuda:sm_80", False, "Attention by tiles of keys"),
        ("cuda:sm_80", True, "Attention"),
        ("c:avx2", False, "Attention"),
    ],
)
def test_a_gpu_takes_keys_by_tiles(target: str, strict: bool, title: str) -> None:
    builder = GraphBuilder("net")
    names = [builder.input(o.name, o.type) for o in fused(9, 20).operands]
    y = builder.add(Attention(3, 0.5), *names)
    graph = builder.finish({"y": y})
    (decision,) = choose(graph, fuse(graph).groups, Pricer(Target.parse(target), strict=strict))
    assert decision.chosen.title == title
