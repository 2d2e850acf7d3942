"""A proof has one number of operations for all properties, and ends where they are used up."""

from __future__ import annotations

from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof.forms.budget import Budget
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te


def fused_tiles(count: int) -> tuple[PrimFunc, PrimFunc]:
    """A sum of products of Y, each fused tile of which makes the part of Y that it reads, and its
    canonical form. count: of the axes that are tiled.
    """
    a = te.placeholder((24, 22, 30), "float32", name="A")
    y = te.compute(a.shape, lambda i, j, k: a[i, j, k] * 2.0, name="Y")
    r = te.reduce_axis(3, name="r")
    c = te.compute(
        (21, 19, 27),
        lambda i, j, k: te.sum(y[i + r, j, k] * y[i, j + r, k + r], axis=r),
        name="C",
    )
    sch = Schedule(te.func(a, c, name="fused_tiles"))
    outer, inner = zip(*(sch.split(x, (None, 8)) for x in sch.loops("C")[:count]), strict=True)
    sch.reorder(*outer, *inner)
    blocks, tiles = sch.split(sch.fuse(*outer), (None, 5))
    sch.compute_at("Y", tiles)
    sch.parallel(blocks)
    return lower_to_nest(sch.func), canonical_form(sch.func)


def test_two_fused_tiles_that_are_split_again_are_proved() -> None:
    assert prove(*fused_tiles(2)).status == "proved"


def test_all_properties_share_the_operations_of_a_proof() -> None:
    """Three fused tiles took 17 s, then were left undecided: P1 and P2 each had their own."""
    verdict = prove(*fused_tiles(3), 50_000)
    said = {reason for reason in verdict.reasons if reason.startswith(("P1", "P2", "P5"))}
    assert said == {
        f"{name}: the proof takes isl more than 50000 operations" for name in ("P1", "P2", "P5")
    }


def test_a_proof_gives_up_when_its_seconds_are_over() -> None:
    verdict = prove(*fused_tiles(2), budget=Budget(seconds=0.0))
    assert verdict.status == "unknown"
    assert "P5: the proof takes more than 0 s of the processor" in verdict.reasons


def test_a_proof_builds_so_many_relations_and_no_more() -> None:
    verdict = prove(*fused_tiles(2), budget=Budget(relations=3))
    assert verdict.status == "unknown"
    assert "P5: the proof builds more than 3 relations" in verdict.reasons
