"""schedule/proof/grid_races.py: threads of a block that conflict, and barriers between them."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof import prove
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.verdict import Verdict
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.te import te

from ..grids import rows_shared, tiled
from ..programs import blur, matmul


def nest_of(func: PrimFunc, steps: object) -> tuple[list[str], PrimFunc]:
    sch = Schedule(func).apply(steps)  # type: ignore[arg-type]
    return str(lower_to_nest(sch.func)).splitlines(), canonical_form(sch.func)


def turned(m: int, n: int) -> PrimFunc:
    """Y = X with each row the other way round, and doubled before."""
    x = te.placeholder((m, n), "float32", name="X")
    r = te.compute((m, n), lambda i, j: x[i, j] * 2.0, name="R")
    return te.func(x, te.compute((m, n), lambda i, j: r[i, n - 1 - j], name="Y"), name="turned")


TILED = nest_of(matmul(16, 16, 9), tiled())
SHARED = nest_of(turned(4, 8), rows_shared("R", "Y"))


def verdict(nest: tuple[list[str], PrimFunc], lines: list[str]) -> Verdict:
    return prove(parse("\n".join(lines)), nest[1])


def barriers(lines: list[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if line.strip() == "barrier()"]


@pytest.mark.parametrize(("nest", "count"), [(TILED, 2), (SHARED, 1)], ids=["tiled", "shared"])
def test_each_barrier_is_needed_and_together_they_are_enough(
    nest: tuple[list[str], PrimFunc], count: int
) -> None:
    lines = nest[0]
    assert len(barriers(lines)) == count
    assert verdict(nest, lines).status == "proved"
    for number in barriers(lines):
        found = verdict(nest, lines[:number] + lines[number + 1 :])
        assert {failure.property for failure in found.failures} == {"P5"}


def test_what_each_thread_made_itself_needs_no_barrier() -> None:
    nest = nest_of(blur(4, 8), rows_shared("R", "Y"))
    assert not barriers(nest[0])
    assert verdict(nest, nest[0]).status == "proved"


def test_a_conflict_names_two_threads_and_the_element() -> None:
    lines = TILED[0]
    first, last = barriers(lines)
    ahead = verdict(TILED, lines[:first] + lines[first + 1 :]).failures[0]
    assert str(ahead) == (
        "P5: two threads with no barrier between them write and read B_cache[1, 3]; "
        "B_cache(i_0=0, j_0=0, k_0=0, _0_1_0=0, _0_1_1=2, _0_1_2=3) and "
        "C(i_0=0, j_0=0, k_0=0, i_1=3, j_1=1, k_1=1, i_2=0, j_2=1)"
    )
    carried = verdict(TILED, lines[:last] + lines[last + 1 :]).failures[0]
    copy, use = (run.values for run in carried.iterations)
    assert copy["k_0"] == use["k_0"] + 1


def test_a_barrier_in_another_branch_parts_nothing() -> None:
    lines = TILED[0]
    first, _ = barriers(lines)
    indent = lines[first].removesuffix("barrier()")
    branch = [f"{indent}if i_0 < 1:", f"{indent}    barrier()"]
    guarded = [*lines[:first], *branch, *lines[first + 1 :]]
    assert {f.property for f in verdict(TILED, guarded).failures} == {"P5"}
    everywhere = [line.replace("i_0 < 1", "i_0 < 8") for line in guarded]
    assert verdict(TILED, everywhere).status == "refuted"  # what it says is not looked at


def test_what_a_thread_keeps_is_not_read_by_another() -> None:
    text = "\n".join(TILED[0]).replace(
        "C_reg[v0 - i_0 * 8, v1 - j_0 * 8]", "C_reg[7 - (v0 - i_0 * 8), v1 - j_0 * 8]"
    )
    failures = prove(parse(text), TILED[1]).failures
    assert any(
        f.property == "P5" and "two threads, each with a 'C_reg' of its own," in f.message
        for f in failures
    )


def test_blocks_that_write_one_element_conflict() -> None:
    text = "\n".join(SHARED[0]).replace("spatial(4, i)", "spatial(4, i // 2)")
    assert any(
        f.property == "P5" and "two blocks of loop 'i' write" in f.message
        for f in prove(parse(text), SHARED[1]).failures
    )
