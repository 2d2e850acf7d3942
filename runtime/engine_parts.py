"""EngineParts: everything that an engine consists of, as values; what its file holds."""

from __future__ import annotations

from dataclasses import dataclass

from ..codegen.program_artifact import ProgramArtifact
from .arrays import Array
from .library import SharedObject
from .model import StoredModel
from .report import EngineReport, MemoryPlan


@dataclass(frozen=True, slots=True)
class EngineParts:
    """The parts of an engine.

    shared: the compiled object; None where the target compiles nothing; pool: the thread pool's.
    constants: by position in the artifact; None for those that no run reads. plain: the program
    before schedules, with the original constants, from which the engine can be built anew.
    reference: the model as imported, against which it is verified. Both are None where they are not
    kept.
    """

    artifact: ProgramArtifact
    shared: SharedObject | None
    constants: tuple[Array | None, ...]
    report: EngineReport
    plan: MemoryPlan
    pool: SharedObject | None = None
    plain: StoredModel | None = None
    reference: StoredModel | None = None
