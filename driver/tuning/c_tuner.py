"""How candidates in C are tuned."""

from __future__ import annotations

from ...codegen.artifact import Artifact
from ...codegen.c.build import write_artifact
from ...codegen.lower.split_prepare import Prepared
from ...runtime.artifact_json import kernel_from_json, kernel_to_json
from ...runtime.machine.host import host, last_level_bytes, why_not_run
from ...runtime.toolchain.compile import compile_shared
from ...runtime.toolchain.compilers import compile_flags, find_compiler
from ...tir.errors import TargetError
from ...tir.json_reader import Json, Reader
from ...tir.target.target import Target
from .cpu_runner import CpuRunner
from .tuner import Compiled, Device, Toolchain


class CTuner:
    """Candidates are shared objects, which this machine's CPU runs."""

    device: Device = "CPU"

    @property
    def least_evicted(self) -> int:
        """Twice the last-level cache."""
        return 2 * last_level_bytes()

    def check_here(self, target: Target) -> None:
        """Refuse a target whose instructions this CPU lacks. Raises: TargetError."""
        why = why_not_run(target)
        if why is not None:
            raise TargetError(
                f"tune: the target is '{target}', {why}; expected one whose candidates run here.",
                code="tune-isa",
                hints=(
                    "target 'c' is this machine; executor= measures on another one.",
                    "tw.build and tw.compile take such a target, and what was tuned for it "
                    "elsewhere.",
                ),
            )

    def toolchain(self, target: Target) -> Toolchain:
        """This CPU and the C compiler. Raises: CompilerNotFound."""
        compiler = find_compiler()
        flags = (*compile_flags(target), *compiler.flags)
        return Toolchain(host().model, compiler.version, flags)

    def write(self, parts: Prepared, target: Target) -> Artifact:
        """A lowered function as C."""
        return write_artifact(parts, target)

    def compile(self, code: Artifact, seconds: float) -> Compiled:
        """The shared object of a candidate."""
        shared = compile_shared(code.source, code.target, name=code.name, seconds=seconds)
        return Compiled(shared.binary, shared.seconds, origin={"path": str(shared.path)})

    def to_json(self, code: Artifact) -> dict[str, Json]:
        """A candidate without its C."""
        return kernel_to_json(code)

    def from_json(self, data: Reader, source: str) -> Artifact:
        """The candidate that `to_json` wrote, with its C."""
        return kernel_from_json(data, source)

    def runner(self) -> CpuRunner:
        """Threads of a worker."""
        return CpuRunner()
