"""EngineParts: everything that an engine consists of, as values; what its file holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...codegen.program_artifact import ProgramArtifact
from ..arrays import Array
from ..model.model import StoredModel
from ..model.report import EngineReport, MemoryPlan
from ..toolchain.library import SharedObject

if TYPE_CHECKING:  # what runs on a CPU does not need them
    from ...codegen.cuda.program_artifact import CudaProgram
    from ..cuda.toolchain.compile import Cubin


@dataclass(frozen=True, slots=True)
class EngineParts:
    """The parts of an engine.

    shared: the compiled object, and pool: the thread pool's, of a CPU; cubins: of a GPU, one for
    each kernel of the artifact. None and () where the target compiles no such thing.
    constants: by position in the artifact; None for those that nobody reads, and for those that are
    yet to be computed: by a GPU, or by a CPU that has the instructions for it. plain: the program
    before schedules, with the original constants, from which the engine can be built anew.
    reference: the model as imported, against which it is verified. Both are None where they are not
    kept.
    """

    artifact: ProgramArtifact | CudaProgram
    shared: SharedObject | None
    constants: tuple[Array | None, ...]
    report: EngineReport
    plan: MemoryPlan
    pool: SharedObject | None = None
    plain: StoredModel | None = None
    reference: StoredModel | None = None
    cubins: tuple[Cubin, ...] = ()

    @property
    def are_prepared(self) -> bool:
        """Whether every constant that a run reads is there."""
        return all(self.constants[position] is not None for position in self.artifact.read)
