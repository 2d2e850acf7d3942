"""schedule/proof/in_order.py: sums keep the order of their definition, or two points show that they
do not.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof.in_order import reordered_sums, rounds
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.te import te

from ..programs import causal, conv, extremes, farthest, matmul, matmul_relu, pool

Steps = Callable[[Schedule], object]


def found(func: PrimFunc, steps: Steps) -> list[str]:
    sch = Schedule(func).apply(steps)
    nest, canonical = lower_to_nest(sch.func), canonical_form(sch.func)
    assert prove(nest, canonical).status == "proved"
    return [str(failure) for failure in reordered_sums(func, canonical, nest)]


def tiled(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    outer, inner = sch.split(k, (None, 4), tail="partition")
    sch.reorder(outer, i, j, inner)
    sch.stage("C", "C", i, "register")
    sch.unroll(inner)
    sch.parallel(sch.loops("Y")[0])


def taps_first(sch: Schedule) -> None:
    *_, c, r, s = sch.loops("conv")
    sch.reorder(r, s, c)


KEPT: dict[str, tuple[PrimFunc, Steps]] = {
    "as it is": (matmul(3, 4, 5), lambda s: None),
    "another order of the kept axes": (
        matmul(3, 4, 5),
        lambda s: s.reorder(*reversed(s.loops("C"))),
    ),
    "in blocks": (matmul_relu(3, 5, 9), tiled),
    "in two parts of the loop": (
        matmul(3, 4, 5),
        lambda s: s.loop_partition(s.loops("C")[2], (2,)),
    ),
    "what a condition leaves": (causal(4, 5, 2), lambda s: s.split(s.loops("C")[2], (None, 2))),
    "a maximum in any order": (pool(4, 4, 1), lambda s: s.reorder(*reversed(s.loops("Y")[-2:]))),
    "integers in any order": (
        matmul(3, 4, 6, dtype="int32"),
        lambda s: s.rfactor("C", s.split(s.loops("C")[2], (None, 2))[0]),
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_the_order_is_kept(name: str) -> None:
    assert not found(*KEPT[name])


def halves_exchanged(sch: Schedule) -> None:
    outer, inner = sch.split(sch.loops("C")[2], (None, 2))
    sch.reorder(inner, outer)


def parts(sch: Schedule) -> None:
    sch.rfactor("C", sch.split(sch.loops("C")[2], (None, 2))[0])


def test_two_points_show_that_a_sum_is_reordered() -> None:
    assert found(matmul(1, 1, 4), halves_exchanged) == [
        "P3: block 'C' adds point (vi=0, vj=0, vk=2) before (vi=0, vj=0, vk=1); "
        "C(k_1=0, k_0=1) and C(k_1=1, k_0=0)"
    ]
    (text,) = found(conv(3, 3, 2, 2), taps_first)
    assert text.startswith("P3: block 'conv' adds point (")


def test_a_sum_of_parts_is_another_sum() -> None:
    assert found(matmul(2, 3, 4), parts) == ["P3: block 'C' is summed in parts"]


def test_what_rounds_is_a_float_made_by_arithmetic() -> None:
    x = te.placeholder((3, 4), "float32", name="X")
    k = te.reduce_axis(4, name="k")
    product = te.func(
        x, te.compute((3,), lambda i: te.prod(x[i, k], axis=k), name="P"), name="product"
    )
    for func, expected in (
        (matmul(2, 2, 2), True),
        (product, True),
        (matmul(2, 2, 2, dtype="int32"), False),
        (pool(4, 4, 1), False),
        (farthest(2, 3), False),
        (extremes(2, 3), False),
    ):
        assert [rounds(b) for b in func.blocks if b.init is not None] == [expected], func.name


def test_what_an_unknown_update_does_may_round() -> None:
    func = parse("""
def f(X: float32[2, 3], Y: output(float32[2])):
    for i in range(2):
        for k in range(3):
            with block("Y", vi=spatial(2, i), vk=reduce(3, k)):
                with init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] * 2.0 + X[vi, vk]
""")
    assert rounds(func.block("Y"))
