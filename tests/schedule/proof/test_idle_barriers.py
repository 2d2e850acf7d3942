"""schedule/proof/idle_barriers.py: barriers that nothing needs go, the others stay."""

from __future__ import annotations

from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.schedule.proof.idle_barriers import without_idle_barriers
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.text.equal import equal

from ..grids import rows_shared, tiled
from ..programs import blur, matmul, matmul_relu


def count(func: PrimFunc) -> int:
    return str(func).count("barrier()")


def test_what_parts_two_threads_stays() -> None:
    nest = lower_to_nest(Schedule(matmul(16, 16, 9)).apply(tiled()).func)
    assert count(nest) == 2
    assert equal(without_idle_barriers(nest), nest)


def test_places_of_its_own_for_each_turn_need_no_barrier_at_its_end() -> None:
    nest = lower_to_nest(Schedule(matmul_relu(9, 6, 5)).apply(tiled()).func)
    assert (count(nest), count(without_idle_barriers(nest))) == (3, 2)


def test_barriers_of_another_one_are_looked_at_too() -> None:
    nest = lower_to_nest(Schedule(blur(3, 8)).apply(rows_shared("R", "Y")).func)
    text = str(nest)
    more = text.replace("\n        for j_0", "\n        barrier()\n        for j_0")
    assert count(parse(more)) > count(nest) == 0
    assert str(without_idle_barriers(parse(more))) == text


def test_one_before_a_loop_spares_others_inside() -> None:
    nest = lower_to_nest(Schedule(matmul(16, 16, 15)).apply(tiled(stages=3)).func)
    lines = str(without_idle_barriers(nest)).splitlines()
    places = [n for n, line in enumerate(lines) if line.strip() == "barrier()"]
    assert count(nest) == 2
    assert lines[places[0] - 1].strip() == "commit(B_cache, A_cache, 2)"
    assert [lines[n + 1].strip() for n in places] == ["for k_0 in range(5):", "del B_cache"]


def test_a_barrier_between_kernels_stays() -> None:
    nest = lower_to_nest(Schedule(matmul_relu(9, 6, 5)).apply(tiled()).func)
    roots = str(without_idle_barriers(nest)).splitlines()
    assert "    barrier()" in roots
