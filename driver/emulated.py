"""tw.emulated: a CUDA kernel that runs on the CPU, without a GPU."""

from __future__ import annotations

from ..codegen.cuda.artifact import CudaArtifact
from ..runtime.cuda.device_code import DeviceCode
from ..runtime.cuda.emulated_code import EmulatedCode
from ..runtime.kernel import Kernel
from ..tir.errors import TargetError


def emulated(kernel: Kernel, *, checked: bool = False) -> Kernel:
    """A kernel that was built for a GPU, as one that the CPU runs: its own source, compiled as C++,
    each thread in turn. It says what is right, and nothing about speed.

    checked: look at every load and store: races, bounds, reads of what was not written. After a
    call `code.report` of the result says what each line asked of memory: passes over the banks of
    shared memory, sectors, and which barriers something needed; `print(kernel.code.report.table)`.
    Raises: TargetError for a kernel of another target; CompilerNotFound, CompileFailed;
    EmulationFailed, also at a call.
    """
    artifact, code = kernel.artifact, kernel.code
    if not isinstance(artifact, CudaArtifact) or not isinstance(code, DeviceCode):
        raise TargetError(
            f"emulated: '{kernel.name}' is built for {artifact.target}; expected a kernel for a "
            "GPU.",
            code="emulated-target",
            hints=("tw.build(what, 'cuda:sm_90a') builds one.",),
        )
    copy = EmulatedCode(artifact, code.constants, checked=checked)
    return Kernel(artifact, copy, proof=kernel.proof, work=kernel.work)
