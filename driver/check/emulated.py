"""tw.emulated: a CUDA kernel, or a whole engine for a GPU, that runs on the CPU, without a GPU."""

from __future__ import annotations

from functools import partial
from typing import overload

from ...codegen.cuda.artifact import CudaArtifact
from ...codegen.cuda.program_artifact import CudaProgram
from ...runtime.cuda.device.code import DeviceCode
from ...runtime.cuda.emulator.emulated_code import EmulatedCode
from ...runtime.cuda.emulator.emulated_program import EmulatedProgram
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
        _program(what.parts)  # refuses another target
        return what.run_by(partial(_emulated_program, checked=checked))
    artifact, code = what.artifact, what.code
    if not isinstance(artifact, CudaArtifact) or not isinstance(code, DeviceCode):
        raise TargetError(
            f"emulated: '{what.name}' is built for {artifact.target}; expected a kernel for a GPU.",
            code="emulated-target",
            hints=("tw.build(what, 'cuda:sm_90a') builds one.",),
        )
    copy = EmulatedCode(artifact, code.constants, checked=checked)
    return Kernel(artifact, copy, proof=what.proof, work=what.work)


def _emulated_program(parts: EngineParts, checked: bool) -> EmulatedProgram:
    return EmulatedProgram(_program(parts), parts.constants, checked=checked)


def _program(parts: EngineParts) -> CudaProgram:
    artifact = parts.artifact
    if not isinstance(artifact, CudaProgram):
        raise TargetError(
            f"emulated: the engine '{artifact.name}' is built for {artifact.target}; expected one "
            "for a GPU.",
            code="emulated-engine",
            hints=("tw.compile(model, 'cuda:sm_90a') builds one.",),
        )
    return artifact
