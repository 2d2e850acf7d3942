"""schedule/primitives/storage/narrow.py: text, values, proof, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tilewright as tw
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...programs import assert_meaning_kept, body_of, chain, refusals, scheduled

AVX512 = Target.parse("c:avx512")
Steps = Callable[[Schedule], object]


def padded(kind: str = "float16", wide: str = "float32", fill: float = 0.0) -> PrimFunc:
    """Y[i] = P[i] * P[i + 1], where P is X, widened, with an element before and one behind it."""
    x = te.placeholder((6,), kind, name="X")

    def element(i: Expr) -> Expr:
        inside = te.all_of(i >= 1, i < 7)
        return te.select(inside, te.cast(x[i - 1], wide), te.const(fill, wide))

    p = te.compute((8,), element, name="P")
    return te.func(x, te.compute((7,), lambda i: p[i] * p[i + 1], name="Y"), name="padded")


def test_what_is_moved_stays_in_its_type_and_is_widened_where_it_is_read() -> None:
    text = body_of(scheduled(padded(), lambda sch: sch.narrow("P")))
    assert 'P = alloc(float16[8], "global")' in text
    assert "P[vi] = select(1 <= vi and vi < 7, X[vi - 1], float16(0.0))" in text
    assert 'Y[vi] = cast(P[vi], "float32") * cast(P[vi + 1], "float32")' in text


@pytest.mark.parametrize(
    ("kind", "wide"),
    [("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32"), ("uint8", "float32")],
)
def test_values_and_proof(kind: str, wide: str) -> None:
    sch = scheduled(padded(kind, wide, 1.0), lambda s: s.narrow("P"))
    assert_meaning_kept(sch)
    assert tw.prove(sch, AVX512).status == "proved"


CASES: dict[str, tuple[PrimFunc, Steps]] = {
    "narrow-value: computed": (chain(2, 3), lambda s: s.narrow("P")),
    "narrow-value: a number that the type lacks": (
        padded(fill=0.1),
        lambda s: s.narrow("P"),
    ),
    "narrow-value: wider before": (padded("int32", "float32"), lambda s: s.narrow("P")),
    "narrow: not-intermediate": (padded(), lambda s: s.narrow("Y")),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_narrow.txt", refusals(CASES))
