"""The tiles that the default rule chooses for products stay in registers: what the assembly shows,
on any x86.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.schedule.rules.default import default_schedule
from tilewright.tir.target.target import Target

from ..isas import reads_x86
from ..schedule.programs import image_conv
from ..schedule.rule_checks import answer
from .assembly import innermost_loops, spills

TARGET = Target.parse("c:avx512")


def product(rows: int, columns: int, inner: int) -> tw.PrimFunc:
    a = te.placeholder((rows, inner), "float32", name="A")
    b = te.placeholder((inner, columns), "float32", name="B", constant=True)
    k = te.reduce_axis(inner, name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="product")


@pytest.mark.sampled(3)
@reads_x86
@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    "shape",
    [(128, 768, 768), (127, 509, 1021), (16, 256, 4096), (1024, 512, 1024), (1, 256, 4096)],
    ids=lambda shape: "x".join(map(str, shape)),
)
def test_the_tile_of_a_product_is_never_on_the_stack(shape: tuple[int, int, int]) -> None:
    func = product(*shape)
    sch = default_schedule(func, TARGET)
    tile = answer(sch, "tile of C")
    assert isinstance(tile, tuple)
    weights = np.zeros(shape[:0:-1], np.float32)
    kernel = tw.build(sch, TARGET, constants={"B": weights}, verify="off")
    inner = innermost_loops(kernel.assembly, tile[0] * tile[1] * tile[2])
    assert inner
    assert not any(map(spills, inner))


@pytest.mark.sampled(2)
@reads_x86
@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("kernel", [3, 7])
def test_what_windows_of_an_image_share_is_not_kept_on_the_stack(kernel: int) -> None:
    func = image_conv(57, 113, 64, kernel=kernel)
    sch = default_schedule(func, TARGET)
    tile = answer(sch, "tile of conv")
    assert isinstance(tile, tuple)
    weights = np.zeros((kernel, kernel, 3, 64), np.float32)
    built = tw.build(sch, TARGET, constants={"W": weights}, verify="off")
    inner = innermost_loops(built.assembly, tile[0] * tile[1] * tile[2])
    assert inner
    assert not any(map(spills, inner))
