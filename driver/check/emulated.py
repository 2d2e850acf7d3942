"""tw.emulated: a CUDA kernel, or a whole engine for a GPU, that runs on the CPU, without a GPU."""

from __future__ import annotations

from functools import partial
from typing import overload

from ...runtime.engine.context import ProgramCode
from ...runtime.engine.engine import Engine
from ...runtime.engine.parts import EngineParts
from ...runtime.kernel import Kernel
from ...tir.errors import TargetError


@overload
def emulated(what: Kernel, *, checked: bool = False) -> Kernel: ...
@overload
def emulated(what: Engine, *, checked: bool = False) -> Engine: ...
def emulated(what: Kernel | Engine, *, checked: bool = False) -> Kernel | Engine:
    """What was built for a GPU as the CPU runs it: its own sources, compiled as C++, each thread in
    turn. It says what is right, and nothing about speed.

    checked: look at every load and store: races, bounds, reads of what was not written. After a
    call `code.report` of the result says what each line asked of memory: passes over the banks of
    shared memory, sectors, and which barriers something needed; `print(what.code.report.table)`.
    Raises: TargetError for what is built for another target; CompilerNotFound, CompileFailed;
    EmulationFailed, also at a call.
    """
    if isinstance(what, Engine):
        return what.run_by(partial(_emulated_program, checked=checked))
    copy = what.code.emulated(checked=checked)
    if copy is None:
        raise TargetError(
            f"emulated: '{what.name}' is built for {what.artifact.target}; expected a kernel for a "
            "GPU.",
            code="emulated-target",
            hints=("tw.build(what, 'cuda:sm_90a') builds one.",),
        )
    return what.run_by(copy)


def _emulated_program(parts: EngineParts, checked: bool) -> ProgramCode:
    found = parts.code.emulated(parts.constants, checked=checked)
    if found is None:
        raise TargetError(
            f"emulated: the engine '{parts.artifact.name}' is built for {parts.artifact.target}; "
            "expected one for a GPU.",
            code="emulated-engine",
            hints=("tw.compile(model, 'cuda:sm_90a') builds one.",),
        )
    return found
