"""How an engine is run where it is checked as a whole: in several ways on the same inputs, of which
each must give the same bits, and step by step; what is written where nothing may be is found.

EngineRuns is what the check asks for. ThreadedRuns are those of an engine for a CPU; those of one
for a GPU stand in gpu_engine_runs.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from ...codegen.program_artifact import ProgramArtifact
from ...runtime.arrays import NO_SIZES, Array
from ...runtime.cpu.program_code import CpuFrame, NativeProgram
from ...runtime.engine.engine_code import ModelArtifact
from ...runtime.index_checks import IndexRangeError
from ...tir.dim import Dim
from ...tir.program.program import Slice, actions
from ...tir.sizes import closed_shape
from .fenced import Fenced, poisoned, same_bits
from .wrong_launches import Call, SteppedRun

POISON = 0xFF  # every byte of scratch memory and its fences: NaN in every float type
FENCE = 4096
THREADS = (1, 2, 3)


class WroteElsewhereError(Exception):
    """A run wrote where it may not; the text says where: "outside of 'y'", "into its input 'x'"."""


class RefusedStepError(Exception):
    """A step cannot run on the arrays that the plan gives it; the text says which, and why."""


class EngineRuns(Protocol):
    """An engine, run on inputs that are given. Its memory and its outputs start as NaN."""

    @property
    def artifact(self) -> ModelArtifact:
        """What it takes and gives."""
        ...

    @property
    def ways(self) -> Sequence[str]:
        """What each way to run it is called: "on 2 threads"."""
        ...

    @property
    def title(self) -> str:
        """All ways, for a verdict."""
        ...

    def run(self, way: int, inputs: Sequence[Array]) -> list[Array]:
        """The outputs of one run. An index out of its range is taken as the nearest.

        Raises: WroteElsewhereError; RefusedStepError; ProgramCheckError for a kernel that does what
        none may do.
        """
        ...

    def weights(self) -> Iterable[Array]:
        """The constants that runs read, as they are now."""
        ...

    def stepped(self, inputs: Sequence[Array]) -> SteppedRun:
        """A run on these inputs, in fresh memory, that has not begun. Its steps raise as `run`."""
        ...

    def why_ways_differ(self) -> str | None:
        """What is to blame where each step is right, and two ways give other bits, if it is known:
        a sentence.
        """
        ...


class ThreadedRuns:
    """An engine for a CPU, on each of THREADS. Fences lie around its scratch memory, its inputs and
    its outputs.
    """

    ways = tuple(f"on {count} thread{'s' * (count > 1)}" for count in THREADS)
    title = f"on {', '.join(map(str, THREADS[:-1]))} and {THREADS[-1]} threads, equal bits"

    def __init__(self, program: NativeProgram, sizes: Mapping[Dim, int] = NO_SIZES) -> None:
        """sizes: of the runs."""
        self.artifact = program.artifact.at(sizes)
        self._program = program

    def run(self, way: int, inputs: Sequence[Array]) -> list[Array]:
        """See `EngineRuns`."""
        artifact, threads = self.artifact, THREADS[way]
        given = [Fenced(array) for array in inputs]
        made = [Fenced(poisoned(p.dtype, p.largest_shape)) for p in artifact.outputs]
        frame = _fenced_frame(self._program, given, made, threads)
        with suppress(IndexRangeError):  # it has run all the same, with the nearest index
            frame.run(threads)
        if not all(bool((fence == POISON).all()) for fence in frame.fences):
            raise WroteElsewhereError("outside of its scratch memory")
        for parameter, fenced in zip(
            (*artifact.inputs, *artifact.outputs), (*given, *made), strict=True
        ):
            if not fenced.intact():
                raise WroteElsewhereError(f"outside of '{parameter.name}'")
        for parameter, fenced, array in zip(artifact.inputs, given, inputs, strict=True):
            if not same_bits(fenced.array, array):
                raise WroteElsewhereError(f"into its input '{parameter.name}'")
        interface = self._program.interface
        return interface.written([fenced.array for fenced in made], frame.sizes)

    def weights(self) -> Iterator[Array]:
        """See `EngineRuns`."""
        return (array for array in self._program.constants if array is not None)

    def stepped(self, inputs: Sequence[Array]) -> SteppedRun:
        """See `EngineRuns`."""
        return _SteppedFrame(self._program, self.artifact, inputs)

    def why_ways_differ(self) -> str | None:
        """See `EngineRuns`."""
        return None


class _SteppedFrame:
    """A run on most threads, step by step."""

    def __init__(
        self, program: NativeProgram, artifact: ProgramArtifact, inputs: Sequence[Array]
    ) -> None:
        self._inputs = [Fenced(array) for array in inputs]
        self._artifact = artifact
        outputs = artifact.outputs
        self._outputs = [Fenced(poisoned(p.dtype, p.largest_shape)) for p in outputs]
        self._frame = _fenced_frame(program, self._inputs, self._outputs, max(THREADS))

    def steps(self) -> Sequence[Call]:
        """See `SteppedRun`."""
        calls = self._frame.steps(max(THREADS))
        steps = zip(actions(self._artifact.body), calls, strict=True)
        return [(step, call) for step, (_, call) in steps]

    def view(self, item: Slice) -> Array:
        """See `SteppedRun`."""
        if item.space == "arena":
            memory = self._frame.scratch[item.position : item.position + item.bytes]
            return memory.view(item.dtype.numpy).reshape(closed_shape(item.shape))
        arrays = self._inputs if item.space == "input" else self._outputs
        shape = closed_shape(item.shape)
        return arrays[item.position].array.reshape(-1)[: math.prod(shape)].reshape(shape)


def _fenced_frame(
    program: NativeProgram, given: Sequence[Fenced], made: Sequence[Fenced], threads: int
) -> CpuFrame:
    """Memory for a run, all of its bits set, and its fences' too."""
    frame = program.frame(threads, FENCE)
    for memory in (frame.scratch, *frame.fences):
        memory[...] = POISON
    frame.point([fenced.array for fenced in given], [fenced.array for fenced in made])
    return frame
