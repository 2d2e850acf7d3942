"""schedule/rules: every rule on shapes with edges, units, nothing; what it makes is right for each
target, by the interpreter before and after lowering, and proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import tilewright as tw
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.rules.knobs.tiles import Tile, candidates, tile_cycles
from tilewright.schedule.rules.shape.last_axis import is_one_row, turned_axis, turning_points
from tilewright.schedule.rules.shape.structure import contraction as contraction_of
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.dtype import FLOAT32, FLOAT64
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import ISAS, Target
from tilewright.tir.te import te

from ..programs import braid, cell, chain, conv, matmul, matmul_relu, pool, running, wave
from ..rule_checks import answer, check

pytestmark = pytest.mark.sampled(7)

TARGETS = ["c:scalar", "c:avx2", "c:avx512"]


def softmax(rows: int, columns: int) -> PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    k, k2 = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="k2")
    m = te.compute((rows,), lambda i: te.max_any(x[i, k], axis=k), name="m")
    e = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - m[i]), name="e")
    s = te.compute((rows,), lambda i: te.sum(e[i, k2], axis=k2), name="s")
    y = te.compute((rows, columns), lambda i, j: e[i, j] / s[i], name="Y")
    return te.func(x, y, name="softmax")


def transpose(m: int, n: int) -> PrimFunc:
    x = te.placeholder((m, n), "float32", name="X")
    return te.func(x, te.compute((n, m), lambda i, j: x[j, i], name="Y"), name="transpose")


def keys(rows: int, heads: int, columns: int) -> PrimFunc:
    """The keys of an attention, head by head, each with its columns first, halved."""
    x = te.placeholder((rows, heads, columns), "float32", name="X")
    shape = (heads, columns, rows)
    return te.func(x, te.compute(shape, lambda h, j, i: x[i, h, j] * 0.5, name="Y"), name="keys")


def concat(a: int, b: int, rows: int) -> PrimFunc:
    x = te.placeholder((rows, a), "float32", name="A")
    y = te.placeholder((rows, b), "float32", name="B")
    z = te.compute((rows, a + b), lambda i, j: te.select(j < a, x[i, j], y[i, j - a]), name="Z")
    return te.func(x, y, z, name="concat")


def counted(rows: int, columns: int) -> PrimFunc:
    """Y = X where the count of a column is not 0, else the count of the row."""
    x = te.placeholder((rows, columns), "float32", name="X")
    n = te.placeholder((columns,), "int32", name="N")
    m = te.placeholder((rows,), "int64", name="M")
    y = te.compute(
        x.shape,
        lambda i, j: te.select(te.ne(n[j], 0), x[i, j], te.cast(m[i], "float32")),
        name="Y",
    )
    return te.func(x, n, m, y, name="counted")


def mirrored(rows: int, columns: int) -> PrimFunc:
    """X, its last ten columns twice as large, its first one 0."""
    x = te.placeholder((rows, columns), "float32", name="X")

    def element(i: Expr, j: Expr) -> Expr:
        late = te.select(j >= columns - 10, x[i, j] * 2.0, x[i, j])
        return te.select(te.all_of(j > 0, i < rows), late, 0.0)

    return te.func(x, te.compute(x.shape, element, name="Y"), name="mirrored")


def mean(rows: int, columns: int) -> PrimFunc:
    x, k = te.placeholder((rows, columns), "float32", name="X"), te.reduce_axis(rows, name="k")
    s = te.compute((columns,), lambda j: te.sum(x[k, j], axis=k), name="S")
    y = te.compute((columns,), lambda j: s[j] * (1.0 / max(rows, 1)), name="Y")
    return te.func(x, y, name="mean")


def largest_moved(rows: int, columns: int) -> PrimFunc:
    """A tensor without axes beside the one that is reduced."""
    x, k = te.placeholder((rows, columns), "float32", name="X"), te.reduce_axis(rows, name="k")
    a = te.placeholder((), "float32", name="A")
    y = te.compute((columns,), lambda j: te.max(x[k, j] + a[()], axis=k), name="Y")
    return te.func(x, a, y, name="largest_moved")


def row_norm(rows: int, columns: int) -> PrimFunc:
    """Each row over its sum of squares: the reduced axis is the contiguous one."""
    x, k = te.placeholder((rows, columns), "float32", name="X"), te.reduce_axis(columns, name="k")
    s = te.compute((rows,), lambda i: te.sum(x[i, k] * x[i, k], axis=k), name="S")
    y = te.compute((rows, columns), lambda i, j: x[i, j] / (s[i] + 1.0), name="Y")
    return te.func(x, y, name="row_norm")


def matmul_transposed(m: int, n: int, k: int, *, dtype: str = "float32") -> PrimFunc:
    """C = A B', B constant: rows of weights."""
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((n, k), dtype, name="B", constant=True)
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[j, axis], axis=axis), name="C")
    return te.func(a, b, c, name="gemm")


def batched(count: int, m: int, n: int, k: int) -> PrimFunc:
    a = te.placeholder((count, m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B", constant=True)
    axis = te.reduce_axis(k, name="k")
    c = te.compute(
        (count, m, n), lambda z, i, j: te.sum(a[z, i, axis] * b[axis, j], axis=axis), name="C"
    )
    return te.func(a, b, c, name="batched")


def heads(
    batch: tuple[int, ...], m: int, n: int, k: int, *, rows: bool = False, relu: bool = False
) -> PrimFunc:
    """C = A B for each of a batch of matrices, both computed elsewhere; `rows`: B lies row by row,
    as the keys of an attention do.
    """
    a = te.placeholder((*batch, m, k), "float32", name="A")
    b = te.placeholder((*batch, n, k) if rows else (*batch, k, n), "float32", name="B")
    axis = te.reduce_axis(k, name="k")

    def element(*at: Expr) -> Expr:
        z, i, j = at[:-2], at[-2], at[-1]
        return te.sum(a[(*z, i, axis)] * b[(*z, j, axis) if rows else (*z, axis, j)], axis=axis)

    c = te.compute((*batch, m, n), element, name="C")
    if not relu:
        return te.func(a, b, c, name="heads")
    y = te.compute(c.shape, lambda *at: te.maximum(c[at] * 0.5, 0.0), name="Y")
    return te.func(a, b, y, name="heads")


def masked(m: int, n: int, k: int) -> PrimFunc:
    """Y = A B where the mask is not 0, else 0; the mask is of a type with fewer lanes."""
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B", constant=True)
    mask = te.placeholder((n,), "int64", name="M")
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    y = te.compute((m, n), lambda i, j: te.select(te.ne(mask[j], 0), c[i, j], 0.0), name="Y")
    return te.func(a, b, mask, y, name="masked")


def folded(m: int, n: int) -> PrimFunc:
    """Y = the rows of C = A B, two by two, which a tile of C does not hold"""
    a = te.placeholder((2 * m, 5), "float32", name="A")
    b = te.placeholder((5, n), "float32", name="B", constant=True)
    k = te.reduce_axis(5, name="k")
    c = te.compute((2 * m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    y = te.compute((m, 2, n), lambda i, p, j: c[i * 2 + p, j] + 1.0, name="Y")
    return te.func(a, b, y, name="folded")


ROW_KEYS = heads((1, 2), 40, 20, 8, rows=True)

CONTRACTIONS: dict[str, Callable[[], PrimFunc]] = {
    "matmul with edges": lambda: matmul_relu(13, 37, 21, constant=True),
    "matmul of one row": lambda: matmul_relu(1, 40, 33, constant=True),
    "matmul of one column": lambda: matmul(9, 1, 7, constant=True),
    "matmul of ones": lambda: matmul(1, 1, 1),
    "matmul of variable weights": lambda: matmul(33, 20, 5),
    "matmul with a cut reduction": lambda: matmul_relu(18, 17, 70, constant=True),
    "matmul of one tile, a long sum": lambda: matmul_relu(2, 9, 1024, constant=True),
    "matmul in float64": lambda: matmul_relu(7, 19, 11, dtype="float64", constant=True),
    "matmul of transposed weights": lambda: matmul_transposed(6, 35, 9),
    "matmul with a mask of bytes": lambda: masked(13, 37, 9),
    "matmul of batches": lambda: batched(2, 5, 18, 7),
    "scores of heads": lambda: heads((3,), 14, 37, 9),
    "scores of heads, scaled": lambda: heads((1, 2), 14, 20, 9, relu=True),
    "scores of keys that lie row by row": lambda: heads((1, 2), 14, 20, 9, rows=True),
    "scores of one query": lambda: heads((2, 3), 1, 33, 8),
    "vectors times matrices": lambda: heads((5,), 1, 20, 40),
    "matmul whose rows are folded": lambda: folded(7, 20),
    "convolution": lambda: conv(5, 6, 3, 20),
    "convolution without padding": lambda: conv(5, 6, 3, 20, pad=0),
    "convolution, strided": lambda: conv(8, 7, 3, 18, stride=2),
    "convolution, dilated": lambda: conv(7, 7, 2, 17, dilation=2, pad=2),
    "convolution in groups": lambda: conv(4, 5, 3, 12, groups=2),
    "convolution of points": lambda: conv(6, 5, 7, 33, kernel=1, pad=0),
    "convolution of batches": lambda: conv(4, 5, 2, 17, batch=2),
    "convolution to one pixel": lambda: conv(3, 3, 4, 20, pad=0),
    "convolution in float64": lambda: conv(4, 4, 2, 9, dtype="float64"),
}

OTHERS: dict[str, tuple[str, Callable[[], PrimFunc]]] = {
    "chain": ("elementwise", lambda: chain(5, 37)),
    "chain of one element": ("elementwise", lambda: chain(1, 1)),
    "chain, long enough to share": ("elementwise", lambda: chain(3, 1400)),
    "chain of nothing": ("elementwise", lambda: chain(0, 5)),
    "transpose": ("elementwise", lambda: transpose(7, 19)),
    "transpose of tiles with ends": ("elementwise", lambda: transpose(35, 21)),
    "transpose, long enough to share": ("elementwise", lambda: transpose(70, 64)),
    "transpose of heads": ("elementwise", lambda: keys(18, 2, 33)),
    "concat": ("elementwise", lambda: concat(3, 20, 5)),
    "chain in float64": ("elementwise", lambda: chain(3, 21, dtype="float64")),
    "pool": ("reduction", lambda: pool(7, 9, 20, pad=1)),
    "pool without padding": ("reduction", lambda: pool(6, 6, 3)),
    "pool of one window": ("reduction", lambda: pool(3, 3, 17)),
    "pool of batches": ("reduction", lambda: pool(5, 5, 6, batch=2, stride=1)),
    "pool in float64": ("reduction", lambda: pool(5, 5, 9, dtype="float64")),
    "mean over rows": ("reduction", lambda: mean(9, 21)),
    "mean of one row": ("reduction", lambda: mean(1, 3)),
    "maximum beside one number": ("reduction", lambda: largest_moved(9, 21)),
    "running sums": ("rows", lambda: running(6, 37)),
    "running sums, long enough to share": ("rows", lambda: running(5, 1400)),
    "running sums from the end": ("rows", lambda: running(6, 20, reverse=True)),
    "two states": ("rows", lambda: cell(5, 37)),
    "two states, long enough to share": ("rows", lambda: cell(4, 1400)),
    "two states, made of each other": ("rows", lambda: braid(6, 21)),
    "running sums along rows": ("rows", lambda: running(7, 9, axis=1)),
    "running sums along many rows": ("rows", lambda: running(70, 70, axis=1, reverse=True)),
    "running sums of one row": ("rows", lambda: running(1, 9, axis=1)),
    "running sums of nothing": ("rows", lambda: running(0, 9)),
    "a wave": ("rows", lambda: wave(6, 20)),
    "softmax": ("rows", lambda: softmax(3, 50)),
    "softmax of one row": ("rows", lambda: softmax(1, 20)),
    "softmax of one column": ("rows", lambda: softmax(5, 1)),
    "scores of one query, keys row by row": ("rows", lambda: heads((2,), 1, 9, 40, rows=True)),
    "chain of integers and floats": ("elementwise", lambda: counted(3, 37)),
    "mirrored end": ("elementwise", lambda: mirrored(3, 40)),
    "row norm": ("rows", lambda: row_norm(3, 40)),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CONTRACTIONS)
def test_contractions_are_right(name: str, target: str) -> None:
    func = CONTRACTIONS[name]()
    assert rule_for(func).name == "contraction"
    check(func, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", OTHERS)
def test_other_rules_are_right(name: str, target: str) -> None:
    rule, make = OTHERS[name]
    func = make()
    assert rule_for(func).name == rule
    check(func, target)


def test_a_scan_runs_in_panels_of_the_axis_that_does_not_look_back() -> None:
    sch = check(running(64, 100), "c:avx512")
    assert [line.strip() for line in str(sch.func).splitlines()[1:5]] == [
        'for j_0 in parallel(2, tail="mask"):',
        "for i in range(64):",
        'for j_1 in range(4, tail="mask"):',
        "for j_2 in vectorized(16):",
    ]


def test_several_rows_of_a_scan_go_on_together() -> None:
    sch = check(running(50, 100, axis=1), "c:avx512")
    assert [line.strip() for line in str(sch.func).splitlines()[1:4]] == [
        'for i_0 in parallel(13, tail="partition"):',
        "for j in range(100):",
        "for i_1 in unrolled(4):",
    ]


def test_an_axis_that_looks_back_stays_inside_of_the_steps() -> None:
    sch = check(wave(100, 100), "c:avx512")
    assert [line.strip() for line in str(sch.func).splitlines()[2:4]] == [
        "for t in range(100):",
        "for i in range(100):",
    ]


def test_a_batch_of_products_runs_batch_by_batch_and_packs_what_does_not_lie_in_vectors() -> None:
    target = Target.parse("c:avx512")
    plain = default_schedule(heads((4,), 40, 48, 8), target)
    assert not any("cache_read" in step for step in plain.steps)
    assert any(step.startswith("parallel(i0") for step in plain.steps)
    assert any("_packed" in step for step in default_schedule(ROW_KEYS, target).steps)


def test_loops_are_cut_where_a_select_changes() -> None:
    (block,) = mirrored(3, 40).blocks
    assert turning_points(block, block.iters[-1]) == (1, 30)
    (block,) = concat(3, 20, 5).blocks
    assert turning_points(block, block.iters[-1]) == (3,)
    sch = check(concat(16, 32, 5), "c:avx512")
    assert "mask" not in tw.build(sch, "c:avx512").source.split("_body(")[1]


def bordered(rows: int, columns: int, channels: int) -> PrimFunc:
    """X with one row and column of 0 before it, two behind, scaled."""
    x = te.placeholder((rows, columns, channels), "float32", name="X")

    def element(i: Expr, j: Expr, c: Expr) -> Expr:
        inside = te.all_of(i >= 1, i < rows + 1, j >= 1, j < columns + 1)
        return te.select(inside, x[i - 1, j - 1, c], 0.0) * 0.5

    shape = (rows + 3, columns + 3, channels)
    return te.func(x, te.compute(shape, element, name="Y"), name="bordered")


def test_a_short_last_axis_is_one_row_with_the_axis_before_it() -> None:
    sch = check(bordered(4, 17, 3), "c:avx512")
    assert "j_c, j_c, j_c = loop_partition(j_c, points=(3, 54))" in sch.steps
    assert "vectorize(j_c_1)" in sch.steps
    assert all(map(is_one_row, sch.original.blocks))
    assert not any("fuse" in step for step in check(bordered(4, 3, 16), "c:avx512").steps)
    for other in (transpose(7, 3), concat(3, 2, 1), counted(5, 3), mean(3, 3)):
        assert not all(is_one_row(block) for block in other.blocks)


def test_a_last_axis_that_a_call_ends_is_no_row_with_the_axis_before_it() -> None:
    n = te.dim("n", 1, 3)
    x = te.placeholder((17, n), "float32", name="X")
    func = te.func(x, te.compute((17, n), lambda i, j: x[i, j] * 2.0, name="Y"), name="doubled")
    assert not is_one_row(func.block("Y"))


def test_a_transposition_goes_by_square_tiles() -> None:
    (block,) = keys(18, 2, 33).blocks
    assert turned_axis(block) == 1
    (block,) = transpose(7, 40).blocks
    assert turned_axis(block) is None  # too short
    assert turned_axis(chain(9, 40).blocks[0]) is None
    steps = check(keys(18, 2, 33), "c:avx512").steps
    assert [step for step in steps if "sample" not in step] == [
        'j_0, j_1 = split(j, factors=(None, 16), tail="partition")',
        'i_0, i_1 = split(i, factors=(None, 16), tail="partition")',
        "reorder(h, i_0, j_0, j_1, i_1)",
        "vectorize(i_1)",
        "unroll(j_1)",
    ]
    assert "split(j, factors=(None, 2, 8)" in str(check(keys(18, 2, 33), "c:avx2").steps)
    assert "vectorize" not in str(check(keys(18, 2, 33), "c:scalar").steps)


@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("constant", [-7, -3, -1, 0, 2, 5, 8])
def test_a_turning_point_is_where_the_condition_changes(step: int, constant: int) -> None:
    x = te.placeholder((40,), "float32", name="X")
    for strict in (True, False):

        def element(i: Expr, strict: bool = strict) -> Expr:
            moved = i * step + (constant - 20 * step)
            return te.select(moved < 0 if strict else moved <= 0, x[i], 0.0)

        (block,) = te.func(x, te.compute((40,), element, name="Y"), name="turn").blocks
        held = [step * (i - 20) + constant < (0 if strict else 1) for i in range(40)]
        (point,) = (i for i in range(1, 40) if held[i] != held[i - 1])
        assert turning_points(block, block.iters[-1]) == (point,)


def test_what_follows_in_other_lanes_has_a_nest_of_its_own() -> None:
    text = str(check(masked(13, 37, 9), "c:avx512").func)
    assert "Y[vi, vj] = select(M[vj] != 0, C[vi, vj], 0.0)" in text  # C, not C_reg


@pytest.mark.parametrize("shape", [(0, 5, 3), (3, 0, 4)])
def test_matmuls_with_no_elements_are_right(shape: tuple[int, int, int]) -> None:
    for target in TARGETS:
        check(matmul_relu(*shape, constant=True), target)


RANDOM: dict[str, Callable[[], PrimFunc]] = {
    "matmul": lambda: matmul_relu(11, 35, 18, constant=True),
    "convolution": lambda: conv(4, 3, 2, 18),
    "grouped": lambda: conv(3, 3, 2, 12, groups=2),
    "pool": lambda: pool(7, 6, 19, pad=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RANDOM)
def test_random_decisions_stay_right(name: str) -> None:
    func = RANDOM[name]()
    seen = set()
    for seed in range(20):
        target = Target.parse(TARGETS[1 + seed % 2])
        sch = default_schedule(func, target, Random(seed))
        if str(sch) not in seen:
            check(func, str(target), Random(seed))
        seen.add(str(sch))
    assert len(seen) > (4 if name != "pool" else 0)


def test_a_rule_recognises_structure_and_not_names() -> None:
    a = te.placeholder((4, 5), "float32", name="not_a_matrix")
    b = te.placeholder((5, 6), "float32", name="conv")
    q = te.reduce_axis(5, name="pool")
    c = te.compute((4, 6), lambda x, y: te.sum(b[q, y] * a[x, q], axis=q), name="softmax")
    func = te.func(a, b, c, name="relu")
    assert rule_for(func).name == "contraction"
    found = contraction_of(func.blocks[0])
    assert found is not None
    assert (found.data.buffer.name, found.weight.buffer.name) == ("not_a_matrix", "conv")
    check(func, "c:avx2")


def test_a_schedule_made_by_a_rule_says_so() -> None:
    assert default_schedule(matmul(4, 5, 6), ISAS["scalar"]).origin == "rule"


def test_tiles_fit_the_registers_and_come_cheapest_first() -> None:
    target = Target.parse("c:avx512")
    tiles = candidates(1, 128, 768, 3072, FLOAT32, target)
    prices = [tile_cycles(tile, 1, 128, 768, 3072, FLOAT32, target) for tile in tiles]
    assert prices == sorted(prices)
    assert all(tile.accumulators + tile.vectors < target.vector_registers for tile in tiles)
    assert tiles[0].accumulators >= 24


@pytest.mark.parametrize(("inner", "meet"), [(1024, True), (1008, False), (3072, True)])
def test_a_tile_is_low_where_its_rows_meet_in_one_set_of_the_cache(inner: int, meet: bool) -> None:
    target = Target.parse("c:avx512")
    sch = default_schedule(matmul(128, 1024, inner), target)
    tile = answer(sch, "tile of C")
    assert isinstance(tile, tuple)
    assert (tile[0] * tile[1] <= target.l1_bytes // 4096 + 1) == meet


def test_a_stream_of_weights_makes_wide_tiles_dear() -> None:
    target = Target.parse("c:avx512")

    def cycles(tile: Tile, steps: int) -> float:
        return tile_cycles(tile, 1, 16, 192, steps, FLOAT32, target)

    assert cycles(Tile(1, 4, 6), 16) == cycles(Tile(1, 8, 3), 16)
    assert cycles(Tile(1, 4, 6), 4096) > 1.05 * cycles(Tile(1, 8, 3), 4096)


def test_a_tile_is_not_larger_than_what_there_is() -> None:
    for tile in candidates(1, 2, 5, 7, FLOAT64, Target.parse("c:avx2")):
        assert tile.outer_rows == 1
        assert tile.rows <= 2
        assert tile.vectors <= 2


def test_what_no_cache_holds_is_streamed_unless_arithmetic_takes_longer() -> None:
    small = replace(Target.parse("c:avx512"), l3_bytes=1 << 10)
    x = te.placeholder((300,), "float32", name="X")
    m = te.placeholder((9, 50), "float32", name="M")
    doubled = te.compute(x.shape, lambda i: x[i] * 2.0, name="Y")
    rows = te.compute(m.shape, lambda i, j: m[i, j] * 2.0, name="Y")
    powers = te.compute(x.shape, lambda i: te.exp(x[i]), name="Y")
    for source, result, streams in ((x, doubled, 1), (m, rows, 1), (x, powers, 0)):
        func = te.func(source, result, name="pointwise")
        assert sum("stream" in step for step in check(func, small).steps) == streams
        assert not [step for step in check(func, "c:avx512").steps if "stream" in step]
