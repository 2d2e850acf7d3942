"""The memory of branches and loops: every tensor that is needed is there, and the check that walks
beside the graph finds each planted fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.plan.choose import KernelChoice, choose, chosen_parts
from tilewright.graph.plan.flatten import FlatModel, flatten
from tilewright.graph.plan.fusion import fuse
from tilewright.graph.plan.lowering import lower
from tilewright.graph.plan.memory_check import check_memory
from tilewright.graph.plan.pricing import Pricer
from tilewright.tir.dtype import BOOL
from tilewright.tir.errors import InternalError
from tilewright.tir.program.flow import with_actions
from tilewright.tir.program.program import (
    Action,
    Branch,
    Copy,
    Launch,
    Program,
    Repeat,
    Slice,
    Step,
    actions,
)
from tilewright.tir.target.target import Target

from ..flow_models import MODELS

Claims = dict[str, Slice]


class Case:
    """A model on its way to memory, and what the check was told."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.claims: Claims = {}

        def spied(*arguments: object) -> None:
            *_, claims = arguments
            assert isinstance(claims, dict)
            self.claims = claims

        self.model: FlatModel = flatten(import_onnx(MODELS[name]().proto))
        flat = self.model.graph
        decisions = choose(flat, fuse(flat).groups, Pricer(Target.parse("c:avx2")))
        self.parts: tuple[KernelChoice, ...] = chosen_parts(flat, decisions)
        monkeypatch.setattr("tilewright.graph.plan.lowering.check_memory", spied)
        self.program: Program = lower(self.model, self.parts).program

    def check(self, program: Program | None = None) -> None:
        check_memory(self.model, self.parts, program or self.program, self.claims)

    def refused(self, *body: Step) -> str:
        with pytest.raises(InternalError) as caught:
            self.check(replace(self.program, body=body))
        return caught.value.message


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Case]:
    return lambda name: Case(name, monkeypatch)


def left_out(steps: tuple[Step, ...], number: Iterator[int]) -> tuple[Step, ...]:
    """The steps without the copy whose number comes to 0."""
    found: list[Step] = []
    for step in steps:
        match step:
            case Copy():
                if next(number) != 0:
                    found.append(step)
            case Branch():
                then, otherwise = left_out(step.then, number), left_out(step.otherwise, number)
                found.append(replace(step, then=then, otherwise=otherwise))
            case Repeat():
                found.append(replace(step, body=left_out(step.body, number)))
            case _:
                found.append(step)
    return tuple(found)


@pytest.mark.parametrize("name", MODELS)
def test_a_plan_passes_and_none_of_its_copies_may_be_left_out(
    name: str, case: Callable[[str], Case]
) -> None:
    made = case(name)
    made.check()
    copies = [step for step in actions(made.program.body) if isinstance(step, Copy)]
    for skipped in range(len(copies)):
        numbers = iter(range(-skipped, len(copies)))
        made.refused(*left_out(made.program.body, numbers))


@pytest.mark.parametrize("name", MODELS)
def test_no_tensor_may_lie_where_another_one_is_needed(
    name: str, case: Callable[[str], Case]
) -> None:
    """Each tensor of the arena in turn is moved to where each of the others begins: the check
    passes only what a run still gets right.
    """
    made = case(name)
    places = sorted({s.position for s in slices(made.program) if s.space == "arena"})
    rng = np.random.default_rng(0)
    refusals = 0
    for start in places:
        other = int(rng.choice([p for p in places if p != start] or [start]))

        def moved(step: Action, start: int = start, other: int = other) -> Action:
            return relocated(step, start, other)

        body = with_actions(made.program.body, moved)
        if body == made.program.body:
            continue
        try:
            made.check(replace(made.program, body=body, arena_bytes=1 << 20))
        except InternalError:
            refusals += 1
    assert refusals or len(places) < 2


def relocated(step: Action, start: int, other: int) -> Action:
    def there(item: Slice) -> Slice:
        moves = item.space == "arena" and item.position == start
        return replace(item, position=other) if moves else item

    match step:
        case Launch():
            return replace(step, arguments=tuple(map(there, step.arguments)))
        case Copy():
            return Copy(there(step.source), there(step.target))
    return step


def slices(program: Program) -> Iterator[Slice]:
    for step in actions(program.body):
        yield from step.arguments if isinstance(step, Launch) else step.effects.touched


def test_steps_are_those_of_the_graph(case: Callable[[str], Case]) -> None:
    made = case("nested")
    *before, loop = made.program.body
    assert isinstance(loop, Repeat)
    branch = Branch(Slice("arena", 0, BOOL, ()), loop.body, ())
    assert made.refused(*before, branch) == (
        "memory plan: step 1 is a branch; the graph has none there."
    )
    inner = next(step for step in loop.body if isinstance(step, Repeat))
    order = (*(step for step in loop.body if step is not inner), inner)
    assert made.refused(*before, replace(loop, body=order)) == (
        "memory plan: step 5 is a launch; the graph has none there."
    )


def test_a_row_from_the_wrong_end_is_found(case: Callable[[str], Case]) -> None:
    made = case("scanning")

    def turned(item: Slice) -> Slice:
        return replace(item, moves=tuple(replace(m, reverse=not m.reverse) for m in item.moves))

    def changed(step: Action) -> Action:
        if not isinstance(step, Launch):
            return step
        return replace(step, arguments=tuple(map(turned, step.arguments)))

    message = made.refused(*with_actions(made.program.body, changed))
    assert "which was not written there or is taken" in message


def test_a_loop_runs_as_often_as_the_graph_says(case: Callable[[str], Case]) -> None:
    made = case("collecting")
    body = tuple(
        replace(step, count=4) if isinstance(step, Repeat) else step for step in made.program.body
    )
    assert "runs 4 times; the graph says 5" in made.refused(*body)


def test_a_carried_value_is_computed_in_its_place_where_nobody_reads_the_old_one(
    case: Callable[[str], Case],
) -> None:
    """Else it is copied at the end of an iteration; before the first one where it is an input."""

    def copied(name: str) -> int:
        return sum(isinstance(step, Copy) for step in actions(case(name).program.body))

    assert copied("counted") == 2
    assert copied("two_products") == 1
