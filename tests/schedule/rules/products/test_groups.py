"""schedule/rules/products/groups.py: panels lie within groups, their last vector is as long as what
is left; values, proof, replay, prices; the same bits on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.estimate import estimate
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.rules.products.groups import choose_panel, has_short_end
from tilewright.schedule.rules.shape.structure import contraction
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.error_bound import reference
from tilewright.tir.target.target import Target

from ...programs import conv
from ..test_rules import TARGETS, check

pytestmark = pytest.mark.sampled(5)

AVX512 = Target.parse("c:avx512")


def points(height: int, width: int, channels: int, outputs: int, groups: int = 2) -> PrimFunc:
    """A convolution of 1x1 windows; channels: of a group."""
    return conv(height, width, channels, outputs, groups=groups, kernel=1, pad=0)


GROUPED: dict[str, Callable[[], PrimFunc]] = {
    "a short end of four": lambda: points(3, 5, 5, 40),
    "a short end of two": lambda: points(2, 4, 3, 36),
    "a short end of eight": lambda: points(2, 3, 3, 48),
    "a long end": lambda: points(2, 3, 3, 60),
    "fewer columns than lanes": lambda: points(3, 4, 3, 12, groups=4),
    "a prime number of columns": lambda: points(2, 3, 2, 74),
    "one row": lambda: points(1, 1, 4, 36),
    "windows": lambda: conv(4, 4, 3, 36, groups=2),
    "a long sum": lambda: points(1, 1, 1024, 6),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", GROUPED)
def test_grouped_columns_are_right(name: str, target: str) -> None:
    check(GROUPED[name](), target)


def test_random_decisions_stay_right() -> None:
    func, seen = points(3, 4, 3, 40), set[str]()
    for seed in range(8):
        target = TARGETS[1 + seed % 2]
        sch = default_schedule(func, Target.parse(target), Random(seed))
        if str(sch) not in seen:
            check(func, target, Random(seed))
        seen.add(str(sch))
    assert len(seen) > 4


@pytest.mark.parametrize(
    ("group", "width"), [(34, 34), (68, 68), (136, 68), (28, 28), (6, 6), (131, 131)]
)
def test_a_panel_wastes_little_of_its_vectors(group: int, width: int) -> None:
    target = replace(AVX512, fma_per_cycle=1)
    func = points(14, 14, 32, 4 * group, groups=4)
    found = contraction(next(block for block in func.blocks if contraction(block)))
    assert found is not None
    panel = choose_panel(Schedule(func, target), found, target)
    assert panel.width == width
    assert panel.tile.vectors == -(-width // 16)


def test_the_last_vector_of_a_panel_is_as_long_as_what_is_left() -> None:
    assert [n for n in range(1, 33) if has_short_end(n, 16)] == [*range(1, 9), *range(17, 25)]
    sch = default_schedule(points(7, 7, 16, 136, groups=2), AVX512)
    text = [line.strip() for line in str(sch.func).splitlines()]
    assert 'for o_1_0 in unrolled(5, tail="partition"):' in text
    source = tw.build(sch, "c:avx512", constants=_constants(sch.func)).source
    run = source[source.rindex("_body(") :] + source
    assert "_mm_fmadd_ps" in run
    assert "_mm_storeu_ps" in run
    assert "_mask" not in source.split("_body(")[-1]


def test_a_shorter_vector_is_cheaper_where_the_units_are_half_as_wide() -> None:
    narrow = replace(AVX512, fma_per_cycle=1)
    func, whole = points(14, 14, 64, 136), points(14, 14, 64, 160)
    for target, share in ((narrow, 0.95), (AVX512, 1.02)):
        assert estimate(func, target) < share * estimate(whole, target)
        scheduled = estimate(default_schedule(func, target), target)
        assert scheduled == pytest.approx(estimate(func, target), rel=0.3)


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", ["a short end of two", "windows"])
def test_grouped_columns_have_the_same_bits_on_any_number_of_threads(name: str) -> None:
    func = GROUPED[name]()
    rng = np.random.default_rng(0)
    given = [p.buffer for p in func.parameters if p.role != "output"]
    arrays = {b.name: rng.standard_normal(b.shape, dtype=np.float32) for b in given}
    kernel = tw.build(func, constants={b.name: arrays[b.name] for b in func.constants})
    results = [kernel(arrays["X"], threads=threads) for threads in (1, 2, 3)]
    comparison = reference(func, arrays).compare({func.outputs[0].name: results[0]})
    assert comparison, str(comparison)
    assert all(result.tobytes() == results[0].tobytes() for result in results)


def _constants(func: PrimFunc) -> dict[str, np.typing.NDArray[np.float32]]:
    return {b.name: np.ones(b.shape, np.float32) for b in func.constants}
