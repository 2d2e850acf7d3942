"""EngineParts: everything that an engine consists of, as values; what its file holds."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.model import StoredModel
from ..model.report import EngineReport, MemoryPlan
from .engine_code import Constants, EngineCode, ModelArtifact


@dataclass(frozen=True, slots=True)
class Variant:
    """The parts of the same model for one choice of the sizes that runs decide, by name."""

    sizes: tuple[tuple[str, int], ...]
    parts: EngineParts

    def __str__(self) -> str:
        return ", ".join(f"{name} {size}" for name, size in self.sizes)

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class EngineParts:
    """The parts of an engine.

    code: what was written, and what was compiled of it.
    constants: by position in the artifact; None for those that nobody reads, and for those that are
    yet to be computed: by a GPU, or by a CPU that has the instructions for it. plain: the program
    before schedules, with the original constants, from which the engine can be built anew.
    reference: the model as imported, against which it is verified. Both are None where they are not
    kept. variants: the model for sizes that come often; `plan` counts them.
    """

    code: EngineCode
    constants: Constants
    report: EngineReport
    plan: MemoryPlan
    plain: StoredModel | None = None
    reference: StoredModel | None = None
    variants: tuple[Variant, ...] = ()

    @property
    def artifact(self) -> ModelArtifact:
        """What was written."""
        return self.code.artifact

    @property
    def are_prepared(self) -> bool:
        """Whether every constant that a run reads is there."""
        return all(self.constants[position] is not None for position in self.artifact.read)
