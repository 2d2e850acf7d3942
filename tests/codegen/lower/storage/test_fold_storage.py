"""codegen/lower/storage/fold_storage.py: tensors share, sink and shrink: text and values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.codegen.lower.loops.partition import Partition
from tilewright.codegen.lower.loops.place_init import PlaceInit
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.codegen.lower.storage.fold_storage import FoldStorage
from tilewright.schedule.schedule import Schedule
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te
from tilewright.tir.te.tensor import Tensor
from tilewright.tir.text.printer import print_stmt
from tilewright.tir.verify.verify import Stage, verify

from ....schedule.programs import (
    assert_same_values,
    blur,
    cell,
    chain,
    conv,
    matmul,
    matmul_relu,
    wave,
)


def folded(func: PrimFunc, steps: Callable[[Schedule], object]) -> PrimFunc:
    """The function after the pass; its values are those of the function."""
    before = Partition()(PlaceInit()(Schedule(func).apply(steps).func))
    after = FoldStorage()(before)
    verify(after, Stage.NEST)
    assert_same_values(after, func)
    return after


def shapes(func: PrimFunc) -> dict[str, tuple[int, ...]]:
    return {buffer.name: buffer.shape for buffer in func.allocations}


# -- sharing ---------------------------------------------------------------------------------------


def test_a_tensor_shares_the_storage_of_the_one_that_replaces_it_element_by_element() -> None:
    after = folded(chain(5, 2), lambda s: None)
    assert not after.allocations
    assert "Y[vi, vj] = max(Y[vi, vj], 0.0)" in str(after)


def test_accumulators_share_the_output_of_their_epilogue() -> None:
    assert not folded(matmul_relu(3, 4, 5), lambda s: None).allocations


def test_nothing_is_shared_with_a_reader_of_other_elements() -> None:
    assert shapes(folded(blur(3, 4), lambda s: None)) == {"R": (4, 4)}


def two_readers(last: Callable[[Tensor, Expr, Expr], Expr]) -> PrimFunc:
    """Two tensors made of P: the sums of its rows, Y, and behind them Z = last(P, i, j) * Y."""
    x = te.placeholder((3, 4), "float32", name="X")
    p = te.compute((3, 4), lambda i, j: x[i, j] * 2.0, name="P")
    k = te.reduce_axis(4, name="k")
    y = te.compute((3,), lambda i: te.sum(p[i, k], axis=k), name="Y")
    z = te.compute((3, 4), lambda i, j: last(p, i, j) * y[i], name="Z")
    return te.func(x, z, name="f")


def test_the_last_of_two_readers_replaces_the_tensor_in_its_storage() -> None:
    after = folded(two_readers(lambda p, i, j: p[i, j]), lambda s: None)
    assert shapes(after) == {"Y": (3,)}
    assert "Z[vi, vj] = Z[vi, vj] * Y[vi]" in str(after)


def test_the_last_of_two_readers_replaces_a_row_in_a_loop_that_makes_it() -> None:
    def by_rows(sch: Schedule) -> None:
        row = sch.loops("Z")[0]
        sch.compute_at("Y", row)
        sch.compute_at("P", row)

    after = folded(two_readers(lambda p, i, j: p[i, j]), by_rows)
    assert shapes(after) == {"Y": (1,)}


def test_nothing_is_shared_with_a_last_reader_of_other_elements() -> None:
    after = folded(two_readers(lambda p, i, j: p[i, 3 - j]), lambda s: None)
    assert shapes(after) == {"P": (3, 4), "Y": (3,)}


def test_nothing_is_shared_where_the_last_reader_runs_between_those_of_another() -> None:
    def together(sch: Schedule) -> None:
        sch.merge(sch.loops("Y")[0], sch.loops("Z")[0])

    x = te.placeholder((4,), "float32", name="X")
    p = te.compute((4,), lambda i: x[i] * 2.0, name="P")
    y = te.compute((4,), lambda i: p[i] + 1.0, name="Y")
    z = te.compute((4,), lambda i: p[i] * 3.0, name="Z")
    assert shapes(folded(te.func(x, y, z, name="f"), together)) == {"P": (4,)}


def test_nothing_is_shared_with_a_reader_of_another_type() -> None:
    x = te.placeholder((4,), "float32", name="X")
    p = te.compute((4,), lambda i: x[i] * 2.0, name="P")
    y = te.compute((4,), lambda i: te.cast(p[i], "int32"), name="Y")
    assert shapes(folded(te.func(x, y, name="f"), lambda s: None)) == {"P": (4,)}


def test_nothing_is_shared_where_the_reader_copies_more_than_it_replaces() -> None:
    def steps(sch: Schedule) -> None:
        outer, _ = sch.split(sch.loops("Y")[0], (2, 4), tail="guard")
        sch.stage("Y", "Q", outer, "thread")

    assert "Q" in shapes(folded(chain(5, 2), steps))


# -- sinking and shrinking -------------------------------------------------------------------------


def test_storage_sinks_to_the_loop_that_holds_all_accesses_and_shrinks_to_its_box() -> None:
    after = folded(blur(3, 4), lambda s: s.compute_at("R", s.loops("Y")[0]))
    assert print_stmt(after.body) == (
        "for i in range(3):\n"
        '    R = alloc(float32[2, 4], "global")\n'
        "    for i_1 in range(2):\n"
        "        for j in range(4):\n"
        '            with block("R", vi=spatial(4, i + i_1), vj=spatial(4, j), recomputed=True):\n'
        "                R[vi - i, vj] = X[vi, vj] + X[vi, vj + 1]\n"
        "    for j in range(4):\n"
        '        with block("Y", vi=spatial(3, i), vj=spatial(4, j)):\n'
        "            Y[vi, vj] = R[vi - i, vj] + R[vi + 1 - i, vj]"
    )


def test_a_staged_tile_shrinks_to_the_tile() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        i0, i1 = sch.split(i, (None, 2), tail="partition")
        j0, j1 = sch.split(j, (None, 4), tail="mask")
        sch.reorder(i0, j0, k, i1, j1)
        sch.stage("C", "C", j0, "register")

    after = folded(matmul(5, 7, 3), steps)
    tiles = [b.shape for b in after.allocations]
    assert tiles == [(2, 4), (2, 3), (1, 4), (1, 3)]  # whole, right edge, lower edge, corner
    assert all(isinstance(b, Buffer) and b.origin is not None for b in after.allocations)


def mirrored() -> PrimFunc:
    """A product, and behind it the sum of each element and the opposite one of its row."""
    a = te.placeholder((3, 4), "float32", name="A")
    b = te.placeholder((4, 6), "float32", name="B")
    k = te.reduce_axis(4, name="k")
    c = te.compute((3, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    y = te.compute((3, 6), lambda i, j: c[i, j] + c[i, 5 - j], name="Y")
    return te.func(a, b, y, name="f")


def test_what_a_tile_of_registers_is_copied_to_sinks_to_the_loop_of_its_reader() -> None:
    def steps(sch: Schedule) -> None:
        *_, j, _k = sch.compute_at("C", sch.loops("Y")[0])
        outer, _ = sch.split(j, (None, 2))
        sch.stage("C", "C", outer, "thread")

    after = folded(mirrored(), steps)
    assert shapes(after) == {"C": (1, 6), "C_local": (1, 2)}


def test_a_copy_of_sums_that_another_iteration_goes_on_with_keeps_its_storage() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        outer, inner = sch.split(k, (2, 2))
        sch.reorder(outer, i, j, inner)
        sch.stage("C", "C", i, "thread")
        sch.reverse_compute_at("Y", i, at="last")

    assert shapes(folded(mirrored(), steps)) == {"C": (3, 6), "C_local": (1, 6)}


@pytest.mark.parametrize(
    ("depth", "expected"), [(0, (1, 6, 7, 2)), (1, (1, 3, 7, 2)), (2, (1, 3, 3, 2))]
)
def test_a_window_keeps_the_rows_that_it_reads(depth: int, expected: tuple[int, ...]) -> None:
    def steps(sch: Schedule) -> None:
        sch.compute_at("X_pad", sch.loops("conv")[depth])

    assert shapes(folded(conv(4, 5, 2, 4), steps))["X_pad"] == expected


def test_an_accumulator_is_not_sunk_into_its_reduction_loop() -> None:
    def steps(sch: Schedule) -> None:
        i, j, k = sch.loops("C")
        sch.reorder(i, k, j)
        sch.cache_write("C")
        sch.reverse_compute_at("C", i)

    assert shapes(folded(matmul(3, 4, 5), steps)).get("C_cache", (1, 4)) == (1, 4)


def test_an_unused_allocation_goes() -> None:
    after = folded(chain(3, 2), lambda s: (s.compute_inline("P"), s.compute_inline("Q")))
    assert not after.allocations


def test_nothing_is_shared_where_a_copy_may_come_after_the_reader() -> None:
    x = te.placeholder((1,), "float32", name="X")
    k = te.reduce_axis(1, name="k")
    t = te.compute((), lambda: te.sum(x[k], axis=k), name="T")
    func = te.func(x, te.compute((), lambda: t[()] * 2.0, name="Y"), name="f")

    def steps(sch: Schedule) -> None:
        (loop,) = sch.loops("T")
        sch.reverse_compute_at("Y", loop, at="last")
        _, inner = sch.split(loop, (4, 2))  # most iterations do nothing
        sch.stage("T", "T", inner, "thread")

    assert "T = alloc" in str(folded(func, steps))


def test_a_scan_that_is_read_in_its_steps_keeps_those_that_it_looks_back_to() -> None:
    func = wave(6, 5)

    def read_at_once(sch: Schedule) -> None:
        sch.reverse_compute_at("Y", sch.loops("S")[0])

    text = str(folded(func, read_at_once))
    assert '    S = alloc(float32[3, 5], "global")\n' in text
    assert "Y[vt, vi] = S[vt % 3, vi] * 2.0" in text


def test_a_state_that_stays_inside_keeps_two_steps_for_each_panel() -> None:
    def panels(sch: Schedule) -> None:
        t, i = sch.loops("C")
        panel, lane = sch.split(i, (None, 4))
        sch.reorder(panel, t, lane)
        sch.parallel(panel)

    text = str(folded(cell(6, 12), panels))
    assert '    for i_0 in parallel(3):\n        C = alloc(float32[2, 4], "global")\n' in text
    assert "C[vt % 2, vi - i_0 * 4] = C[(vt - 1) % 2, vi - i_0 * 4] * F[vt, vi]" in text


def decay(steps: int, n: int) -> PrimFunc:
    """Y = 2 S, where a step of S is half of the one before and X."""
    x = te.placeholder((steps, n), "float32", name="X")
    state = te.state((steps, n), "float32", name="S")
    first = te.compute((1, n), lambda t, i: x[t, i], name="first")
    step = te.compute((steps, n), lambda t, i: state[t - 1, i] * 0.5 + x[t, i], name="step")
    s = te.scan(first, step, state)
    return te.func(x, te.compute((steps, n), lambda t, i: s[t, i] * 2.0, name="Y"), name="decay")


def test_one_state_that_stays_inside_keeps_two_steps_for_each_panel() -> None:
    def panels(sch: Schedule) -> None:
        t, i = sch.loops("S")
        panel, lane = sch.split(i, (None, 4))
        sch.reorder(panel, t, lane)
        sch.reverse_compute_at("Y", lane)

    text = str(folded(decay(6, 12), panels))
    assert '    for i_0 in range(3):\n        S = alloc(float32[2, 4], "global")\n' in text


def read_after(steps: int, n: int, *read: int) -> PrimFunc:
    """Y = the sum of some steps of S, where a step of S takes from both neighbours."""
    x = te.placeholder((n,), "float32", name="X")
    state = te.state((steps, n), "float32", name="S")
    first = te.compute((1, n), lambda t, i: x[i], name="first")

    def element(t: Expr, i: Expr) -> Expr:
        return state[t - 1, i // 2] - state[t - 1, i // 2 + n // 2]

    s = te.scan(first, te.compute((steps, n), element, name="step"), state)
    ends = [te.compute((n,), lambda i, at=at: s[at, n - 1 - i], name=f"E{at}") for at in read]
    y = te.compute((n,), lambda i: sum((e[i] for e in ends[1:]), ends[0][i]), name="Y")
    return te.func(x, y, name="read_after")


@pytest.mark.parametrize(("read", "kept"), [((5,), 2), ((5, 4), 2), ((5, 3), 6), ((0,), 6)])
def test_what_reads_the_last_steps_behind_them_all_reads_those_that_are_kept(
    read: tuple[int, ...], kept: int
) -> None:
    after = folded(read_after(6, 8, *read), lambda sch: None)
    assert shapes(after)["S"] == (kept, 8)


def test_a_scan_shares_the_storage_of_a_reader_that_comes_after_all_steps() -> None:
    text = str(folded(wave(6, 5), lambda sch: None))
    assert "alloc" not in text
    assert "Y[vt, vi] = Y[vt, vi] * 2.0" in text


def test_storage_belongs_to_an_iteration_below_the_test_of_a_size() -> None:
    n = te.dim("n", 1, 9)
    x = te.placeholder((n, 6), "float32", name="X")
    k = te.reduce_axis(6, name="k")
    d = te.compute((n, 6), lambda i, j: x[i, j] * 2.0, name="D")
    s = te.compute((n,), lambda i: te.sum(d[i, k], axis=k), name="S")
    sch = Schedule(te.func(x, te.compute((n, 6), lambda i, j: d[i, j] / s[i], name="Y"), name="f"))
    rows = sch.loops("Y")[0]
    sch.compute_at("S", rows)
    sch.compute_at("D", rows)
    sch.parallel(rows)
    nest = lower_to_nest(sch.func)
    assert [buffer.name for buffer in nest.allocations] == ["S"]  # D has the storage of Y
    assert shapes(nest)["S"] == (1,)
    # so the test stays right inside of the loop, where code generation reads its end
    assert print_stmt(nest.body).startswith("for i in parallel(9):\n    if i < n:\n")
