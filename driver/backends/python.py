"""The back end "python": the interpreter, which runs a function as it is defined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...runtime.engine.engine_code import Sections
from ...runtime.engine.interpreted_code import InterpretedModelCode
from ...runtime.engine.parts import EngineParts
from ...tir.json_reader import Reader
from ...tir.target.target import Target
from ..jobs import KernelJob, ProgramJob
from .backend import Backend

if TYPE_CHECKING:
    from ...runtime.kernel import Kernel
    from ..tuning.tuner import Tuner


class PythonBackend:
    """Needs no compiler, and no schedule. What builds is imported by the method that does."""

    is_emulated = False
    tuner: Tuner[Any] | None = None  # a back end that extends this one may have one

    def complete(self, target: Target) -> Target:
        """The target: none of these is open."""
        return target

    def why_not_run(self, target: Target) -> str | None:
        """None: any machine interprets."""
        return None

    def stamp(self, target: Target) -> str:
        """Nothing compiles."""
        return ""

    def warm_up(self, target: Target) -> None:
        """There is nothing to make."""

    def build(self, job: KernelJob) -> Kernel:
        """A kernel that the interpreter runs.

        Raises: DefinitionError; ArgumentError for wrong constants.
        """
        from ...schedule.schedule import Schedule
        from ..interpreted import interpreted
        from ..lower import check_definition

        what = job.what
        func, original = (what.func, what.original) if isinstance(what, Schedule) else (what, what)
        check_definition(original)
        return interpreted(func, job.target, job.constants)

    def build_program(self, job: ProgramJob) -> EngineParts:
        """The parts of an engine that the interpreter runs."""
        from ...runtime.model.report import EngineReport
        from ..build_parts import parts_of, plain_model

        options, code = job.options, InterpretedModelCode.of(job.program, job.target)
        report = EngineReport(
            (),
            options.notes,
            tolerance=options.tolerance,
            precision=options.precision,
            allow=options.allow,
        )
        return parts_of(code, (), report, plain_model(job.program, job.constants), options)

    def read_code(self, data: Reader, sections: Sections, compiler: str) -> InterpretedModelCode:
        """An engine's code from its file."""
        return InterpretedModelCode.read(data, sections, compiler)


PYTHON: Backend = PythonBackend()
