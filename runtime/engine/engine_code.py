"""EngineCode: a model's code as one value, whichever back end made it: what it wrote, what it had
compiled, how that is kept in a file, and what runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ...codegen.artifact import Parameter
from ...codegen.program_artifact import HasInterface
from ...tir.errors import TilewrightError
from ...tir.json_reader import Json, Reader
from ...tir.program.program import Launch
from ...tir.target.target import Target
from ..arrays import Array
from ..model.model import StoredModel
from ..model.report import MemoryPlan
from .context import ProgramCode

if TYPE_CHECKING:  # what runs on a GPU needs no C, and the other way round
    from ...codegen.program_artifact import ProgramArtifact

Constants = tuple[Array | None, ...]  # by position in the artifact
Sections = Mapping[str, memoryview]  # of an engine's file, by name


class EngineError(TilewrightError, ValueError):
    """An engine is asked for what it was not built with."""


class ModelArtifact(HasInterface, Protocol):
    """What a back end wrote of a whole model."""

    @property
    def target(self) -> Target:
        """What it was written for."""
        ...

    @property
    def constants(self) -> tuple[Parameter, ...]:
        """All of them: bound at build, or computed from those that are."""
        ...

    @property
    def read(self) -> tuple[int, ...]:
        """The positions of those that a run reads."""
        ...

    @property
    def bound(self) -> tuple[int, ...]:
        """The positions of those that somebody has to give."""
        ...

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of a run, in order."""
        ...


class EngineCode(Protocol):
    """A model's code as a value. The file of an engine holds `to_json` and `sections`, of which
    `read` makes the value again.
    """

    @property
    def artifact(self) -> ModelArtifact:
        """What was written."""
        ...

    @property
    def source(self) -> str:
        """The generated source text; empty where there is none."""
        ...

    @property
    def plan(self) -> str:
        """The steps of a run, in order, and where their arrays lie."""
        ...

    @property
    def memory(self) -> MemoryPlan:
        """The memory that runs take."""
        ...

    @property
    def compiler(self) -> str:
        """What compiled it, for people; empty where nothing did."""
        ...

    @property
    def c_program(self) -> ProgramArtifact | None:
        """Its C, that leaves without us; None where it is none."""
        ...

    @property
    def sufficient(self) -> tuple[tuple[int, ...], ...]:
        """Positions of constants: those of one of the tuples have to be there for a run."""
        ...

    def kernel_source(self, symbol: str) -> str:
        """The source of one kernel. Raises: KeyError, ValueError for one that is not there."""
        ...

    def prepared(self, constants: Constants) -> Constants:
        """The constants with what this machine computes, before any run, of constants alone."""
        ...

    def load(self, constants: Constants, plain: StoredModel | None) -> ProgramCode:
        """What runs it, or refuses to where this machine cannot. plain: the program before
        schedules. Raises: EngineError where there is nothing to run; LibraryError.
        """
        ...

    def emulated(self, constants: Constants, *, checked: bool) -> ProgramCode | None:
        """What emulates it on the CPU; None for what is for no other device. checked: looks at
        every load and store.
        """
        ...

    def to_json(self) -> Json:
        """The artifact without its texts."""
        ...

    def sections(self) -> Iterator[tuple[str, bytes]]:
        """The sections of a file that hold its texts and what was compiled of them, by name."""
        ...

    @staticmethod
    def read(data: Reader, sections: Sections, compiler: str) -> EngineCode:
        """The value that `to_json` and `sections` wrote. Raises: IRError."""
        ...


ReadCode = Callable[[Reader, Sections, str], EngineCode]


def texts_of(sections: Sections, name: Callable[[int], str]) -> tuple[str, ...]:
    """The texts of the sections that are called name(0), name(1), ..."""
    texts: list[str] = []
    while name(len(texts)) in sections:
        texts.append(bytes(sections[name(len(texts))]).decode(errors="replace"))
    return tuple(texts)


def given(constants: Sequence[Array | None]) -> dict[int, Array]:
    """The constants that are there, by position."""
    return {n: array for n, array in enumerate(constants) if array is not None}
