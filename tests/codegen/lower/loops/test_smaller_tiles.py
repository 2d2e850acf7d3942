"""codegen/lower/loops/smaller_tiles.py: what a call leaves of a tile of rows or vectors runs in
smaller ones, where no row needs another. Values and proof of whole schedules are in
tests/schedule/test_dims.py and tests/driver/test_fitted_kernels.py.
"""

from __future__ import annotations

from textwrap import indent

from tilewright.codegen.lower.loops.smaller_tiles import smaller_tiles, tile_of_rows_left
from tilewright.tir.analysis.tile_parts import AT_ONCE, QUARTERS, TileParts, tile_parts
from tilewright.tir.conditions import conjuncts, names_dim
from tilewright.tir.parsing.parser import parse
from tilewright.tir.te import te
from tilewright.tir.text.printer import print_stmt
from tilewright.tir.visit import blocks


def smaller(text: str, parts: TileParts = QUARTERS) -> str:
    """The nest of a function of which each block has one test of n, in smaller tiles; "" where it
    stays.
    """
    func = parse(text)
    tested = {
        block: next(c for c in conjuncts(block.predicate) if names_dim(c))
        for block in blocks(func.body)
    }
    found = smaller_tiles(func.body, tested, parts.count)
    return "" if found is None else print_stmt(found)


HEAD = "def f(n: dim(1, 8), A: float32[n, 4], B: output(float32[n, 4])):\n"


def test_rows_run_a_quarter_at_a_time() -> None:
    assert smaller(
        HEAD
        + "    for i in unrolled(8):\n"
        + "        for j in range(4):\n"
        + '            with block("B", vi=spatial(8, i), vj=spatial(4, j)):\n'
        + "                where(i < n)\n"
        + "                B[vi, vj] = A[vi, vj] * 2.0\n"
    ) == (
        "for i in range(4):\n"
        "    for i_1 in unrolled(2):\n"
        "        for j in range(4):\n"
        '            with block("B", vi=spatial(8, i * 2 + i_1), vj=spatial(4, j)):\n'
        "                where(i * 2 + i_1 < n)\n"
        "                B[vi, vj] = A[vi, vj] * 2.0"
    )


def test_rows_run_a_half_at_a_time() -> None:
    text = (
        HEAD
        + "    for i in unrolled(8):\n"
        + "        for j in range(4):\n"
        + '            with block("B", vi=spatial(8, i), vj=spatial(4, j)):\n'
        + "                where(i < n)\n"
        + "                B[vi, vj] = A[vi, vj] * 2.0\n"
    )
    assert smaller(text, TileParts(2)).startswith(
        "for i in range(2):\n    for i_1 in unrolled(4):\n"
    )


def test_tiles_of_several_sizes_are_cut_into_quarters() -> None:
    n, m = te.dim("n", 1, 512), te.dim("m", 1, 8)
    assert (tile_parts((n,)), tile_parts((n, m))) == (AT_ONCE, QUARTERS)


def left(rows: int, condition: str = "i < n", body: str = "A[vi, vj] * 2.0") -> str:
    """What is left of a tile of `rows` rows, in one tile; "" where it is not."""
    text = (
        HEAD
        + f"    for i in unrolled({rows}):\n"
        + "        for j in range(4):\n"
        + f'            with block("B", vi=spatial({rows}, i), vj=spatial(4, j)):\n'
        + f"                where({condition})\n"
        + f"                B[vi, vj] = {body}\n"
    )
    func = parse(text)
    tested = {block: block.predicate for block in blocks(func.body)}
    found = tile_of_rows_left(func.body, tested, AT_ONCE.rows)
    return "" if found is None else print_stmt(found)


def test_rows_that_are_left_run_in_one_tile_of_as_many() -> None:
    one = (
        "for {} in unrolled({}):\n"
        "    for {} in range(4):\n"
        '        with block("B", vi=spatial(4, {}), vj=spatial(4, {})):\n'
        "            B[vi, vj] = A[vi, vj] * 2.0\n"
    )
    assert left(4).splitlines() == [
        "if 2 < n:",
        *indent(one.format("i", 3, "j", "i", "j"), "    ").splitlines(),
        "else:",
        "    if 1 < n:",
        *indent(one.format("i", 2, "j", "i", "j"), "        ").splitlines(),
        "    else:",
        "        for j in range(4):",
        '            with block("B", vi=spatial(4, 0), vj=spatial(4, j)):',
        "                B[vi, vj] = A[vi, vj] * 2.0",
    ]


def test_large_tiles_and_rows_that_need_others_do_not() -> None:
    assert left(AT_ONCE.rows)
    assert not left(AT_ONCE.rows + 1)
    assert not left(4, body="B[3 - vi, vj] * 2.0")
    assert not left(4, condition="i + j < n")


def test_vectors_run_one_at_a_time_through_all_statements() -> None:
    text = (
        "def f(n: dim(1, 16), A: float32[n], B: output(float32[n])):\n"
        '    S = alloc(float32[n], "register")\n'
        "    for v in unrolled(4):\n"
        "        for l in vectorized(4):\n"
        '            with block("S", vi=spatial(16, v * 4 + l)):\n'
        "                where(v * 4 + l < n)\n"
        "                S[vi] = A[vi] * 2.0\n"
        "    for v in unrolled(4):\n"
        "        for l in vectorized(4):\n"
        '            with block("B", vi=spatial(16, v * 4 + l)):\n'
        "                where(v * 4 + l < n)\n"
        "                B[vi] = S[vi] + 1.0\n"
    )
    func = parse(text)
    assert tile_of_rows_left(func.body, {b: b.predicate for b in blocks(func.body)}, 9) is None
    found = smaller(text)
    assert found.splitlines()[:3] == [
        "for v in range(4):",
        '    S = alloc(float32[n], "register")',
        "    for l in vectorized(4):",
    ]
    assert "unrolled" not in found
    # what a row needs of another one, it would not find
    assert not smaller(text.replace("S[vi] + 1.0", "S[15 - vi] + 1.0"))


def test_registers_that_live_around_the_tile_keep_their_numbers() -> None:
    text = (
        HEAD
        + '    S = alloc(float32[8], "{}")\n'
        + "    for i in unrolled(8):\n"
        + '        with block("S", vi=spatial(8, i)):\n'
        + "            where(i < n)\n"
        + "            S[vi] = A[vi, 0]\n"
    )
    func = parse(text.format("register"))
    for scope, kept in (("register", True), ("global", False)):
        func = parse(text.format(scope))
        loop = func.body.body  # type: ignore[union-attr]
        (block,) = blocks(loop)
        assert (smaller_tiles(loop, {block: block.predicate}, QUARTERS.count) is None) == kept


def test_rows_that_are_summed_stay_together() -> None:
    assert not smaller(
        "def f(n: dim(1, 8), A: float32[n], B: output(float32[1])):\n"
        "    for i in unrolled(8):\n"
        '        with block("B", v=spatial(1, 0), vi=reduce(8, i)):\n'
        "            where(i < n)\n"
        "            B[v] = B[v] + A[vi]\n"
    )
