"""schedule/primitives/primitive.py: a primitive made by the recipe of CONTRIBUTING.md is taken,
recorded, written as a line, replayed and drawn, and no other file knows of it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from tilewright.schedule.drawing import Arguments, ScheduleView, choose_any_loop
from tilewright.schedule.errors import Kind, ScheduleError, refuse
from tilewright.schedule.nest import Rewrite, loop_of, replace_loop
from tilewright.schedule.primitives.parameters import LOOP, OPTIONAL, PLAIN
from tilewright.schedule.primitives.primitive import Primitive, one_loop
from tilewright.schedule.primitives.table import STEP_FORMS
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.references import LoopRef
from tilewright.schedule.trace.trace import Step, Trace
from tilewright.tir.expr import Var
from tilewright.tir.func import PrimFunc
from tilewright.tir.visit import substitute

from ..programs import assert_meaning_kept, assert_replays, body_of, matmul

# -- the file of the primitive --------------------------------------------------------------------


def rename_loop(func: PrimFunc, loop: Var, name: str, *, primed: bool = False) -> Rewrite:
    """Give a loop another name.

    for i in range(n): s   ->   for x in range(n): s[i := x]
    """
    if not name.isidentifier():
        raise refuse(
            func,
            f"rename_loop: {name!r} is no name.",
            code="rename-name",
            kind=Kind.ARGUMENT,
        )
    node = loop_of(func, loop)
    new = Var(f"{name}_" if primed else name)
    renamed = replace(node, var=new, body=substitute(node.body, {loop: new}))
    return Rewrite(replace_loop(func, node, renamed), (new,), forward={loop: (new,)})


def draw_rename_loop(sch: ScheduleView, rng: Random) -> Arguments:
    """Any loop, and one of two names."""
    return {"loop": choose_any_loop(sch, rng), "name": rng.choice(("x", "y"))}


RENAME_LOOP = Primitive(
    "rename_loop",
    rename_loop,
    {"loop": LOOP, "name": PLAIN, "primed": OPTIONAL},
    gives=one_loop,
    draw=draw_rename_loop,
)

# -- its method -----------------------------------------------------------------------------------


class Renaming(Schedule):
    """A schedule with one more step."""

    def rename_loop(self, loop: LoopRef, name: str, *, primed: bool = False) -> LoopRef:
        """Give a loop another name. Returns it."""
        return self._take(RENAME_LOOP, loop=loop, name=name, primed=primed)


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has what a file of the folder would declare."""
    monkeypatch.setitem(STEP_FORMS, "rename_loop", RENAME_LOOP)


def renamed() -> Renaming:
    sch = Renaming(matmul(2, 3, 4))
    i, j, k = sch.loops("C")
    row = sch.rename_loop(i, "row")
    sch.rename_loop(k, "term", primed=True)
    sch.reorder(j, row)
    return sch


def test_it_is_taken() -> None:
    sch = renamed()
    assert [loop.name for loop in sch.loops("C")] == ["j", "row", "term_"]
    assert_meaning_kept(sch)


def test_it_is_recorded_in_the_order_of_its_declaration() -> None:
    assert json.dumps(renamed().trace.to_json()["steps"][:2]) == json.dumps(  # type: ignore[index]
        [
            {
                "primitive": "rename_loop",
                "arguments": {"loop": {"loop": "b0.l0", "name": "i"}, "name": "row"},
            },
            {
                "primitive": "rename_loop",
                "arguments": {
                    "loop": {"loop": "b0.l2", "name": "k"},
                    "name": "term",
                    "primed": True,
                },
            },
        ]
    )


def test_it_is_written_as_a_line() -> None:
    assert renamed().steps[:2] == (
        'row = rename_loop(i, name="row")',
        'term_ = rename_loop(k, name="term", primed=True)',
    )


def test_it_is_replayed() -> None:
    sch = renamed()
    assert_replays(sch)
    again = Renaming.replay(matmul(2, 3, 4), sch.trace)
    assert body_of(again) == body_of(sch)


REFUSALS: dict[str, tuple[tuple[str, object], ...]] = {
    "ScheduleError: replay: step 0, 'rename_loop', has other arguments than the primitive: missing "
    "a required argument: 'name'. [replay-arguments]": (("loop", {"loop": "b0.l0"}),),
    "ScheduleError: replay: step 0, 'rename_loop', has name 3; expected a text. [replay-kind]": (
        ("loop", {"loop": "b0.l0"}),
        ("name", 3),
    ),
    "ScheduleError: replay: step 0, 'rename_loop', has loop {'block': 'b0'}; expected LoopRef. "
    "[replay-kind]": (
        ("loop", {"block": "b0"}),
        ("name", "x"),
    ),
}


@pytest.mark.parametrize("text", REFUSALS, ids=[text.split("[")[-1][:12] for text in REFUSALS])
def test_a_trace_that_has_other_arguments_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        Schedule.replay(matmul(2, 3, 4), Trace((Step("rename_loop", REFUSALS[text]),)))
    assert str(refusal.value) == text


def test_it_is_drawn() -> None:
    assert RENAME_LOOP.draw is not None
    sch, rng = Renaming(matmul(2, 3, 4)), Random(0)
    for _ in range(5):
        sch.take(sch.as_step("rename_loop", RENAME_LOOP.draw(sch, rng)))
    assert len(sch.trace.steps) == 5
    assert {loop.name for loop in sch.loops("C")} <= {"i", "j", "k", "x", "y"}
