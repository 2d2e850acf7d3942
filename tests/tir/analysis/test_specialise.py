"""tir/analysis/specialise.py: a function at one choice of its sizes is the one that te would have
made.
"""

from __future__ import annotations

import pytest

from tilewright.schedule.schedule import Schedule
from tilewright.tir.analysis.simplify import simplify
from tilewright.tir.analysis.specialise import at_most, sizes_of, specialise
from tilewright.tir.dim import Extent
from tilewright.tir.errors import IRError
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te
from tilewright.tir.text.equal import difference
from tilewright.tir.text.printer import print_expr
from tilewright.tir.verify.verify import Stage, verify


def matmul(rows: Extent) -> PrimFunc:
    a = te.placeholder((rows, 4), "float32", name="A")
    b = te.placeholder((4, 6), "float32", name="B")
    k = te.reduce_axis(4, name="k")
    c = te.compute((rows, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((rows, 6), lambda i, j: te.maximum(c[i, j], 0.0), name="D")
    return te.func(a, b, d, name="matmul")


@pytest.mark.parametrize("rows", [0, 1, 5, 9])
def test_it_is_the_function_of_that_size(rows: int) -> None:
    n = te.dim("n", 0, 9)
    func = specialise(matmul(n), {n: rows})
    verify(func, Stage.TENSOR)
    assert difference(func, matmul(rows)) is None
    assert func.dims == ()


def test_where_a_loop_is_split_the_block_gets_the_condition() -> None:
    n = te.dim("n", 1, 8)
    sch = Schedule(matmul(n))
    sch.split(sch.loops("C")[0], (None, 4))
    made = specialise(sch.func, {n: 5})
    verify(made, Stage.SCHEDULED)
    assert [str(loop) for loop in str(made).splitlines() if "range" in loop][:2] == [
        "    for i_0 in range(2):",
        "        for i_1 in range(4):",
    ]
    assert "where(i_0 * 4 + i_1 < 5)" in str(made)
    assert "C = alloc(float32[5, 6]" in str(made)


def test_shapes_tell_the_sizes() -> None:
    n = te.dim("n", 1, 8)
    func = matmul(n)
    assert sizes_of([(func.inputs[0], (3, 4)), (func.inputs[1], (4, 6))]) == {n: 3}
    assert print_expr(simplify(at_most(n * 2))) == "16"
    fixed = matmul(4)
    assert specialise(fixed, {}) is fixed


@pytest.mark.parametrize("shown", ["None", "9"])
def test_a_value_that_is_missing_or_out_of_bounds_is_refused(shown: str) -> None:
    n = te.dim("n", 1, 8)
    with pytest.raises(IRError) as caught:
        specialise(matmul(n), {} if shown == "None" else {n: int(shown)})
    assert str(caught.value) == (
        f"IRError: specialise: 'n' of 'matmul' is {shown}; expected 1 to 8. [specialise-value]"
    )
