"""schedule/primitives/storage/prefetch.py: text, values, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te

from ...programs import body_of, chain, matmul, refusals, scheduled


def rows(m: int, n: int) -> PrimFunc:
    """Y = 2 X."""
    x = te.placeholder((m, n), "float32", name="X")
    return te.func(x, te.compute((m, n), lambda i, j: x[i, j] * 2.0, name="Y"), name="rows")


def test_the_lines_of_the_next_iteration_are_shared_out_over_the_loops() -> None:
    def steps(sch: Schedule) -> None:
        i, j = sch.loops("Y")
        j, _ = sch.split(j, (4, 16))
        sch.prefetch("X", i, spread=(j,))

    assert body_of(scheduled(rows(3, 64), steps)) == (
        "for i in range(3):\n"
        "    for j_0 in range(4):\n"
        '        prefetch(X[i + 1, j_0 * 16], "read", 1)\n'
        "        for j_1 in range(16):\n"
        '            with block("Y", vi=spatial(3, i), vj=spatial(64, j_0 * 16 + j_1)):\n'
        "                Y[vi, vj] = X[vi, vj] * 2.0"
    )


def test_distance_write_and_level_are_kept() -> None:
    def steps(sch: Schedule) -> None:
        i, _ = sch.loops("Y")
        sch.prefetch("Y", i, spread=(), distance=2, rw="write", level=3)

    text = body_of(scheduled(rows(3, 32), steps))
    assert '    prefetch(Y[i + 2, 0], "write", 3)\n' in text
    assert '    prefetch(Y[i + 2, 16], "write", 3)\n' in text


def test_a_packed_panel_is_one_stream() -> None:
    def steps(sch: Schedule) -> None:
        sch.pack("B", 16)
        i, j, k = sch.loops("C")
        j, jj = sch.split(j, (None, 16), tail="mask")
        sch.reorder(j, i, k, jj)
        sch.prefetch("B_packed", j, spread=(i, k), level=2)

    text = body_of(scheduled(matmul(3, 20, 5), steps))
    assert 'prefetch(B_packed[j_0 + 1, 0, i * 80 + k * 16], "read", 2)' in text


def tiles(columns: int, width: int) -> PrimFunc:
    """Y = 2 X in tiles of 2 rows and `width` columns, the lines of a tile of Y asked for in it."""

    def steps(sch: Schedule) -> None:
        i, j = sch.loops("Y")
        i, ii = sch.split(i, (None, 2))
        j, jj = sch.split(j, (None, width))
        sch.reorder(i, j, ii, jj)
        sch.prefetch("Y", j, spread=(ii,), distance=0, rw="write")

    func = rows(4, columns)
    return scheduled(func, steps)


def requests(func: PrimFunc) -> list[str]:
    """The prefetches in the text of a function."""
    return [line.strip() for line in body_of(func).splitlines() if "prefetch(" in line]


def test_the_rows_of_a_box_are_asked_for_one_after_the_other() -> None:
    assert requests(tiles(64, 32)) == [
        'prefetch(Y[i_0 * 2 + i_1, j_0 * 32], "write", 1)',
        'prefetch(Y[i_0 * 2 + i_1, j_0 * 32 + 16], "write", 1)',
    ]


def test_a_row_that_may_start_inside_of_a_line_has_one_line_more() -> None:
    assert requests(tiles(40, 20)) == [
        'prefetch(Y[i_0 * 2 + i_1, j_0 * 20], "write", 1)',
        'prefetch(Y[i_0 * 2 + i_1, j_0 * 20 + 16], "write", 1)',
        'prefetch(Y[i_0 * 2 + i_1, j_0 * 20 + 32], "write", 1)',
    ]


def test_iterations_without_a_line_of_their_own_ask_for_the_last_one() -> None:
    def steps(sch: Schedule) -> None:
        i, j = sch.loops("Y")
        j, jj = sch.split(j, (None, 32))
        jj, _ = sch.split(jj, (8, 4))
        sch.reorder(j, i)
        sch.prefetch("X", j, spread=(i, jj))

    assert requests(scheduled(rows(3, 64), steps)) == [
        "prefetch(X[min(i * 8 + j_1_0, 5) // 2, j_0 * 32 + min(i * 8 + j_1_0, 5) % 2 * 16 + 32], "
        '"read", 1)'
    ]


def test_rows_of_two_axes_are_numbered() -> None:
    x = te.placeholder((4, 6, 32), "float32", name="X")
    func = te.func(x, te.compute((4, 6, 32), lambda a, b, c: x[a, b, c] * 2.0, name="Y"), name="f")

    def steps(sch: Schedule) -> None:
        a, b, c = sch.loops("Y")
        b, bb = sch.split(b, (2, 3))
        c, cc = sch.split(c, (2, 16))
        sch.reorder(b, c, a, bb, cc)
        sch.prefetch("X", c, spread=(a, bb), distance=0)

    assert requests(scheduled(func, steps)) == [
        'prefetch(X[a, b_0 * 3 + b_1, c_0 * 16], "read", 1)'
    ]


def test_nearly_all_of_an_axis_counts_as_all_of_it() -> None:
    x = te.placeholder((4, 33), "float32", name="X")
    func = te.func(x, te.compute((4, 32), lambda i, j: x[i, j] * 2.0, name="Y"), name="rows")

    def steps(sch: Schedule) -> None:
        i, _ = sch.split(sch.loops("Y")[0], (2, 2))
        sch.prefetch("X", i, spread=())

    assert requests(scheduled(func, steps)) == [
        f'prefetch(X[i_0 * 2 + 2, {at}], "read", 1)' for at in (0, 16, 32, 48, 64)
    ]


# -- refusals --------------------------------------------------------------------------------------


def _spread(number: int) -> Callable[[Schedule], object]:
    def steps(sch: Schedule) -> None:
        i, j = sch.loops("Y")
        at, spread = [(i, (i,)), (j, (i,)), (i, (j, i))][number]
        sch.prefetch("X", at, spread=spread)

    return steps


def _vectorized(sch: Schedule) -> None:
    i, j = sch.loops("Y")
    sch.vectorize(j)
    sch.prefetch("X", i, spread=(j,))


def scalar() -> PrimFunc:
    s, x = te.placeholder((), "float32", name="S"), te.placeholder((4,), "float32", name="X")
    return te.func(s, x, te.compute((4,), lambda i: x[i] * s[()], name="Y"), name="scalar")


def _of_a_scalar(sch: Schedule) -> None:
    (i,) = sch.loops("Y")
    sch.prefetch("S", i, spread=())


def _keyword(name: str, value: object) -> Callable[[Schedule], object]:
    def steps(sch: Schedule) -> None:
        i, j = sch.loops("Y")
        sch.prefetch("X", i, spread=(j,), **{name: value})  # type: ignore[arg-type]

    return steps


def _of_the_thread(sch: Schedule) -> None:
    i, _ = sch.loops("Y")
    sch.compute_at("Q", i)
    sch.set_scope("Q", "thread")
    sch.prefetch("Q", i, spread=())


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "prefetch-untouched": (
        chain(2, 3),
        lambda s: s.prefetch("P", s.loops("Y")[0], spread=(s.loops("Y")[1],)),
    ),
    "prefetch-untouched: a scalar": (scalar(), _of_a_scalar),
    "prefetch-spread: itself": (rows(2, 32), _spread(0)),
    "prefetch-spread: outside": (rows(2, 32), _spread(1)),
    "prefetch-spread: the wrong way round": (rows(2, 32), _spread(2)),
    "prefetch-many": (
        rows(2, 2048),
        lambda s: s.prefetch("X", s.loops("Y")[0], spread=()),
    ),
    "loop-vectorized": (rows(2, 32), _vectorized),
    "stage-inside": (chain(2, 3), _of_the_thread),
    "prefetch-how: level": (rows(2, 32), _keyword("level", 4)),
    "prefetch-how: rw": (rows(2, 32), _keyword("rw", "both")),
    "prefetch-how: distance": (rows(2, 32), _keyword("distance", -1)),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_prefetch.txt", refusals(CASES))


def test_where_a_call_decides_the_rows_the_first_ones_ask_for_all_lines() -> None:
    """Ten lines of a panel, shared out over two tiles of rows, where there may be eight."""
    n = te.dim("n", 1, 16)
    a, b = (
        te.placeholder((n, 10), "float32", name="A"),
        te.placeholder((10, 32), "float32", name="B"),
    )
    k = te.reduce_axis(10, name="k")
    c = te.compute((n, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")

    def steps(sch: Schedule) -> None:
        sch.pack("B", 16)
        i, j, k = sch.loops("C")
        j, jj = sch.split(j, (None, 16), tail="mask")
        i, ii = sch.split(i, (None, 2))
        sch.reorder(j, i, k, ii, jj)
        sch.prefetch("B_packed", j, spread=(i,), level=2)

    place = ("", " + 16", " + 32", " + 48", " + 64")
    assert requests(scheduled(te.func(a, b, c, name="product"), steps)) == [
        f'prefetch(B_packed[j_0 + 1, 0, min(i_0, 1) * 80{more}], "read", 2)' for more in place
    ]
