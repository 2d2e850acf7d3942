"""How candidates in CUDA C are tuned, on the GPU of this machine."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...codegen.cuda.artifact import CudaArtifact
from ...codegen.cuda.build import write_cuda
from ...codegen.lower.split_prepare import Prepared
from ...runtime.cuda.artifact_json import cuda_from_json, cuda_to_json
from ...runtime.cuda.device.availability import Unavailable, availability
from ...runtime.cuda.driver.architecture import runs_on
from ...runtime.cuda.toolchain.compile import compile_cuda, cuda_flags
from ...runtime.cuda.toolchain.inspection import Resources, inspector, resources
from ...runtime.cuda.toolchain.nvrtc import NvrtcNotFound, find_nvrtc
from ...tir.errors import TargetError
from ...tir.json_reader import Json, Reader
from ...tir.target.target import Target
from .errors import TuneError
from .runner import Runner
from .tuner import Compiled, Device, Toolchain

MOST_SOURCE = 1 << 20  # characters of CUDA C: four times the longest that a rule writes
_REGISTER_UNIT = 8  # registers of a thread are dealt out by so many
_WARP = 32


class CudaTuner:
    """Candidates are cubins, which the first GPU runs."""

    device: Device = "GPU"
    least_evicted = 1  # a runner writes what evicts them, or nothing

    def check_here(self, target: Target) -> None:
        """Refuse to measure where there is no GPU, or another one, or not what makes its code.

        Raises: NoDevice, TargetError, NvrtcNotFound, ToolNotFound.
        """
        found = availability()
        if isinstance(found, Unavailable):
            raise found.error()
        device = found.devices[0]
        if not runs_on(target.isa, device.capability):
            raise TargetError(
                f"tune: the GPU here, '{device.name}', is an {device.arch}; expected one that runs "
                f"code for '{target}'.",
                code="tune-arch",
                hints=("target 'cuda' is the GPU that is here.",),
            )
        find_nvrtc()
        inspector("cuobjdump")

    def toolchain(self, target: Target) -> Toolchain:
        """The GPU and NVRTC; what is not here has no name."""
        found, device, driver = availability(), "", ""
        if not isinstance(found, Unavailable):
            device = found.devices[0].name
            driver = "CUDA {}.{}".format(*found.driver.version())
        try:
            compiler = str(find_nvrtc())
        except NvrtcNotFound:
            compiler = ""
        return Toolchain(device, compiler, cuda_flags(target.isa), driver)

    def write(self, parts: Prepared, target: Target) -> CudaArtifact:
        """A lowered function as CUDA C. Raises: TargetError for what a grid cannot run."""
        return write_cuda(parts, target)

    def compile(self, code: CudaArtifact, seconds: float) -> Compiled:
        """The cubin of a candidate. Raises: TuneError for more registers than a block has, and for
        a source that is too long.
        """
        _check_length(code)
        cubin = compile_cuda(code.source, code.target.isa, name=code.name, seconds=seconds)
        needs = resources(cubin)
        _check_registers(code, needs)
        local = max(one.stack_bytes + one.local_bytes for one in needs.values())
        return Compiled(cubin.image, cubin.seconds, local, {"compiler": cubin.compiler})

    def to_json(self, code: CudaArtifact) -> dict[str, Json]:
        """A candidate without its CUDA C."""
        return cuda_to_json(code)

    def from_json(self, data: Reader, source: str) -> CudaArtifact:
        """The candidate that `to_json` wrote, with its CUDA C."""
        return cuda_from_json(data, source)

    def runner(self) -> Runner:
        """The first GPU, with a context of the worker. Raises: NoDevice, DeviceError."""
        from .gpu_runner import GpuRunner  # a machine that compiles and sends needs no device

        return GpuRunner()


def _check_length(code: CudaArtifact) -> None:
    """Refuse a source that may take NVRTC, and so this process, more memory than there is. Raises:
    TuneError.
    """
    if len(code.source) > MOST_SOURCE:
        raise TuneError(
            f"tune: the source of '{code.name}' has {len(code.source)} characters; expected at "
            f"most {MOST_SOURCE}: NVRTC compiles it in this process.",
            code="tune-source",
        )


def _check_registers(code: CudaArtifact, needs: Mapping[str, Resources]) -> None:
    """Refuse a kernel of which not even one block finds room. Raises: TuneError."""
    limits = code.target.limits
    assert limits is not None
    most = limits.registers_per_block
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
