"""A back end outside of tilewright, as a package of its own would bring it: kind "text". It writes
the lowered loop nest as text, which it reads again and interprets; models run as they are defined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.codegen.artifact import Parameter, Size, parameters_of, sizes_of
from tilewright.codegen.lower.split_prepare import Prepared
from tilewright.driver.backends.python import PythonBackend
from tilewright.driver.build_kernel import build_kernel
from tilewright.driver.jobs import KernelJob
from tilewright.driver.tuning.cpu_runner import CpuRunner
from tilewright.driver.tuning.runner import Data
from tilewright.driver.tuning.tuner import Compiled, Device, Toolchain
from tilewright.runtime.arrays import Array
from tilewright.runtime.kernel import Kernel, accept_constants
from tilewright.runtime.kernel_code import Code
from tilewright.runtime.machine.host import host
from tilewright.tir.errors import TargetError
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.json_reader import Json, Reader
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target import Target

VERSION = "text 1.0"


@dataclass(frozen=True, slots=True)
class TextArtifact:
    """A lowered function as text."""

    name: str
    source: str
    target: Target
    parameters: tuple[Parameter, ...]
    sizes: tuple[Size, ...]
    prepare: None = None

    @staticmethod
    def of(name: str, source: str, target: Target) -> TextArtifact:
        """What the text says of itself."""
        func = parse(source)
        return TextArtifact(name, source, target, parameters_of(func), sizes_of(func))


class TextCode(Code):
    """The text, interpreted."""

    def __init__(self, artifact: TextArtifact, constants: Mapping[str, Array]) -> None:
        self.artifact = artifact
        self.constants = dict(constants)

    def run(self, arrays: Sequence[Array], threads: int) -> None:
        """Run once, whatever the number of threads."""
        interpret(parse(self.artifact.source), *arrays, constants=self.constants)


class TextRunner(CpuRunner):
    """A worker's CPU, which interprets candidates."""

    def load(self, body: Reader, binary: bytes, data: Data) -> Kernel:
        """A candidate, whose text is all that is compiled of it."""
        target = Target(body["target"]["kind"].text())
        artifact = TextArtifact.of(body["name"].text(), binary.decode(), target)
        return Kernel(artifact, TextCode(artifact, data.constants))


class TextTuner:
    """Candidates are texts."""

    device: Device = "CPU"
    least_evicted = 1

    def check_here(self, target: Target) -> None:
        """Any machine interprets."""

    def toolchain(self, target: Target) -> Toolchain:
        """This machine's processor."""
        return Toolchain(host().model, VERSION)

    def write(self, parts: Prepared, target: Target) -> TextArtifact:
        """A lowered function as text."""
        return TEXT.write(parts, target)

    def compile(self, code: TextArtifact, seconds: float) -> Compiled:
        """The text as it is."""
        return Compiled(code.source.encode(), 0.0)

    def to_json(self, code: TextArtifact) -> dict[str, Json]:
        """A candidate without its text."""
        return {"name": code.name, "target": dict(code.target.to_json())}

    def from_json(self, data: Reader, source: str) -> TextArtifact:
        """A candidate with its text."""
        return TextArtifact.of(data["name"].text(), source, Target(data["target"]["kind"].text()))

    def runner(self) -> TextRunner:
        """What runs candidates in a worker."""
        return TextRunner()


class TextBackend(PythonBackend):
    """Functions are scheduled, lowered and proved, as those for C are; models are interpreted."""

    tuner = TextTuner()

    def build(self, job: KernelJob) -> Kernel:
        """A kernel of the lowered function's text."""
        return build_kernel(self, job)

    def why_not_run(self, target: Target) -> None:
        """None: any machine interprets."""

    def stamp(self, target: Target) -> str:
        """What a kept engine depends on."""
        return VERSION

    def write(self, parts: Prepared, target: Target, notes: str = "") -> TextArtifact:
        """A lowered function as text. Raises: TargetError for what constants are prepared of."""
        if parts.prepare is not None:
            raise TargetError(f"text: '{parts.run.name}' prepares constants.", code="text-prepare")
        return TextArtifact.of(parts.run.name, str(parts.run), target)

    def load(
        self, artifact: TextArtifact, constants: Mapping[str, object]
    ) -> tuple[Code, Mapping[str, Array]]:
        """What interprets the text."""
        bound = accept_constants(artifact, constants)
        return TextCode(artifact, bound), bound


TEXT = TextBackend()
