"""EngineParts: everything that an engine consists of, as values; what its file holds."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.model import StoredModel
from ..model.report import EngineReport, MemoryPlan
from .engine_code import Constants, EngineCode, ModelArtifact


@dataclass(frozen=True, slots=True)
class Padding:
    """A variant serves runs of fewer rows along a dim, too: of `least` and more, with rows added up
    to its own size. That is inert: the rows that are kept have the bits that they have alone.
    """

    dim: str
    least: int


@dataclass(frozen=True, slots=True)
class Variant:
    """The parts of the same model for one choice of the sizes that runs decide, by name.

    padding: None where it serves these sizes alone.
    """

    sizes: tuple[tuple[str, int], ...]
    parts: EngineParts
    padding: Padding | None = None

    @property
    def widths(self) -> tuple[tuple[str, int, int], ...]:
        """Of each size its name, the least and the largest that it serves."""
        pad = self.padding
        return tuple(
            (name, size if pad is None or pad.dim != name else pad.least, size)
            for name, size in self.sizes
        )

    @property
    def ends(self) -> tuple[tuple[str, dict[str, int]], ...]:
        """The sizes that it is for, and the least that it serves; each in words, and by name."""
        sizes = dict(self.sizes)
        least = {name: low for name, low, _ in self.widths}
        found = [sizes] if least == sizes else [sizes, least]
        return tuple((", ".join(f"{n} {s}" for n, s in one.items()), one) for one in found)

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {least} to {most}" if least < most else f"{name} {most}"
            for name, least, most in self.widths
        )

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
