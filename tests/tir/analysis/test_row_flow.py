"""tir/analysis/row_flow.py: which rows stay apart, and that others cannot change a bit of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright import te
from tilewright.tir.analysis.row_flow import (
    MixedRowsError,
    RowLayout,
    RowSize,
    follow_rows,
    row_layout,
)
from tilewright.tir.dim import Dim
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.sizes import size_of
from tilewright.tir.te.te import Tensor

ROWS, KEPT = 4, 2
Made = tuple[list[Tensor], Tensor]


def given(*shape: int, dtype: str = "float32", name: str = "x") -> Tensor:
    return te.placeholder(shape, dtype, name=name)


def scaled() -> Made:
    x = given(ROWS, 3)
    return [x], te.compute((ROWS, 3), lambda i, j: x[i, j] * 2.0 + 1.0, name="y")


def softmax() -> Made:
    x = given(ROWS, 3)
    j, k = te.reduce_axis(3, name="j"), te.reduce_axis(3, name="k")
    top = te.compute((ROWS,), lambda i: te.max(x[i, j], axis=j), name="top")
    grown = te.compute((ROWS, 3), lambda i, n: te.exp(x[i, n] - top[i]), name="grown")
    total = te.compute((ROWS,), lambda i: te.sum(grown[i, k], axis=k), name="total")
    return [x], te.compute((ROWS, 3), lambda i, n: grown[i, n] / total[i], name="y")


def product() -> Made:
    a, b = given(ROWS, 2, 3, name="a"), given(ROWS, 3, 2, name="b")
    k = te.reduce_axis(3, name="k")
    return [a, b], te.compute(
        (ROWS, 2, 2), lambda n, i, j: te.sum(a[n, i, k] * b[n, k, j], axis=k), name="y"
    )


def window() -> Made:
    x = given(ROWS, 6)
    k = te.reduce_axis(3, name="k")

    def tap(n: Expr, i: Expr) -> Expr:
        at = i * 2 + k - 1
        return te.sum(te.select(te.all_of(at >= 0, at < 6), x[n, at], 0.0), axis=k)

    return [x], te.compute((ROWS, 3), tap, name="y")


def transposed() -> Made:
    x = given(ROWS, 3)
    return [x], te.compute((3, ROWS), lambda j, i: x[i, j], name="y")


def merged() -> Made:
    x = given(ROWS, 3, 2)
    return [x], te.compute((ROWS * 3, 2), lambda m, j: x[m // 3, m % 3, j], name="y")


def parted() -> Made:
    x = given(ROWS * 3, 2)
    return [x], te.compute((ROWS, 3, 2), lambda i, s, j: x[i * 3 + s, j], name="y")


def behind() -> Made:
    x = given(2, ROWS)
    return [x], te.compute((2 * ROWS,), lambda m: x[m // ROWS, m % ROWS], name="y")


def looked_up() -> Made:
    ids, table = given(ROWS, 3, dtype="int64", name="ids"), given(5, 2, name="table")
    return [ids, table], te.compute(
        (ROWS, 3, 2), lambda i, s, j: table[te.maximum(te.minimum(ids[i, s], 4), 0), j], name="y"
    )


def numbered() -> Made:
    x = given(ROWS, 3)
    return [x], te.compute((ROWS, 3), lambda i, j: x[i, j] + te.cast(i, "float32"), name="y")


def reduced() -> Made:
    x = given(ROWS, 3)
    i = te.reduce_axis(ROWS, name="i")
    return [x], te.compute((3,), lambda j: te.sum(x[i, j], axis=i), name="y")


def centred() -> Made:
    x = given(ROWS, 3)
    i = te.reduce_axis(ROWS, name="i")
    total = te.compute((3,), lambda j: te.max(x[i, j], axis=i), name="total")
    return [x], te.compute((ROWS, 3), lambda n, j: x[n, j] - total[j], name="y")


def mirrored() -> Made:
    x = given(ROWS, 3)
    return [x], te.compute((ROWS, 3), lambda i, j: x[ROWS - 1 - i, j], name="y")


def shifted() -> Made:
    x = given(ROWS, 3)
    return [x], te.compute(
        (ROWS, 3), lambda i, j: te.select(i > 0, x[te.maximum(i - 1, 0), j], 0.0), name="y"
    )


def masked() -> Made:
    """Reads another row and multiplies it by 0: of a NaN that is no 0."""
    x = given(ROWS, 3)
    return [x], te.compute((ROWS, 3), lambda i, j: x[i, j] + x[ROWS - 1, j] * 0.0, name="y")


def chosen() -> Made:
    ids, x = given(ROWS, dtype="int64", name="ids"), given(ROWS, 3)
    return [ids, x], te.compute(
        (ROWS, 3), lambda i, j: x[te.maximum(te.minimum(ids[i], ROWS - 1), 0), j], name="y"
    )


def squared() -> Made:
    x = given(ROWS, 3)
    k = te.reduce_axis(3, name="k")
    return [x], te.compute((ROWS, ROWS), lambda i, j: te.sum(x[i, k] * x[j, k], axis=k), name="y")


def regrouped() -> Made:
    x = given(ROWS, 3)
    return [x], te.compute((3, ROWS), lambda i, j: x[(i * ROWS + j) // 3, j % 3], name="y")


APART = {
    scaled: (3, True),
    softmax: (3, True),
    product: (4, True),
    window: (3, True),
    transposed: (1, True),
    merged: (6, False),  # m stands in the place of the element, too: not seen to be alike
    parted: (6, False),
    behind: (1, False),
    looked_up: (6, True),
    numbered: (3, False),
}
MIXED = {
    reduced: "'y' reads x[vi, vj]",
    centred: "'total' reads x[vi, vj]",
    mirrored: "'y' reads x[3 - vi, vj]",
    shifted: "'y' reads x[max(vi - 1, 0), vj]",
    masked: "'y' reads x[3, vj]",
    chosen: ("'y' reads x[max(min(ids[vi], 3), 0), vj]"),
    squared: "'y' reads x[vi, vk]",
    regrouped: "'y' reads x[(vi * 4 + vj) // 3, vj % 3]",
}


def func_of(made: Made) -> PrimFunc:
    return te.func(*made[0], made[1], name="f")


def layouts(func: PrimFunc) -> dict[str, RowLayout | None]:
    """The rows of every tensor, of inputs by their shapes: a table has none."""
    given = {}
    for buffer in func.inputs:
        axes = [n for n, extent in enumerate(buffer.shape) if extent % ROWS == 0]
        inner = buffer.shape[axes[0]] // ROWS if axes else 0
        for extent in buffer.shape[axes[0] + 1 :] if axes else ():
            inner *= extent
        given[buffer] = RowLayout(inner) if axes else None
    found = follow_rows(func, given, RowSize("n", ROWS, {}))
    return {buffer.name: layout for buffer, layout in found.items()}


@pytest.mark.parametrize("make", APART, ids=lambda make: make.__name__)
def test_rows_that_stay_apart_are_found(make: Callable[[], Made]) -> None:
    assert layouts(func_of(make()))["y"] == RowLayout(*APART[make])


@pytest.mark.parametrize("make", MIXED, ids=lambda make: make.__name__)
def test_rows_that_meet_are_named(make: Callable[[], Made]) -> None:
    with pytest.raises(MixedRowsError) as caught:
        layouts(func_of(make()))
    assert str(caught.value) == (
        f"does not read its own row of 'n' alone, or might not: its part {MIXED[make]}"
    )


def values(func: PrimFunc, poison: float | None) -> np.ndarray:
    """The output, where the rows behind the first ones hold something else."""
    rng = np.random.default_rng(0)
    found = layouts_of_inputs(func)
    arrays = []
    for buffer in func.inputs:
        kind = np.dtype(str(buffer.dtype))
        array = rng.integers(-4, 5, buffer.shape).astype(kind)
        inner = found[buffer.name]
        if poison is not None and inner:
            value = poison if kind.kind == "f" else 3
            array.reshape(-1, ROWS, inner)[:, KEPT:] = value
        arrays.append(array)
    (out,) = func.outputs
    made = np.zeros(out.shape, np.dtype(str(out.dtype)))
    with np.errstate(all="ignore"):
        interpret(func, *arrays, made)
    return made


def layouts_of_inputs(func: PrimFunc) -> dict[str, int]:
    found = {}
    for buffer in func.inputs:
        axes = [n for n, extent in enumerate(buffer.shape) if extent % ROWS == 0]
        inner = 0
        if axes:
            inner = buffer.shape[axes[0]] // ROWS * int(np.prod(buffer.shape[axes[0] + 1 :]))
        found[buffer.name] = inner
    return found


@pytest.mark.parametrize("make", APART, ids=lambda make: make.__name__)
@pytest.mark.parametrize("poison", [float("nan"), float("inf"), 7.0])
def test_no_bit_of_a_row_depends_on_what_others_hold(
    make: Callable[[], Made], poison: float
) -> None:
    func = func_of(make())
    inner = APART[make][0]
    wanted, found = values(func, None), values(func, poison)
    kept = [array.reshape(-1, ROWS, inner)[:, :KEPT].tobytes() for array in (wanted, found)]
    assert kept[0] == kept[1]


# what is left: a row reads one before it, and rows that are apart but along no axis
@pytest.mark.parametrize(
    "make", [make for make in MIXED if make not in (shifted, regrouped)], ids=lambda m: m.__name__
)
def test_rows_that_meet_do_depend_on_each_other(make: Callable[[], Made]) -> None:
    func = func_of(make())
    wanted, found = values(func, None), values(func, float("nan"))
    end = wanted.size if make is reduced else wanted.size // ROWS * KEPT
    first = [array.reshape(-1)[:end].tobytes() for array in (wanted, found)]
    assert first[0] != first[1]


# -- where calls decide the size -------------------------------------------------------------------

N = Dim("n", low=1, high=ROWS)
SEQ = Dim("seq", low=1, high=3)
OPEN = RowSize("n", size_of(N), {N: size_of(N), SEQ: size_of(SEQ)})


def opened(make: Callable[[Tensor], Tensor]) -> RowLayout | None:
    x = te.placeholder((N, SEQ), "float32", name="x")
    made = make(x)
    func = te.func(x, made, name="f")
    (buffer,), (out,) = func.inputs, func.outputs
    return follow_rows(func, {buffer: row_layout(OPEN.shape_of(buffer), OPEN)}, OPEN)[out]


def test_a_row_of_an_open_size_is_a_size_itself() -> None:
    found = opened(lambda x: te.compute((N, SEQ), lambda i, j: x[i, j] + 1.0, name="y"))
    assert found == RowLayout(size_of(SEQ))


def test_what_computes_with_the_size_itself_is_refused() -> None:
    with pytest.raises(MixedRowsError, match="computes with the size 'n'"):
        opened(
            lambda x: te.compute((N, SEQ), lambda i, j: x[i, j] / te.cast(N, "float32"), name="y")
        )


def test_what_takes_an_index_from_the_end_is_refused() -> None:
    with pytest.raises(MixedRowsError, match="computes with the size 'n'"):
        opened(lambda x: te.compute((SEQ,), lambda j: x[N - 1, j], name="y"))


def test_a_sum_over_rows_is_refused_by_its_name() -> None:
    i = te.reduce_axis(N, name="i")
    with pytest.raises(MixedRowsError, match="joins the rows of 'n', in its part 'y'"):
        opened(lambda x: te.compute((SEQ,), lambda j: te.sum(x[i, j], axis=i), name="y"))


def test_a_shape_that_is_no_multiple_of_the_size_has_no_rows() -> None:
    size = size_of(N)
    assert row_layout((3, 4), OPEN) is None
    assert row_layout((2, size * 3, 5), OPEN) == RowLayout(15)
    for shape in ((size, size), (size + 1, 2), (size * size,)):
        with pytest.raises(MixedRowsError, match="which is not 'n' rows"):
            row_layout(shape, OPEN)
