"""schedule/rules/attention.py: the rule is right on every target, whole or block by block of rows,
with few rows, and in order; it looks at structure alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ops.attention import Attention, Heads
from tilewright.runtime.machine.host import host_target
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ..rule_checks import Answered, check

pytestmark = pytest.mark.sampled(7)

TARGETS = ["c:scalar", "c:avx2", "c:avx512"]


def attention(
    batch: int, rows: int, places: int, depth: int, *, masked: bool = True, heads: int = 2
) -> PrimFunc:
    """Heads side by side in one array where there are as many rows as places, else in arrays of
    their own.
    """
    joined = rows == places
    first = heads if joined else 0
    op = Attention(
        heads, 0.5, Heads(), Heads(first, not joined), Heads(2 * first, not joined), guarded=True
    )
    q = te.placeholder((batch, rows, (3 if joined else 1) * heads, depth), "float32", name="Q")
    inputs = [q]
    if not joined:
        shape = (batch, heads, places, depth)
        inputs += [te.placeholder(shape, "float32", name=name) for name in "KV"]
    k, v = (q, q) if joined else inputs[1:]
    mask = [te.placeholder((1, 1, rows, places), "float32", name="M")] if masked else []
    return te.func(*inputs, *mask, *op.express(q, k, v, *mask, name="Y"), name="attention")


def two_products(
    rows: int,
    element: Callable[[te.Tensor, te.Expr, te.Expr, te.Expr], te.Expr],
    constants: str = "",
) -> PrimFunc:
    """Z = 2 M V, and M what `element` makes of the scores Q K^T / 2, for 2 heads of 17 places."""
    q = te.placeholder((2, rows, 5), "float32", name="Q", constant="Q" in constants)
    k = te.placeholder((2, 17, 5), "float32", name="K", constant="K" in constants)
    v = te.placeholder((2, 17, 5), "float32", name="V", constant="V" in constants)
    d, c = te.reduce_axis(5, name="d"), te.reduce_axis(17, name="c")
    kt = te.compute((2, 5, 17), lambda b, x, j: k[b, j, x] * 0.5, name="kt")
    s = te.compute(
        (2, rows, 17), lambda b, i, j: te.sum(q[b, i, d] * kt[b, d, j], axis=d), name="s"
    )
    m = te.compute((2, rows, 17), lambda b, i, j: element(s, b, i, j), name="m")
    y = te.compute((2, rows, 5), lambda b, i, j: te.sum(m[b, i, c] * v[b, c, j], axis=c), name="y")
    z = te.compute((2, rows, 5), lambda b, i, j: y[b, i, j] * 2.0, name="Z")
    return te.func(q, k, v, z, name="two_products")


def above_the_largest(rows: int, constants: str = "") -> PrimFunc:
    """Two products, the largest score of each row subtracted between them."""
    largest: list[te.Tensor] = []

    def element(s: te.Tensor, b: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        axis = te.reduce_axis(17, name="a")
        if not largest:
            largest.append(
                te.compute((2, rows), lambda b, i: te.max(s[b, i, axis], axis=axis), name="t")
            )
        return s[b, i, j] - largest[0][b, i]

    return two_products(rows, element, constants)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "func",
    [
        attention(1, 6, 6, 4),
        attention(2, 20, 20, 20),
        attention(2, 5, 19, 7, masked=False),
        attention(1, 1, 19, 16),
        attention(3, 2, 17, 8, masked=False),
    ],
    ids=["small", "joined", "without a mask", "one row", "two rows"],
)
def test_its_schedule_is_right(func: PrimFunc, target: str) -> None:
    assert rule_for(func).name == "attention"
    check(func, target, rtol=1e-4, atol=1e-5)


def as_written_by_hand(heads: int, rows: int, depth: int, constants: str = "") -> PrimFunc:
    """softmax(Q K^T / 2) V as a formula says it: keys as they lie, and powers that are divided by
    their sum before the second product.
    """
    shape = (heads, rows, depth)
    q, k, v = (te.placeholder(shape, "float32", name=n, constant=n in constants) for n in "QKV")
    d = te.reduce_axis(depth, name="d")
    t, u, w = (te.reduce_axis(rows, name=name) for name in "tuw")
    square = (heads, rows, rows)
    s = te.compute(square, lambda h, i, j: te.sum(q[h, i, d] * k[h, j, d], axis=d), name="s")
    x = te.compute(square, lambda h, i, j: s[h, i, j] * 0.5, name="x")
    m = te.compute((heads, rows), lambda h, i: te.max(x[h, i, t], axis=t), name="m")
    e = te.compute(square, lambda h, i, j: te.exp(x[h, i, j] - m[h, i]), name="e")
    z = te.compute((heads, rows), lambda h, i: te.sum(e[h, i, u], axis=u), name="z")
    p = te.compute(square, lambda h, i, j: e[h, i, j] / z[h, i], name="p")
    y = te.compute(shape, lambda h, i, j: te.sum(p[h, i, w] * v[h, w, j], axis=w), name="Y")
    return te.func(q, k, v, y, name="attention")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(3, 20, 20), (2, 9, 7), (1, 37, 16)])
@pytest.mark.parametrize("constants", ["", "K", "V"])
def test_one_that_is_written_by_hand_has_the_rule_too(
    shape: tuple[int, int, int], constants: str, target: str
) -> None:
    func = as_written_by_hand(*shape, constants)
    assert rule_for(func).name == "attention"
    check(func, target, rtol=1e-4, atol=1e-5)


def test_keys_of_few_rows_are_not_copied_for_it() -> None:
    assert rule_for(as_written_by_hand(2, 3, 8)).name == "rows"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "element",
    [
        lambda s, b, i, j: s[b, i, 16 - j],
        lambda s, b, i, j: s[b, i, j] + s[b, i, 16 - j],
        lambda s, b, i, j: s[b, i, te.minimum(j + 1, 16)],
    ],
    ids=["backwards", "both ways", "the next one"],
)
@pytest.mark.parametrize("rows", [1, 9])
def test_scores_that_are_read_at_other_places_of_their_row_are_made_whole_first(
    rows: int, element: Callable[[te.Tensor, te.Expr, te.Expr, te.Expr], te.Expr], target: str
) -> None:
    func = two_products(rows, element)
    assert rule_for(func).name == "attention"
    text = str(check(func, target).func)
    assert 's = alloc(float32[2, 9, 17], "thread"' in text or rows == 1


@pytest.mark.parametrize("target", TARGETS)
def test_one_row_and_a_product_that_is_changed_behind_it(target: str) -> None:
    check(above_the_largest(1), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("constants", ["K", "V", "KV", "QK", "QKV"])
@pytest.mark.parametrize("rows", [1, 9])
def test_what_is_made_of_constants_alone_is_made_once(
    rows: int, constants: str, target: str
) -> None:
    text = str(check(above_the_largest(rows, constants), target).func)
    assert ('kt = alloc(float32[2, 5, 17], "global")' in text) == ("K" in constants and rows == 9)
    assert "V_cache" not in text or "V" not in constants


@pytest.mark.parametrize("masked", [False, True])
def test_rows_pass_through_in_blocks(masked: bool) -> None:
    func = attention(1, 29, 29, 4, masked=masked, heads=1)
    decisions = Answered({"rows together of Y_mixed": 16})
    blocks = check(func, "c:avx512", decisions, rtol=1e-4, atol=1e-5)
    assert str(blocks.func) != str(default_schedule(func, Target.parse("c:avx512")).func)


def test_a_strict_schedule_takes_no_sum_in_parts() -> None:
    func, target = attention(1, 20, 20, 20), Target.parse("c:avx512")
    assert rule_for(func, strict=True).name == "attention"
    texts = [str(default_schedule(func, target, strict=strict).func) for strict in (False, True)]
    assert ["_rf" in text for text in texts] == [True, False]


def test_scores_stay_in_memory_of_the_thread_and_rows_are_whole_vectors_apart() -> None:
    text = str(default_schedule(attention(1, 20, 20, 20), Target.parse("c:avx512")).func)
    assert 'Y_masked = alloc(float32[1, 2, 20, 20], "thread", align={2: (16, 0)})' in text


def test_the_schedule_does_not_depend_on_names() -> None:
    func, target = attention(1, 20, 20, 20), Target.parse("c:avx512")
    renamed = parse(str(func).replace("Y", "other"))
    one, two = (default_schedule(f, target) for f in (func, renamed))
    assert str(one.func).replace("Y", "other") == str(two.func)


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("rows", [1, 33])
def test_a_kernel_has_equal_bits_for_any_number_of_threads(rows: int) -> None:
    import tilewright as tw

    func = attention(1, rows, 33, 16, heads=3)
    kernel = tw.build(func, host_target())
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(p.buffer.shape, dtype=np.float32) for p in func.parameters[:-1]]
    results = {np.asarray(kernel(*arrays, threads=n)).tobytes() for n in (1, 2, 3)}
    assert len(results) == 1
