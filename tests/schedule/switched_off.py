"""The rules of order, each with what to put in its place so that it refuses nothing; and what the
checked interpreter meets then.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import pytest

from tilewright.codegen.lower.lower import contraction, lower_to_nest
from tilewright.driver.fuzz import steps
from tilewright.driver.fuzz.case import arrays, named
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.drawing import Arguments
from tilewright.schedule.errors import Kind, ScheduleError
from tilewright.schedule.legality import completeness, dependence, loops, recurrence, tensors
from tilewright.schedule.nest import loops_around, readers, writers
from tilewright.schedule.primitives.blocks import reduction
from tilewright.schedule.primitives.loops import fission
from tilewright.schedule.primitives.storage import scope
from tilewright.schedule.proof import prove
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.verdict import REFUTED
from tilewright.tir.buffer import Buffer
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.checks import InterpreterError
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.reference.error_bound import reference
from tilewright.tir.stmt import For
from tilewright.tir.target.target import Target
from tilewright.tir.visit import blocks

PLACE = re.compile(r"(?<!\[)\((?:\w+=-?\d+(?:, )?)*\)")  # one concrete iteration
ELEMENT = re.compile(r"(\w+)\[(?:[\d, ]+|\(\))\]")


def _no(*_: object, **__: object) -> None:
    """A rule that finds nothing wrong."""


def _none(*_: object, **__: object) -> tuple[()]:
    """A rule that finds nothing to mind."""
    return ()


def _innermost(func: PrimFunc, tensor: Buffer, primitive: str) -> For:
    """The innermost loop that holds all accesses to a tensor, whatever it goes on with."""
    users = (*writers(func, tensor), *readers(func, tensor))
    around = loops_around(func, users[0])
    return [loop for loop in around if all(b in blocks(loop.body) for b in users)][-1]


# where a rule stands, its name, what stands in its place
OFF: dict[str, list[tuple[ModuleType, str, object]]] = {
    "fission-order": [(fission, "_check_order", _no)],
    "init-inside": [(reduction, "_check_begins_once", _no)],
    "loop-carries": [(dependence, "check_reads_own", _no)],
    "loop-conflict": [(loops, "check_independent", _none)],
    "merge-order": [(dependence, "check_together", _no)],
    "operand-ahead": [(completeness, "check_ahead", _no)],
    "operand-later": [(completeness, "check_operands", _no)],
    "reader-early": [(dependence, "check_read_complete", _no)],
    "reader-inside": [(completeness, "check_readers_after", _no)],
    "reduction-open": [(loops, "reduction_loops", _none), (completeness, "check_parts", _no)],
    "reverse-overlap": [(completeness, "check_parts", _no)],
    "scan-carries": [(loops, "check_independent", _none)],
    "scan-order": [(recurrence, "check_order", _no)],
    "scope-carries": [(scope, "_check_one_loop", _innermost)],
    "storage-elsewhere": [(tensors, "check_storage_around", _no)],
    "writer-inside": [(completeness, "check_before", _no)],
}


def switch_off(patch: pytest.MonkeyPatch, code: str) -> None:
    """Let a rule refuse nothing."""
    for module, name, instead in OFF[code]:
        replace_everywhere(patch, module, name, instead)


def replace_everywhere(
    patch: pytest.MonkeyPatch, module: ModuleType, name: str, instead: object
) -> None:
    """Put `instead` in the place of a function, in each module that imports it by name, too."""
    function = getattr(module, name)
    for known, other in list(sys.modules.items()):
        if known.startswith("tilewright.") and vars(other).get(name) is function:
            patch.setattr(other, name, instead)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A step that was refused, and the schedule before it."""

    schedule: Schedule
    primitive: str
    arguments: Arguments
    error: ScheduleError

    def applied(self) -> Schedule | None:
        """The schedule after the step, its rule switched off; None where another one refuses."""
        with pytest.MonkeyPatch.context() as patch:
            switch_off(patch, self.error.code)
            sch = self.schedule.copy()
            try:
                _PERFORM(sch, self.primitive, self.arguments)
            except ScheduleError:
                return None
            return sch


_PERFORM: Callable[[Schedule, str, Arguments], object] = steps.perform


def recorded(patch: pytest.MonkeyPatch) -> list[Refusal]:
    """The conflicts that random steps meet from now on."""
    found: list[Refusal] = []

    def perform(sch: Schedule, name: str, arguments: Arguments) -> object:
        try:
            return _PERFORM(sch, name, arguments)
        except ScheduleError as error:
            if error.kind is Kind.CONFLICT and error.code in OFF:
                found.append(Refusal(sch.copy(), name, arguments, error))
            raise

    patch.setattr(steps, "perform", perform)
    return found


def tensor_of(error: ScheduleError) -> str:
    """The tensor of a refusal's witness, which names two iterations and one element."""
    note = error.notes[0]
    assert len(PLACE.findall(note)) == 2, note
    (tensor,) = set(ELEMENT.findall(note))
    return str(tensor)


def conflict(sch: Schedule, seed: int = 0) -> str:
    """What goes wrong: the error of the checked interpreter, on the schedule or on its nest, or the
    output that differs; nothing where all is well.
    """
    given = arrays(sch.original, seed)
    expected = reference(sch.original, given)
    for func in (sch.func, lower_to_nest(contracted(sch))):
        try:
            results = interpret(func, *named(given, func), checked=True)
        except InterpreterError as error:
            return error.message
        comparison = expected.compare(results)
        if not comparison:
            return comparison.output
    return ""


def contracted(sch: Schedule) -> PrimFunc:
    """The schedule's function as lowering begins with it."""
    return contraction(sch.func, Target.parse("c:avx512"))


def refuted(sch: Schedule) -> bool:
    """Whether the proof refutes a schedule: no value shows a copy of what was never written, or the
    loss of what is no maximum.
    """
    func = contracted(sch)
    return prove(lower_to_nest(func), canonical_form(func)).status == REFUTED
