"""Compiling a candidate to machine code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...codegen.cuda.artifact import CudaArtifact
from ...runtime.cuda.toolchain.compile import compile_cuda
from ...runtime.cuda.toolchain.inspection import Resources, resources
from ...runtime.toolchain.compile import compile_shared
from ...tir.parsing.json_reader import Json
from ..errors import TuneError
from .candidate_code import CandidateCode

MOST_SOURCE = 1 << 20  # characters of CUDA C: four times the longest source of a rule
_REGISTER_UNIT = 8  # the allocation unit of the registers of a thread
_WARP = 32


@dataclass(frozen=True, slots=True)
class Compiled:
    """A candidate's machine code: a shared object, or a cubin.

    seconds: of compiling. local_bytes: of a GPU's local memory per thread, for stack and spilled
    registers. origin: what else a worker needs to load the binary.
    """

    binary: bytes = field(repr=False)
    seconds: float
    local_bytes: int = 0
    origin: Mapping[str, Json] = field(default_factory=dict)


def compiled(code: CandidateCode, seconds: float) -> Compiled:
    """Compile a candidate in at most so many seconds.

    Raises: CompileFailed, CompileTimedOut, TargetError; CompilerNotFound, NvrtcNotFound,
    ToolNotFound; TuneError for more registers than a block may have, and for a source that is too
    long.
    """
    if isinstance(code, CudaArtifact):
        _check_length(code)
        cubin = compile_cuda(code.source, code.target.isa, name=code.name, seconds=seconds)
        needs = resources(cubin)
        _check_registers(code, needs)
        local = max(one.stack_bytes + one.local_bytes for one in needs.values())
        return Compiled(cubin.image, cubin.seconds, local, {"compiler": cubin.compiler})
    shared = compile_shared(code.source, code.target, name=code.name, seconds=seconds)
    return Compiled(shared.binary, shared.seconds, origin={"path": str(shared.path)})


def _check_length(code: CudaArtifact) -> None:
    """Refuse a source on which NVRTC, which runs in this process, may run out of memory.

    Raises: TuneError.
    """
    if len(code.source) > MOST_SOURCE:
        raise TuneError(
            f"tune: the source of '{code.name}' has {len(code.source)} characters; expected at "
            f"most {MOST_SOURCE}: NVRTC compiles it in this process.",
            code="tune-source",
        )


def _check_registers(code: CudaArtifact, needs: Mapping[str, Resources]) -> None:
    """Refuse a kernel whose blocks need more registers than the GPU has. Raises: TuneError."""
    assert code.target.gpu is not None
    most = code.target.gpu.registers_per_block
    parts = [part for part in (code.prepare, code.run) if part is not None]
    for launch in (launch for part in parts for launch in part.launches):
        registers = needs[launch.kernel].registers
        warps = math.ceil(math.prod(launch.block) / _WARP)
        total = math.ceil(registers / _REGISTER_UNIT) * _REGISTER_UNIT * warps * _WARP
        if total > most:
            raise TuneError(
                f"tune: a block of '{launch.kernel}' has {math.prod(launch.block)} threads of "
                f"{registers} registers, {total} in all; expected at most {most} on "
                f"{code.target.isa}.",
                code="tune-registers",
            )
