"""How an engine for a GPU is run where it is checked as a whole: on the GPU that is here, or
emulated on the CPU, which sees what a GPU may do and seldom does: each stream ahead of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from ...codegen.cuda.program_artifact import CudaProgram
from ...codegen.cuda.streams import Placed, missing_wait, order_ahead, place_on_streams
from ...runtime.arrays import NO_SIZES, Array
from ...runtime.cuda.device.frame import DeviceFrame
from ...runtime.cuda.device.program import DeviceProgram
from ...runtime.cuda.driver.errors import DeviceMemoryError
from ...runtime.cuda.emulator.emulated_code import EmulationFailed
from ...runtime.cuda.emulator.emulated_program import EmulatedFrame, EmulatedProgram
from ...runtime.cuda.emulator.source import EmulationError
from ...runtime.cuda.toolchain.compile import Cubin
from ...runtime.index_checks import IndexRangeError
from ...tir.dim import Dim
from ...tir.program.at_sizes import program_at
from ...tir.program.flow import Iterations
from ...tir.program.program import Action, Copy, Launch, Program, Slice, step_text
from ...tir.sizes import closed_shape
from ...tir.work.work import operations
from .engine import KINDS
from .engine_runs import FENCE, POISON, RefusedStepError, WroteElsewhereError
from .fenced import poisoned, same_bits
from .program import ProgramCheckError
from .wrong_launches import Call, SteppedRun

MOST_OPERATIONS = 1 << 36  # of all emulated runs of a check: some two minutes


def device_runs(
    artifact: CudaProgram,
    cubins: Sequence[Cubin],
    constants: Sequence[Array | None],
    sizes: Mapping[Dim, int] = NO_SIZES,
) -> DeviceRuns | str:
    """How the engine is run on the GPU that is here, or why it is not. constants: by position;
    sizes: of the runs.

    Raises: DeviceError.
    """
    try:
        return DeviceRuns(artifact, cubins, constants, sizes)
    except DeviceMemoryError as error:
        return f"not run: {error.message}"


def emulated_runs(
    artifact: CudaProgram,
    constants: Sequence[Array | None],
    program: Program,
    sizes: Mapping[Dim, int] = NO_SIZES,
) -> EmulatedRuns | str:
    """How the engine is run on the CPU, or why it is not. program: before schedules; sizes: of the
    runs.
    """
    runs = EmulatedRuns(artifact, constants, sizes)
    needed = len(KINDS) * len(runs.ways) * emulated_operations(program_at(program, sizes))
    if needed > MOST_OPERATIONS:
        return (
            f"not run: too large to emulate: {needed} operations in {len(KINDS) * len(runs.ways)} "
            f"runs, at most {MOST_OPERATIONS}"
        )
    return runs


def emulated_operations(program: Program) -> int:
    """What a run emulates: the operations on floats of each launch, of a launch with fewer than
    elements that it writes as many as these.
    """
    counted = {
        f.name: max(operations(f), sum(b.size for b in f.outputs)) for f in program.functions
    }
    return sum(counted[launch.function] for launch in program.launches)


class EmulatedRuns:
    """An engine for a GPU on the CPU, once for each of its streams, which goes ahead of the others
    as far as the waits let it: what a step should wait for, and does not, has not run then.
    """

    def __init__(
        self,
        artifact: CudaProgram,
        constants: Sequence[Array | None],
        sizes: Mapping[Dim, int] = NO_SIZES,
    ) -> None:
        """constants: by position; None for those that nobody reads or that are computed here.
        sizes: of the runs.
        """
        self.artifact = artifact.at(sizes)
        self._constants = constants
        self._program = EmulatedProgram(artifact, constants)
        self._placed = place_on_streams(artifact)
        count = 1 + max((item.stream for item in self._placed), default=0)
        self.ways = tuple(f"with stream {number} ahead" for number in range(count))
        self.title = "emulated, on one stream"
        if count > 1:
            self.title = f"emulated with each of {count} streams ahead, equal bits"

    def run(self, way: int, inputs: Sequence[Array]) -> list[Array]:
        """See `EngineRuns`."""
        given = [array.copy() for array in inputs]
        made = [poisoned(p.dtype, closed_shape(p.shape)) for p in self.artifact.outputs]
        calls = self._pointed(given, made).steps()
        for number in order_ahead(self._placed, way):
            _, call = calls[number]
            call(_OUTSIDE)
        for parameter, mine, array in zip(self.artifact.inputs, given, inputs, strict=True):
            if not same_bits(mine, array):
                raise WroteElsewhereError(f"into its input '{parameter.name}'")
        return made

    def weights(self) -> Iterator[Array]:
        """See `EngineRuns`."""
        yield from (array for array in self._constants if array is not None)
        yield from self._program.prepared.values()

    def stepped(self, inputs: Sequence[Array]) -> SteppedRun:
        """See `EngineRuns`."""
        made = [poisoned(p.dtype, closed_shape(p.shape)) for p in self.artifact.outputs]
        return self._pointed([array.copy() for array in inputs], made)

    def why_ways_differ(self) -> str | None:
        """See `EngineRuns`."""
        return _missing_wait(self.artifact, self._placed)

    def _pointed(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> _SteppedEmulation:
        frame = self._program.frame(1)
        frame.point(inputs, outputs)
        return _SteppedEmulation(self.artifact.name, frame)


_OUTSIDE: Iterations = {}  # of all loops


class _SteppedEmulation:
    """A run whose steps are emulated one by one."""

    def __init__(self, name: str, frame: EmulatedFrame) -> None:
        self._name = name
        self._frame = frame

    def steps(self) -> Sequence[Call]:
        """See `SteppedRun`."""
        return [(step, partial(self._do, step, call)) for step, call in self._frame.steps()]

    def view(self, item: Slice) -> Array:
        """See `SteppedRun`."""
        return self._frame.view(item)

    def _do(
        self, step: Action, call: Callable[[Iterations], object], iterations: Iterations
    ) -> None:
        if not isinstance(step, Launch):
            call(iterations)
            return
        try:
            call(iterations)
        except EmulationError as refusal:
            problem = refusal.message.removeprefix("emulate: ").removesuffix(".")
            raise RefusedStepError(f"{_title(step)} cannot run: {problem}") from refusal
        except EmulationFailed as failure:
            what = failure.where if isinstance(failure.where, str) else failure.message
            found = {step.function: f"{what.splitlines()[0]}, in the engine"}
            raise ProgramCheckError(self._name, found) from failure


class DeviceRuns:
    """An engine on the GPU that is here, as it runs there: one graph, on several streams. First in
    memory full of NaN, then in what that run left. Fences lie around its memory.
    """

    ways = ("in its first run", "in its second run")

    def __init__(
        self,
        artifact: CudaProgram,
        cubins: Sequence[Cubin],
        constants: Sequence[Array | None],
        sizes: Mapping[Dim, int] = NO_SIZES,
    ) -> None:
        """sizes: of the runs. Raises: DeviceMemoryError, DeviceError."""
        self.artifact = artifact.at(sizes)
        program = DeviceProgram(artifact, cubins, constants, POISON)
        self._loaded = program.loaded()
        self._frame = program.frame(1, FENCE)
        self.title = f"twice on the {self._loaded.context.device.name}, equal bits"

    def run(self, way: int, inputs: Sequence[Array]) -> list[Array]:
        """See `EngineRuns`."""
        frame, outputs = self._frame, self.artifact.outputs
        if way == 0:
            frame.fill(POISON)
        made = [poisoned(p.dtype, closed_shape(p.shape)) for p in outputs]
        frame.point(inputs, made)
        with suppress(IndexRangeError):  # it has run all the same, with the nearest index
            frame.run(1)
        if not all(bool((fence == POISON).all()) for fence in frame.fences()):
            raise WroteElsewhereError("outside of its memory")
        for position, (parameter, array) in enumerate(
            zip(self.artifact.inputs, inputs, strict=True)
        ):
            there = frame.view(Slice("input", position, parameter.dtype, parameter.shape))
            if not same_bits(there, array):
                raise WroteElsewhereError(f"into its input '{parameter.name}'")
        return made

    def weights(self) -> Iterator[Array]:
        """See `EngineRuns`."""
        return self._loaded.weights()

    def stepped(self, inputs: Sequence[Array]) -> SteppedRun:
        """See `EngineRuns`."""
        frame: DeviceFrame = self._frame
        frame.fill(POISON)
        made = [poisoned(p.dtype, closed_shape(p.shape)) for p in self.artifact.outputs]
        frame.point(inputs, made)
        return frame

    def why_ways_differ(self) -> str | None:
        """See `EngineRuns`."""
        return _missing_wait(self.artifact, self._loaded.placed)


def _missing_wait(artifact: CudaProgram, placed: Sequence[Placed]) -> str | None:
    """Which of two steps does not wait for the other, if that is to blame."""
    found = missing_wait(artifact, placed)
    if found is None:
        return None
    first, second = (_title(placed[number].step) for number in found)
    return f"{second} does not wait for {first}, and touches the same memory."


def _title(step: Launch | Copy) -> str:
    return f"'{step.label or step.function}'" if isinstance(step, Launch) else step_text(step)
