"""A back end outside of tilewright, as a package of its own would bring it: kind "text". It writes
the lowered loop nest as text, which it reads again and interprets; so it does with models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from tilewright.codegen.artifact import Parameter, ToldSize, parameters_of, sizes_of
from tilewright.codegen.lower.split_prepare import Prepared
from tilewright.driver.backends.python import PythonBackend
from tilewright.driver.build_kernel import build_kernel
from tilewright.driver.build_parts import build_parts
from tilewright.driver.check.program import KernelCheck
from tilewright.driver.jobs import KernelJob, ProgramJob
from tilewright.driver.lower_program import LoweredKernel
from tilewright.driver.tuning.cpu_runner import CpuRunner
from tilewright.driver.tuning.runner import Data
from tilewright.driver.tuning.tuner import Compiled, Device, Toolchain
from tilewright.runtime.arrays import NO_SIZES, Array
from tilewright.runtime.engine.engine_code import Constants, EngineError, Sections
from tilewright.runtime.engine.interpreted_code import InterpretedModelCode
from tilewright.runtime.engine.interpreted_program import InterpretedProgram
from tilewright.runtime.engine.parts import EngineParts
from tilewright.runtime.kernel import Kernel, accept_constants
from tilewright.runtime.kernel_code import Code
from tilewright.runtime.machine.host import host
from tilewright.runtime.model.model import Model, StoredModel
from tilewright.tir.dim import Dim
from tilewright.tir.errors import TargetError
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.json_reader import Json, Reader
from tilewright.tir.parsing.parser import parse
from tilewright.tir.program.json import parse_program, program_text
from tilewright.tir.program.program import Program
from tilewright.tir.target.target import Target

VERSION = "text 1.0"
SECTION = "lowered.json"  # of an engine's file


@dataclass(frozen=True, slots=True)
class TextArtifact:
    """A lowered function as text."""

    name: str
    source: str
    target: Target
    parameters: tuple[Parameter, ...]
    sizes: tuple[ToldSize, ...]
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


@dataclass(frozen=True, slots=True)
class TextModelCode(InterpretedModelCode):
    """A program of lowered functions as text."""

    text: str

    @property
    def source(self) -> str:
        """The lowered functions."""
        return "\n".join(map(str, parse_program(self.text).functions))

    def load(self, constants: Constants, plain: StoredModel | None) -> InterpretedProgram:
        """What interprets the lowered functions, on the weights of the program before schedules.
        Raises: EngineError where these were not kept.
        """
        if plain is None:
            raise EngineError(f"engine: '{self.artifact.name}' has no weights.", code="engine-code")
        return InterpretedProgram(
            self.artifact, Model(parse_program(self.text), plain.model().constants)
        )

    def sections(self) -> Iterator[tuple[str, bytes]]:
        """The text."""
        yield SECTION, self.text.encode()

    @staticmethod
    def read(data: Reader, sections: Sections, compiler: str) -> TextModelCode:
        """The code in a file. Raises: IRError."""
        plain = InterpretedModelCode.read(data, {}, compiler)
        return TextModelCode(plain.artifact, bytes(sections[SECTION]).decode())


class CompiledText:
    """A program as text: its functions are proved, and not run alone."""

    seconds = 0.0
    not_run = "not run: interpreted with the whole"

    def __init__(self, code: TextModelCode) -> None:
        self.code = code

    def symbol(self, kernel: LoweredKernel) -> str:
        """The name of its function."""
        return kernel.run.name

    def checks(self, kernels: Mapping[str, LoweredKernel]) -> dict[str, KernelCheck]:
        """Nothing runs alone."""
        return dict.fromkeys(kernels, KernelCheck(self.not_run, None, 0.0))

    def engine_runs(
        self, constants: Constants, program: Program, sizes: Mapping[Dim, int] = NO_SIZES
    ) -> str:
        """Why there are none."""
        return "unchecked: interpreted"


class TextWriting:
    """A program on its way to text."""

    def __init__(self, target: Target) -> None:
        self.seconds: list[tuple[str, float]] = []
        self._target = target

    def add(self, kernel: LoweredKernel) -> None:
        """Written with the whole. Raises: TargetError for what constants are prepared of."""
        _check_prepares_nothing(kernel.run.name, kernel.prepare)

    def finish(self, lowered: Program) -> CompiledText:
        """The whole as text."""
        artifact = InterpretedModelCode.of(lowered, self._target).artifact
        return CompiledText(TextModelCode(artifact, program_text(lowered)))


def _check_prepares_nothing(name: str, prepare: PrimFunc | None) -> None:
    if prepare is not None:
        raise TargetError(f"text: '{name}' prepares constants.", code="text-prepare")


class TextRunner(CpuRunner):
    """A worker's CPU, which interprets candidates."""

    def load(self, body: Reader, binary: bytes, data: Sequence[Data]) -> list[Kernel]:
        """A candidate, whose text is all that is compiled of it."""
        target = Target(body["target"]["kind"].text())
        artifact = TextArtifact.of(body["name"].text(), binary.decode(), target)
        return [Kernel(artifact, TextCode(artifact, one.constants)) for one in data]


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
    """Functions are scheduled, lowered and proved, as those for C are, also those of models."""

    tuner = TextTuner()

    def build(self, job: KernelJob) -> Kernel:
        """A kernel of the lowered function's text."""
        return build_kernel(self, job)

    def build_program(self, job: ProgramJob) -> EngineParts:
        """The parts of an engine of the lowered functions' text."""
        return build_parts(job, "text", lambda: nullcontext(TextWriting(job.target)))

    def read_code(self, data: Reader, sections: Sections, compiler: str) -> TextModelCode:
        """An engine's text from its file."""
        return TextModelCode.read(data, sections, compiler)

    def why_not_run(self, target: Target) -> None:
        """None: any machine interprets."""

    def stamp(self, target: Target) -> str:
        """What a kept engine depends on."""
        return VERSION

    def write(self, parts: Prepared, target: Target, notes: str = "") -> TextArtifact:
        """A lowered function as text. Raises: TargetError for what constants are prepared of."""
        _check_prepares_nothing(parts.run.name, parts.prepare)
        return TextArtifact.of(parts.run.name, str(parts.run), target)

    def load(
        self, artifact: TextArtifact, constants: Mapping[str, object]
    ) -> tuple[Code, Mapping[str, Array]]:
        """What interprets the text."""
        bound = accept_constants(artifact, constants)
        return TextCode(artifact, bound), bound


TEXT = TextBackend()
