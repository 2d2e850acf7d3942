"""A model's code for a CPU: C, and the object that it was compiled to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...codegen.program_artifact import ProgramArtifact
from ...tir.json_reader import Json, Reader
from ...tir.program.program import Effects, Launch, launch_effects, steps_text
from ..artifact_json import artifact_from_json, artifact_to_json
from ..cpu.pool import use_pool
from ..cpu.program_code import NativeProgram, prepare_constants
from ..machine.host import why_not_run
from ..model.model import StoredModel
from ..model.report import MemoryPlan
from ..toolchain.library import SharedObject
from .context import ProgramCode
from .engine_code import Constants, EngineError, Sections, given, texts_of
from .foreign import ForeignProgram
from .format import BINARY, POOL, source_section


@dataclass(frozen=True, slots=True)
class CpuCode:
    """C with its object and the thread pool's. shared: None where it was not compiled, but can be
    exported.
    """

    artifact: ProgramArtifact
    shared: SharedObject | None = None
    pool: SharedObject | None = None

    @property
    def source(self) -> str:
        """The generated C as one text."""
        from ...codegen.c.program_source import program_source  # a run needs no source

        return "" if self.shared is None else program_source(self.artifact)

    @property
    def plan(self) -> str:
        """The steps of a run, in order, and where their arrays lie."""
        return "\n".join(steps_text(self.artifact.body))

    @property
    def memory(self) -> MemoryPlan:
        """The memory that runs take."""
        from ..model.arena import arena_tensors  # a run needs no map

        artifact = self.artifact
        return MemoryPlan(
            weights_bytes=sum(artifact.constants[position].bytes for position in artifact.read),
            arena_bytes=artifact.arena_bytes,
            workspace_bytes=artifact.workspace_bytes,
            thread_workspace_bytes=artifact.thread_workspace_bytes,
            tensors=arena_tensors(artifact.body, self._effects),
        )

    def _effects(self, launch: Launch) -> Effects:
        return launch_effects(self.artifact.kernel(launch.function).parameters, launch)

    @property
    def compiler(self) -> str:
        """The C compiler."""
        return "" if self.shared is None else self.shared.compiler

    @property
    def c_program(self) -> ProgramArtifact:
        """The artifact."""
        return self.artifact

    @property
    def sufficient(self) -> tuple[tuple[int, ...], ...]:
        """All constants that a run reads, or those of which the others are yet to be computed."""
        return self.artifact.bound, self.artifact.read

    def kernel_source(self, symbol: str) -> str:
        """The C of one kernel, with the headers that it needs."""
        from ...codegen.c.frame import prelude  # a run needs no source

        symbols = [entry.symbol for entry in self.artifact.kernels]
        text = self.artifact.texts[symbols.index(symbol)]
        return f"{prelude(self.artifact.target, text)}\n{text}"

    def prepared(self, constants: Constants) -> Constants:
        """The constants that a run reads, unless this machine lacks the instructions."""
        if self.shared is None or why_not_run(self.artifact.target) is not None:
            return constants
        return prepare_constants(self.artifact, self.shared, given(constants))

    def load(self, constants: Constants, plain: StoredModel | None) -> ProgramCode:
        """The loaded object; for instructions that this machine lacks, what refuses to run."""
        if self.shared is None:
            raise EngineError(
                f"engine: '{self.artifact.name}' has no compiled code.", code="engine-code"
            )
        if why_not_run(self.artifact.target) is not None:
            return ForeignProgram(self.artifact)
        if self.pool is not None:
            use_pool(self.pool)
        return NativeProgram(self.artifact, self.shared, constants)

    def emulated(self, constants: Constants, *, checked: bool) -> None:
        """None: it is for the CPU."""
        return None

    def to_json(self) -> Json:
        """The artifact without its texts."""
        return artifact_to_json(self.artifact)

    def sections(self) -> Iterator[tuple[str, bytes]]:
        """The sources and the objects."""
        for number, text in enumerate((*self.artifact.texts, self.artifact.main)):
            yield source_section(number), text.encode()
        for name, made in ((BINARY, self.shared), (POOL, self.pool)):
            if made is not None:
                yield name, made.binary

    @staticmethod
    def read(data: Reader, sections: Sections, compiler: str) -> CpuCode:
        """The code in a file. Raises: IRError."""
        artifact = artifact_from_json(data, texts_of(sections, source_section) or ("",))
        needs = {BINARY: artifact.target.instructions, POOL: "scalar"}  # a pool is for any CPU
        shared, pool = (
            SharedObject(bytes(sections[name]), None, compiler, 0.0, isa)
            if name in sections
            else None
            for name, isa in needs.items()
        )
        return CpuCode(artifact, shared, pool)
