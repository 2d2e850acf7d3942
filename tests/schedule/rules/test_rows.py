"""schedule/rules/rows.py and row_groups.py: which blocks share a row, the steps taken, values,
proof, replay; the compiled kernels have the same bits on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.lower.lower import contraction, lower_to_nest
from tilewright.schedule.rules.default import rule_for
from tilewright.schedule.rules.shape.row_groups import RowGroup, row_axis, row_groups
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.error_bound import reference
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ..programs import farthest, matmul, moments
from ..rule_checks import check
from .test_rules import TARGETS, softmax

pytestmark = pytest.mark.sampled(5)


def layer_norm(*shape: int, axes: int = 1) -> PrimFunc:
    """(X - mean) / sqrt(variance + 0.5) * G, over the last `axes` axes, which the means keep."""
    x = te.placeholder(shape, "float32", name="X")
    g = te.placeholder(shape[-1:], "float32", name="G")
    rows, columns = shape[:-axes], shape[-axes:]
    kept = (*rows, *(1,) * axes)
    count = float(np.prod(columns))

    def own(i: tuple[Expr, ...]) -> tuple[Expr | int, ...]:
        return (*i[: len(rows)], *(0,) * axes)

    def mean_of(name: str, element: Callable[[tuple[Expr, ...]], Expr]) -> te.Tensor:
        k = tuple(te.reduce_axis(extent, name=f"k{d}") for d, extent in enumerate(columns))
        total = te.compute(
            kept, lambda *i: te.sum(element((*i[: len(rows)], *k)), axis=k), name=f"{name}_sum"
        )
        return te.compute(kept, lambda *i: total[i] / count, name=name)

    mean = mean_of("mean", lambda i: x[i])
    variance = mean_of("variance", lambda i: (x[i] - mean[own(i)]) * (x[i] - mean[own(i)]))
    y = te.compute(
        shape,
        lambda *i: (x[i] - mean[own(i)]) / te.sqrt(variance[own(i)] + 0.5) * g[i[-1]],
        name="Y",
    )
    return te.func(x, g, y, name="layer_norm")


def reduced(kind: str, *shape: int, keep: bool = False, dtype: str = "float32") -> PrimFunc:
    """The rows of X, each made one element."""
    x = te.placeholder(shape, dtype, name="X")
    k = te.reduce_axis(shape[-1], name="k")
    reduce = getattr(te, kind)
    result = (*shape[:-1], 1) if keep else shape[:-1]
    y = te.compute(result, lambda *i: reduce(x[(*i[: len(shape) - 1], k)], axis=k), name="Y")
    return te.func(x, y, name=kind)


def masked_softmax(heads: int, rows: int, columns: int) -> PrimFunc:
    """Softmax of X / 8 + M, M the same for all heads, over the columns."""
    x = te.placeholder((heads, rows, columns), "float32", name="X")
    mask = te.placeholder((rows, columns), "float32", name="M")
    k, k2 = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="k2")
    a = te.compute(x.shape, lambda h, i, j: x[h, i, j] * 0.125 + mask[i, j], name="A")
    m = te.compute((heads, rows), lambda h, i: te.max_any(a[h, i, k], axis=k), name="m")
    e = te.compute(x.shape, lambda h, i, j: te.exp(a[h, i, j] - m[h, i]), name="e")
    s = te.compute((heads, rows), lambda h, i: te.sum(e[h, i, k2], axis=k2), name="s")
    y = te.compute(x.shape, lambda h, i, j: e[h, i, j] / s[h, i], name="Y")
    return te.func(x, mask, y, name="masked_softmax")


def column_norm(rows: int, columns: int) -> PrimFunc:
    """X minus the mean of its column, over the sum of its row."""
    x = te.placeholder((rows, columns), "float32", name="X")
    k, k2 = te.reduce_axis(rows, name="k"), te.reduce_axis(columns, name="k2")
    s = te.compute((columns,), lambda j: te.sum(x[k, j], axis=k), name="S")
    m = te.compute((columns,), lambda j: s[j] * 0.5, name="M")
    r = te.compute((rows,), lambda i: te.sum(x[i, k2] - m[k2], axis=k2), name="R")
    y = te.compute(x.shape, lambda i, j: (x[i, j] - m[j]) / (r[i] + 0.25), name="Y")
    return te.func(x, y, name="column_norm")


def centred(rows: int, columns: int) -> PrimFunc:
    """X minus the mean of its row."""
    x, k = te.placeholder((rows, columns), "float32", name="X"), te.reduce_axis(columns, name="k")
    s = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="S")
    y = te.compute(x.shape, lambda i, j: x[i, j] - s[i] * (1.0 / columns), name="Y")
    return te.func(x, y, name="centred")


def attention(heads: int, rows: int, columns: int, depth: int) -> PrimFunc:
    """The softmax of Q K', both row by row; a row of the scores is no one element."""
    q = te.placeholder((heads, rows, depth), "float32", name="Q")
    k = te.placeholder((heads, columns, depth), "float32", name="K")
    d, t = te.reduce_axis(depth, name="d"), te.reduce_axis(columns, name="t")
    shape = (heads, rows, columns)
    s = te.compute(shape, lambda h, i, j: te.sum(q[h, i, d] * k[h, j, d], axis=d), name="S")
    e = te.compute(shape, lambda h, i, j: te.exp(s[h, i, j] * 0.01), name="e")
    z = te.compute((heads, rows), lambda h, i: te.sum(e[h, i, t], axis=t), name="Z")
    y = te.compute(shape, lambda h, i, j: e[h, i, j] / z[h, i], name="Y")
    return te.func(q, k, y, name="attention")


def scaled_dots(rows: int, columns: int, depth: int) -> PrimFunc:
    """Y[i, j] = the sum of A[i, k] R[i] B[j, k] over k, where R sums the rows of A."""
    a = te.placeholder((rows, depth), "float32", name="A")
    b = te.placeholder((columns, depth), "float32", name="B")
    k, t = te.reduce_axis(depth, name="k"), te.reduce_axis(depth, name="t")
    r = te.compute((rows,), lambda i: te.sum(a[i, t], axis=t), name="R")
    y = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * r[i] * b[j, k], axis=k), name="Y")
    return te.func(a, b, y, name="scaled_dots")


def shared_row(rows: int, columns: int) -> PrimFunc:
    """Rows over the sum of the first row: what every row reads is computed before them."""
    x, k = te.placeholder((rows, columns), "float32", name="X"), te.reduce_axis(columns, name="k")
    s = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="S")
    y = te.compute(x.shape, lambda i, j: x[i, j] - s[0], name="Y")
    return te.func(x, y, name="shared_row")


ROWS: dict[str, Callable[[], PrimFunc]] = {
    "layer norm": lambda: layer_norm(3, 48),
    "layer norm with an end": lambda: layer_norm(2, 3, 37),
    "layer norm of two axes": lambda: layer_norm(3, 4, 24, axes=2),
    "layer norm of one row": lambda: layer_norm(1, 70),
    "layer norm, long enough to share": lambda: layer_norm(5, 2, 210),
    "sums": lambda: reduced("sum", 5, 130),
    "sums that keep their axis": lambda: reduced("sum", 2, 3, 33, keep=True),
    "sums in float64": lambda: reduced("sum", 3, 19, dtype="float64"),
    "sums of integers": lambda: reduced("sum", 3, 19, dtype="int32"),
    "sum of everything": lambda: reduced("sum", 300),
    **{f"largest of {n}": lambda n=n: reduced("max", 3, n) for n in (8, 10, 16, 17, 33)},
    "sums of few": lambda: reduced("sum", 9, 3),
    "sums of nothing": lambda: reduced("sum", 3, 0),
    "products": lambda: reduced("prod", 3, 20),
    "largest": lambda: reduced("max", 4, 129),
    "largest, of any": lambda: reduced("max_any", 4, 129),
    "masked softmax": lambda: masked_softmax(2, 3, 21),
    "masked softmax, long enough to share": lambda: masked_softmax(3, 7, 70),
    "softmax of many": lambda: softmax(2, 260),
    "where the largest is": lambda: farthest(3, 20),
    "several outputs": lambda: moments(3, 40),
    "scores and their softmax": lambda: attention(2, 3, 20, 17),
    "dots that another row scales": lambda: scaled_dots(3, 5, 33),
    "columns, then rows": lambda: column_norm(9, 21),
    "a row that all read": lambda: shared_row(3, 40),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ROWS)
def test_rows_are_right(name: str, target: str) -> None:
    func = ROWS[name]()
    assert rule_for(func).name == "rows"
    check(func, target)


def test_the_blocks_of_a_softmax_are_one_group() -> None:
    members = ("m", "e", "s")
    assert row_groups(softmax(3, 50)) == (RowGroup("Y", members, 1),)


def test_outputs_have_groups_of_their_own() -> None:
    groups = row_groups(moments(3, 40))
    assert [(group.anchor, group.members) for group in groups] == [
        ("S", ()),
        ("Q", ()),
        ("D", ()),
    ]


def test_a_product_behind_a_row_stands_alone() -> None:
    x = te.placeholder((3, 17), "float32", name="X")
    v = te.placeholder((17, 5), "float32", name="V")
    k, c = te.reduce_axis(17, name="k"), te.reduce_axis(17, name="c")
    t = te.compute((3,), lambda i: te.max(x[i, k], axis=k), name="t")
    m = te.compute((3, 17), lambda i, j: x[i, j] - t[i], name="m")
    y = te.compute((3, 5), lambda i, j: te.sum(m[i, c] * v[c, j], axis=c), name="Y")
    func = te.func(x, v, y, name="behind")
    assert row_groups(func) == (RowGroup("m", ("t",), 1), RowGroup("Y", (), 0))
    check(func, "c:avx512")


def test_what_other_rows_read_stands_alone() -> None:
    assert [group.anchor for group in row_groups(shared_row(3, 40))] == ["S", "Y"]


def test_a_reduction_across_rows_has_no_row_axis() -> None:
    (block,) = matmul(3, 4, 5).blocks
    assert row_axis(block) is None  # B[k, j] is not walked along k
    (block,) = reduced("sum", 3, 5).blocks
    axis = row_axis(block)
    assert axis is not None
    assert axis.extent == 5


def test_a_sum_is_joined_by_vectors_by_fours_and_one_by_one() -> None:
    sch = check(reduced("sum", 2, 40), "c:avx2")
    assert [step for step in sch.steps if "rfactor" in step or "vectorize" in step] == [
        'Y_rf = rfactor("Y", k_1)',  # two vectors of every 16th element, in three rounds
        'Y_rf_1 = rfactor("Y", k_1_1)',
        'Y_rf_2 = rfactor("Y", k_1_1_1)',
        "vectorize(k_1_1)",
        "vectorize(k_1_1_1)",
        "vectorize(k_1_1_1_1)",
    ]
    nest = lower_to_nest(contraction(sch.func, Target.parse("c:avx2")))
    guards = [line.strip() for line in str(nest).splitlines() if "where(" in line]
    assert guards == []


def test_the_next_row_is_asked_for_while_powers_are_made() -> None:
    sch = check(softmax(90, 100), "c:avx512")
    (asked,) = [step for step in sch.steps if "prefetch" in step]
    assert asked.startswith('prefetch("X", at=i, spread=(j_0,), ')
    lines = [line.strip() for line in str(sch.func).splitlines()]
    place = lines.index('prefetch(X[i + 1, j_0 * 16], "read", 1)')
    assert lines[place - 1].startswith("for j_0 in range(7")
    assert not [s for s in check(softmax(9, 100), "c:avx512").steps if "prefetch" in s]


@pytest.mark.slow
def test_no_row_is_asked_for_where_memory_is_slower_than_arithmetic() -> None:
    for func in (layer_norm(90, 100), reduced("sum", 90, 100)):
        assert not [step for step in check(func, "c:avx512").steps if "prefetch" in step]


@pytest.mark.slow
def test_rows_that_no_cache_holds_are_streamed_unless_arithmetic_takes_longer() -> None:
    small = replace(Target.parse("c:avx512"), l3_bytes=1 << 10)
    for func, streams in ((centred(5, 100), True), (softmax(5, 100), False)):
        found = [step for step in check(func, small).steps if "stream" in step]
        assert found == ['annotate(j_0, key="stream", value=1)'] * streams
        assert not [s for s in check(func, "c:avx512").steps if "stream" in s]


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    "name", ["layer norm, long enough to share", "masked softmax, long enough to share", "largest"]
)
def test_rows_have_the_same_bits_on_any_number_of_threads(name: str) -> None:
    func = ROWS[name]()
    kernel = tw.build(func)
    rng = np.random.default_rng(0)
    arrays = {b.name: rng.standard_normal(b.shape, dtype=np.float32) for b in func.inputs}
    results = [kernel(*arrays.values(), threads=threads) for threads in (1, 2, 3)]
    output = func.outputs[0].name
    comparison = reference(func, arrays).compare({output: results[0]})
    assert comparison, str(comparison)
    assert all(result.tobytes() == results[0].tobytes() for result in results)


@pytest.mark.parametrize("kind", ["sum", "max"])
@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("uint8", "uint8"),
        ("int8", "int32"),
        ("int32", "int8"),
        ("bool", "int32"),
        ("int64", "int64"),
        ("int64", "float64"),
        ("int64", "int8"),
    ],
)
@pytest.mark.parametrize("target", ["c:avx512", "c:avx2"])
def test_rows_of_any_type_are_reduced(target: str, source: str, result: str, kind: str) -> None:
    x = te.placeholder((5, 40), source, name="X")
    k = te.reduce_axis(40, name="k")

    def element(i: Expr) -> Expr:
        value = te.cast(x[i, k], result)
        return te.sum(value, axis=k, dtype=result) if kind == "sum" else te.max(value, axis=k)

    y = te.compute((5,), element, name="Y")
    assert tw.build(te.func(x, y, name="rows"), target).proof.status == "proved"


@pytest.mark.parametrize("shift", ["index", "data"])
def test_indices_that_become_data_run_in_short_vectors(shift: str) -> None:
    """Flags as bits of a word: on AVX2, too; integers of 64 bits that are data do not."""
    x = te.placeholder((5, 32), "float32", name="X")
    places = te.placeholder((32,), "int64", name="P")
    k, one = te.reduce_axis(32, name="k"), te.const(1, "int32")

    def word(i: Expr) -> Expr:
        by = te.cast(k if shift == "index" else places[k], "int32")
        return te.sum(te.select(x[i, k] > 0.0, one << by, te.const(0, "int32")), axis=k)

    inputs = (x,) if shift == "index" else (x, places)
    func = te.func(*inputs, te.compute((5,), word, name="Y"), name="words")
    made = rule_for(func).schedule(func, Target.parse("c:avx2"))
    assert ("vectorized" in str(made.func)) is (shift == "index")
    check(func, "c:avx2")


def test_an_element_whose_terms_data_place_grows_in_a_register() -> None:
    x, starts = (
        te.placeholder((5, 40), "float32", name="X"),
        te.placeholder((9,), "int64", name="S"),
    )
    k = te.reduce_axis(4, name="k")

    def element(i: Expr, j: Expr) -> Expr:
        return te.sum(x[i, te.clamp_index(starts[j] + k, 40)], axis=k)

    sch = check(te.func(x, starts, te.compute((5, 9), element, name="Y"), name="f"), "c:avx512")
    assert 'stage("Y", "Y", j, scope="register")' in sch.steps
