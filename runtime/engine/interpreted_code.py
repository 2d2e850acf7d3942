"""A model's code where nothing is generated: the program before schedules is interpreted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ...codegen.program_artifact import ProgramArtifact, parameters_with
from ...tir.json_reader import Json, Reader
from ...tir.program.program import Program
from ...tir.target.target import Target
from ..artifact_json import artifact_from_json, artifact_to_json
from ..model.model import StoredModel
from ..model.report import MemoryPlan
from .context import ProgramCode
from .engine_code import Constants, EngineError, Sections, texts_of
from .format import source_section
from .interpreted_program import InterpretedProgram


@dataclass(frozen=True, slots=True)
class InterpretedModelCode:
    """artifact: what a run takes and gives; its texts are empty."""

    artifact: ProgramArtifact

    @staticmethod
    def of(program: Program, target: Target) -> InterpretedModelCode:
        """The code of a program of plain functions."""
        return InterpretedModelCode(
            ProgramArtifact(
                name=program.name,
                symbol="",
                target=target,
                inputs=parameters_with("input", program.inputs),
                constants=(),
                read=(),
                outputs=parameters_with("output", program.outputs),
                kernels=(),
                texts=(),
                main="",
                body=(),
                arena_bytes=program.arena_bytes,
            )
        )

    source: ClassVar[str] = ""
    plan: ClassVar[str] = ""
    compiler: ClassVar[str] = ""
    c_program: ClassVar[None] = None
    sufficient: ClassVar[tuple[tuple[int, ...], ...]] = ((),)

    @property
    def memory(self) -> MemoryPlan:
        """The arena that the program was planned with."""
        return MemoryPlan(0, self.artifact.arena_bytes, 0, 0)

    def kernel_source(self, symbol: str) -> str:
        """Raises: KeyError: there are no kernels."""
        raise KeyError(symbol)

    def prepared(self, constants: Constants) -> Constants:
        """The constants as they are: none is computed ahead."""
        return constants

    def load(self, constants: Constants, plain: StoredModel | None) -> ProgramCode:
        """What interprets the program. Raises: EngineError where it was not kept."""
        if plain is None:
            raise EngineError(
                f"engine: '{self.artifact.name}' has neither compiled code nor a program to "
                "interpret.",
                code="engine-code",
            )
        return InterpretedProgram(self.artifact, plain.model())

    def emulated(self, constants: Constants, *, checked: bool) -> None:
        """None: it is for the CPU."""
        return None

    def to_json(self) -> Json:
        """What a run takes and gives."""
        return artifact_to_json(self.artifact)

    def sections(self) -> Iterator[tuple[str, bytes]]:
        """An empty source."""
        yield source_section(0), self.artifact.main.encode()

    @staticmethod
    def read(data: Reader, sections: Sections, compiler: str) -> InterpretedModelCode:
        """The code in a file. Raises: IRError."""
        return InterpretedModelCode(
            artifact_from_json(data, texts_of(sections, source_section) or ("",))
        )
