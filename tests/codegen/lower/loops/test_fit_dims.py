"""codegen/lower/loops/fit_dims.py: loops end where the points do. Values and proof of whole schedules are
in tests/schedule/test_dims.py.
"""

# ruff: noqa: E501 (one line of a nest is one line)
from __future__ import annotations

from textwrap import indent

from tilewright.codegen.lower.loops.fit_dims import FitDims
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.references import LoopRef
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.te import te
from tilewright.tir.text.printer import print_stmt


def doubled(most: int) -> PrimFunc:
    n = te.dim("n", 1, most)
    a = te.placeholder((n, 3), "float32", name="A")
    return te.func(a, te.compute((n, 3), lambda i, j: a[i, j] * 2.0, name="B"), name="doubled")


def nest(sch: Schedule) -> str:
    return "\n".join(str(lower_to_nest(sch.func)).splitlines()[1:])


def test_a_loop_ends_with_the_rows() -> None:
    assert nest(Schedule(doubled(9))) == (
        "    for i in range(9):\n"
        "        if i < n:\n"
        "            for j in range(3):\n"
        '                with block("B", vi=spatial(9, i), vj=spatial(3, j)):\n'
        "                    B[vi, vj] = A[vi, vj] * 2.0"
    )


def test_parts_of_a_fused_loop_share_one_test() -> None:
    """`i_j < n * 3` of the block in the fused loop, `i_j // 3 < n` of the one computed there."""
    n = te.dim("n", 1, 9)
    a = te.placeholder((n, 3, 8), "float32", name="A")
    b = te.compute((n, 3, 8), lambda i, j, k: a[i, j, k] * 2.0, name="B")
    c = te.compute((n, 3, 8), lambda i, j, k: b[i, j, 7 - k] + 1.0, name="C")
    sch = Schedule(te.func(a, c, name="reversed"))
    fused = sch.fuse(*sch.loops("C")[:2])
    sch.compute_at("B", fused)
    sch.parallel(fused)
    assert nest(sch).startswith(
        "    for i_j in parallel(27):\n"
        "        if i_j < n * 3:\n"
        '            B = alloc(float32[1, 1, 8], "global")\n'
        "            for k in range(8):\n"
        '                with block("B", '
    )
    assert nest(sch).count("if ") == 1


def tiled(sch: Schedule, *, unroll: bool = True) -> LoopRef:
    """Split the rows in tiles of four. Returns the loop over them."""
    outer, inner = sch.split(sch.loops("B")[0], (None, 4), tail="partition")
    if unroll:
        sch.unroll(inner)
    return outer


def test_whole_tiles_have_no_tests_and_what_is_left_stands_behind() -> None:
    sch = Schedule(doubled(9))
    tiled(sch)
    assert nest(sch) == (
        "    for i_0 in range(3):\n"
        "        if i_0 * 4 + 3 < n:\n"
        "            for i_1 in unrolled(4):\n"
        "                for j in range(3):\n"
        '                    with block("B", vi=spatial(9, i_0 * 4 + i_1), vj=spatial(3, j)):\n'
        "                        B[vi, vj] = A[vi, vj] * 2.0\n"
        "    for i_0 in range(3):\n"
        "        if i_0 * 4 < n:\n"
        "            if n - i_0 * 4 <= 3:\n"
        "                if i_0 * 4 + 2 < n:\n"
        "                    for i_1 in unrolled(3):\n"
        "                        for j in range(3):\n"
        '                            with block("B", vi=spatial(9, i_0 * 4 + i_1), vj=spatial(3, j)):\n'
        "                                B[vi, vj] = A[vi, vj] * 2.0\n"
        "                else:\n"
        "                    if i_0 * 4 + 1 < n:\n"
        "                        for i_1 in unrolled(2):\n"
        "                            for j in range(3):\n"
        '                                with block("B", vi=spatial(9, i_0 * 4 + i_1), vj=spatial(3, j)):\n'
        "                                    B[vi, vj] = A[vi, vj] * 2.0\n"
        "                    else:\n"
        "                        for j in range(3):\n"
        '                            with block("B", vi=spatial(9, i_0 * 4), vj=spatial(3, j)):\n'
        "                                B[vi, vj] = A[vi, vj] * 2.0"
    )


def test_a_loop_that_is_shared_out_stays_one() -> None:
    sch = Schedule(doubled(9))
    sch.parallel(tiled(sch))
    assert nest(sch) == (
        "    for i_0 in parallel(3):\n"
        "        if i_0 * 4 < n:\n"
        "            if i_0 * 4 + 3 < n:\n"
        "                for i_1 in unrolled(4):\n"
        "                    for j in range(3):\n"
        '                        with block("B", vi=spatial(9, i_0 * 4 + i_1), vj=spatial(3, j)):\n'
        "                            B[vi, vj] = A[vi, vj] * 2.0\n"
        "            else:\n"
        "                if i_0 * 4 + 2 < n:\n"
        "                    for i_1 in unrolled(3):\n"
        "                        for j in range(3):\n"
        '                            with block("B", vi=spatial(9, i_0 * 4 + i_1), vj=spatial(3, j)):\n'
        "                                B[vi, vj] = A[vi, vj] * 2.0\n"
        "                else:\n"
        "                    if i_0 * 4 + 1 < n:\n"
        "                        for i_1 in unrolled(2):\n"
        "                            for j in range(3):\n"
        '                                with block("B", vi=spatial(9, i_0 * 4 + i_1), vj=spatial(3, j)):\n'
        "                                    B[vi, vj] = A[vi, vj] * 2.0\n"
        "                    else:\n"
        "                        for j in range(3):\n"
        '                            with block("B", vi=spatial(9, i_0 * 4), vj=spatial(3, j)):\n'
        "                                B[vi, vj] = A[vi, vj] * 2.0"
    )


def test_loops_that_are_not_written_out_end_by_themselves() -> None:
    sch = Schedule(doubled(9))
    tiled(sch, unroll=False)
    assert nest(sch) == (
        "    for i_0 in range(3):\n"
        "        if i_0 * 4 < n:\n"
        "            for i_1 in range(4):\n"
        "                if i_0 * 4 + i_1 < n:\n"
        "                    for j in range(3):\n"
        '                        with block("B", vi=spatial(9, i_0 * 4 + i_1), vj=spatial(3, j)):\n'
        "                            B[vi, vj] = A[vi, vj] * 2.0"
    )


def test_the_last_vector_is_masked() -> None:
    n = te.dim("n", 1, 20)
    a = te.placeholder((n,), "float32", name="A")
    sch = Schedule(te.func(a, te.compute((n,), lambda i: a[i] * 2.0, name="B"), name="f"))
    _, lanes = sch.split(sch.loops("B")[0], (None, 8), tail="mask")
    sch.vectorize(lanes)
    assert nest(sch) == (
        "    for i_0 in range(3):\n"
        "        if i_0 * 8 + 7 < n:\n"
        "            for i_1 in vectorized(8):\n"
        '                with block("B", vi=spatial(20, i_0 * 8 + i_1)):\n'
        "                    B[vi] = A[vi] * 2.0\n"
        "    for i_0 in range(3):\n"
        "        if i_0 * 8 < n:\n"
        "            if n - i_0 * 8 <= 7:\n"
        "                for i_1 in vectorized(8):\n"
        '                    with block("B", vi=spatial(20, i_0 * 8 + i_1)):\n'
        "                        where(i_0 * 8 + i_1 < n)\n"
        "                        B[vi] = A[vi] * 2.0"
    )


def test_one_test_stands_around_all_rows_of_a_vector() -> None:
    func = parse(
        "def f(n: dim(1, 64), A: float32[2, n], S: output(float32[2, 16])):\n"
        '    R = alloc(float32[2, 16], "register")\n'
        "    for k in range(4):\n"
        "        for i in unrolled(2):\n"
        "            for v in unrolled(2):\n"
        "                for l in vectorized(8):\n"
        '                    with block("R", vi=spatial(2, i), vj=spatial(16, v * 8 + l), '
        "vk=reduce(4, k)):\n"
        "                        where(k * 16 + v * 8 + l < n)\n"
        "                        R[vi, vj] = max(R[vi, vj], A[vi, vk * 16 + vj])\n"
    )
    text = print_stmt(FitDims()(func).body)
    assert text[text.index("if n - k * 16 <= 15:") :] == (
        "if n - k * 16 <= 15:\n"
        "            for v in unrolled(2):\n"
        "                if k * 16 + v * 8 < n:\n"
        "                    for i in unrolled(2):\n"
        "                        for l in vectorized(8):\n"
        '                            with block("R", vi=spatial(2, i), vj=spatial(16, v * 8 + l), '
        "vk=reduce(4, k)):\n"
        "                                where(k * 16 + v * 8 + l < n)\n"
        "                                R[vi, vj] = max(R[vi, vj], A[vi, vk * 16 + vj])"
    )


def test_a_loop_that_comes_to_whole_tiles_last_keeps_its_order() -> None:
    text = (
        "for i in range(4):\n"
        "    for u in unrolled(2):\n"
        '        with block("B", vi=spatial(8, {})):\n'
        "            where({} < n)\n"
        "            B[vi] = A[vi] * 2.0\n"
    )
    loops = []
    for row in ("i * 2 + u", "7 - i * 2 - u"):
        head = "def f(n: dim(1, 8), A: float32[n], B: output(float32[n])):\n"
        func = parse(head + indent(text.format(row, row), "    "))
        loops.append(print_stmt(FitDims()(func).body).count("for i in range(4):"))
    assert loops == [2, 1]


def test_a_fused_loop_ends_too() -> None:
    sch = Schedule(doubled(9))
    sch.fuse(*sch.loops("B"))
    assert nest(sch).splitlines()[:2] == [
        "    for i_j in range(27):",
        "        if i_j < n * 3:",
    ]


def test_a_function_without_dims_stays_the_same_object() -> None:
    a = te.placeholder((4,), "float32", name="A")
    func = lower_to_nest(te.func(a, te.compute((4,), lambda i: a[i], name="B"), name="f"))
    assert FitDims()(func) is func


def test_a_loop_over_blocks_of_tiles_ends_with_the_rows() -> None:
    sch = Schedule(doubled(90))
    tiles = tiled(sch, unroll=False)
    blocks_of_tiles, _ = sch.split(tiles, (None, 5), tail="partition")
    sch.parallel(blocks_of_tiles)
    lines = nest(sch).splitlines()
    assert lines[:4] == [
        "    for i_0_0 in parallel(5):",
        "        if i_0_0 * 20 < n:",
        "            if i_0_0 < 4:",
        "                for i_0_1 in range(5):",
    ]
    at = lines.index("            else:")
    assert lines[at : at + 3] == [
        "            else:",
        "                for i_0_1 in range(3):",
        "                    if i_0_1 * 4 + 80 < n:",
    ]
