"""Which inputs an output may overwrite."""

from __future__ import annotations

from tilewright.tir.analysis.in_place import overwritable_inputs
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te


def names(func: PrimFunc) -> list[str]:
    return [buffer.name for buffer in overwritable_inputs(func)]


def test_elementwise_inputs_may_be_overwritten_and_broadcast_ones_not() -> None:
    x, y = (te.placeholder((4, 8), "float32", name=n) for n in "xy")
    c = te.placeholder((8,), "float32", name="c")
    z = te.compute((4, 8), lambda i, j: x[i, j] * y[i, j] + c[j], name="z")
    assert names(te.func(x, y, c, z, name="f")) == ["x", "y"]


def test_an_input_that_is_also_read_elsewhere_may_not() -> None:
    x, y = (te.placeholder((8,), "float32", name=n) for n in "xy")
    z = te.compute((8,), lambda i: x[i] + x[7 - i] + y[i], name="z")
    assert names(te.func(x, y, z, name="f")) == ["y"]


def test_an_input_behind_an_intermediate_that_is_permuted_may_not() -> None:
    x, y = (te.placeholder((4, 4), "float32", name=n) for n in "xy")
    t = te.compute((4, 4), lambda i, j: te.maximum(x[i, j], 0.0), name="t")
    z = te.compute((4, 4), lambda i, j: t[j, i] + y[i, j], name="z")
    assert names(te.func(x, y, z, name="f")) == ["y"]


def test_a_chain_of_elementwise_blocks_with_a_constant_between_may() -> None:
    x = te.placeholder((8,), "float32", name="x")
    half = te.compute((1,), lambda i: te.const(0.5, "float32"), name="half")
    t = te.compute((8,), lambda i: x[i] * half[0], name="t")
    z = te.compute((8,), lambda i: te.maximum(t[i], 0.0), name="z")
    assert names(te.func(x, z, name="f")) == ["x"]


def test_another_type_or_shape_may_not() -> None:
    x = te.placeholder((8,), "float64", name="x")
    y = te.compute((8,), lambda i: te.cast(x[i], "float32"), name="y")
    assert names(te.func(x, y, name="f")) == []
    z = te.compute((2, 4), lambda i, j: x[i * 4 + j], name="z")
    assert names(te.func(x, z, name="f")) == []


def test_a_reduction_may_not() -> None:
    x = te.placeholder((8,), "float32", name="x")
    k = te.reduce_axis(8, name="k")
    s = te.compute((1,), lambda i: te.sum(x[k], axis=k), name="s")
    z = te.compute((8,), lambda i: x[i] / s[0], name="z")
    assert names(te.func(x, z, name="f")) == []
