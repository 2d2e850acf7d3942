"""schedule/rules/depthwise.py: the tiles, the steps taken, values, proof, replay; the compiled
kernels have the same bits on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.estimate import estimate
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.rules.depthwise import window_tiles
from tilewright.schedule.rules.knobs.tiles import Tile
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.error_bound import reference
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from .test_rules import TARGETS, check

pytestmark = pytest.mark.sampled(5)


def depthwise(
    height: int, width: int, channels: int, *, stride: int = 1, kernel: int = 3, pad: int = -1
) -> PrimFunc:
    """pad: the padding that is computed here, on each side; by default none is needed."""
    taps = kernel - 1
    more = taps if pad < 0 else 0
    x = te.placeholder((1, height + more, width + more, channels), "float32", name="X")
    w = te.placeholder((kernel, kernel, channels), "float32", name="W", constant=True)
    r, s = te.reduce_axis(kernel, name="r"), te.reduce_axis(kernel, name="s")
    data, room = x, taps
    if pad > 0:
        room = 2 * pad

        def padded(n: Expr, h: Expr, v: Expr, c: Expr) -> Expr:
            inside = te.all_of(h >= pad, h < height + pad, v >= pad, v < width + pad)
            return te.select(inside, x[n, h - pad, v - pad, c], 0.0)

        shape = (1, height + room, width + room, channels)
        data = te.compute(shape, padded, name="P")
    count = [(size + room - kernel) // stride + 1 for size in (height, width)]
    y = te.compute(
        (1, *count, channels),
        lambda n, h, v, c: te.sum(
            data[n, h * stride + r, v * stride + s, c] * w[r, s, c], axis=(r, s)
        ),
        name="Y",
    )
    z = te.compute(y.shape, lambda *at: te.maximum(y[at] + 1.0, 0.0), name="Z")
    return te.func(x, w, z if pad > 0 else y, name="depthwise")


def windows_along(length: int, channels: int) -> PrimFunc:
    """Depthwise along one axis, the other is a batch."""
    x = te.placeholder((2, length + 2, channels), "float32", name="X")
    w = te.placeholder((3, channels), "float32", name="W", constant=True)
    s = te.reduce_axis(3, name="s")
    y = te.compute(
        (2, length, channels),
        lambda n, v, c: te.sum(w[s, c] * x[n, v + s, c], axis=s),
        name="Y",
    )
    return te.func(x, w, y, name="windows_along")


def depthwise_of_bytes(h: int, w: int, channels: int) -> PrimFunc:
    """Bytes, padded with 3, times float32, which has the sums exactly."""
    x = te.placeholder((h, w, channels), "uint8", name="X")
    f = te.placeholder((3, 3, channels), "float32", name="W", constant=True)
    p = te.compute(
        (h + 2, w + 2, channels),
        lambda u, v, c: te.select(
            (u >= 1) & (u <= h) & (v >= 1) & (v <= w), x[u - 1, v - 1, c], te.const(3, "uint8")
        ),
        name="P",
    )
    r, s = te.reduce_axis(3, name="r"), te.reduce_axis(3, name="s")
    y = te.compute(
        (h, w, channels),
        lambda u, v, c: te.sum(te.cast(p[u + r, v + s, c], "float32") * f[r, s, c], axis=(r, s)),
        name="Y",
    )
    return te.func(x, f, y, name="depthwise_of_bytes")


DEPTHWISE: dict[str, Callable[[], PrimFunc]] = {
    "plain": lambda: depthwise(5, 6, 20),
    "strided": lambda: depthwise(5, 6, 3, stride=2),
    "padded": lambda: depthwise(7, 9, 20, pad=1),
    "padded and strided": lambda: depthwise(8, 7, 18, pad=1, stride=2),
    "of five taps": lambda: depthwise(4, 5, 5, kernel=5, pad=2),
    "of seven taps": lambda: depthwise(3, 6, 3, kernel=7, pad=3),
    "of one pixel": lambda: depthwise(1, 1, 5, pad=1),
    "with a wide border": lambda: depthwise(3, 3, 5, pad=4),
    "along one axis": lambda: windows_along(11, 20),
    "of bytes": lambda: depthwise_of_bytes(5, 6, 20),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DEPTHWISE)
def test_depthwise_sums_are_right(name: str, target: str) -> None:
    func = DEPTHWISE[name]()
    assert rule_for(func).name == "depthwise"
    check(func, target)


@pytest.mark.slow
def test_random_decisions_stay_right() -> None:
    func, seen = depthwise(4, 5, 9, pad=1), set[str]()
    for seed in range(8):
        target = TARGETS[1 + seed % 2]
        sch = default_schedule(func, Target.parse(target), Random(seed))
        if str(sch) not in seen:
            check(func, target, Random(seed))
        seen.add(str(sch))
    assert len(seen) > 4


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", ["padded", "padded and strided", "of seven taps"])
def test_depthwise_sums_have_the_same_bits_on_any_number_of_threads(name: str) -> None:
    func = DEPTHWISE[name]()
    rng = np.random.default_rng(0)
    given = [p.buffer for p in func.parameters if p.role != "output"]
    arrays = {b.name: rng.standard_normal(b.shape, dtype=np.float32) for b in given}
    kernel = tw.build(func, constants={"W": arrays["W"]})
    results = [kernel(arrays["X"], threads=threads) for threads in (1, 2, 3)]
    comparison = reference(func, arrays).compare({func.outputs[0].name: results[0]})
    assert comparison, str(comparison)
    assert all(result.tobytes() == results[0].tobytes() for result in results)


def test_padding_of_bytes_is_no_copy_either() -> None:
    sch = default_schedule(depthwise_of_bytes(20, 20, 32), Target.parse("c:avx512"))
    assert sch.blocks() == ("Y", "Y_reg_out")
    assert "vectorized(16)" in str(sch.func)


def test_padding_of_a_depthwise_sum_is_no_copy_and_no_choice() -> None:
    sch = default_schedule(depthwise(20, 20, 32, pad=1), Target.parse("c:avx512"))
    assert sch.blocks() == ("Y", "Z")
    assert [line.strip() for line in str(sch.func).splitlines()[2:11]] == [
        "for h_0 in parallel(10):",
        "for c_0 in range(2):",
        "for v_0 in range(5):",
        "for n in range(1):",
        'Y_reg = alloc(float32[1, 20, 20, 32], "register", origin=Y)',
        "for r in unrolled(3):",
        "for s in unrolled(3):",
        "for h_1 in unrolled(2):",
        "for v_1 in unrolled(4):",
    ]
    source = tw.build(sch, "c:avx512", constants={"W": np.ones((3, 3, 32), np.float32)}).source
    body = source.split("*/", 1)[1]
    assert " ? " not in body
    assert body.count("if (") == 2  # the first and the last rows of tiles


def test_a_wide_border_stays_a_copy() -> None:
    sch = default_schedule(depthwise(9, 9, 16, pad=4), Target.parse("c:avx512"))
    assert sch.blocks() == ("P", "Y", "Z")


def test_a_tile_of_windows_leaves_registers_for_data_and_weights() -> None:
    target = Target.parse("c:avx512")
    (block,) = depthwise(56, 56, 64).blocks
    tiles = window_tiles(block, target)
    assert tiles[0] == Tile(2, 4, 1)
    assert all(tile.accumulators <= 16 for tile in tiles)
    (block,) = windows_along(40, 64).blocks
    assert window_tiles(block, target)[0].outer_rows == 1


@pytest.mark.parametrize("stride", [1, 2])
def test_padding_that_is_no_copy_costs_nothing(stride: int) -> None:
    target = Target.parse("c:avx512")
    padded = depthwise(56, 56, 64, pad=1, stride=stride)
    assert estimate(padded, target) < 1.2 * estimate(depthwise(56, 56, 64, stride=stride), target)
    scheduled = estimate(default_schedule(padded, target), target)
    assert scheduled == pytest.approx(estimate(padded, target), rel=0.3)
