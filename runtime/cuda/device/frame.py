"""The memory of one run of a model on a device at a time, and the run as one graph.

On the device it is one allocation: the arena, what kernels need between their launches, and a place
for each input and output. Arrays of the host come and go through pinned memory; arrays of the
device are read and written where they lie. Copies and launches are recorded once for the arrays
that a run is pointed to; other arrays of the device are recorded anew, other ones of the host are
not. A run waits for nothing that somebody else still writes into an array of the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import numpy as np

from ....codegen.cuda.program_artifact import aligned
from ....tir.program.flow import Iterations
from ....tir.program.program import Copy, Launch, Slice
from ....tir.sizes import closed_shape
from ...arrays import Array
from ...index_checks import check_indices
from ...machine.timing import CacheState, Timing
from ...model.profile import Profile, step_time
from .array import DeviceArray
from .context import DeviceMemory, Event, Stream
from .graph import DeviceGraph, Recording
from .loaded_program import LoadedProgram
from .timing import measure_on, sampler_on

_WORD_BYTES = 8  # of what a check of indices leaves


class DeviceFrame:
    """See above. A frame serves one thread at a time."""

    def __init__(self, program: LoadedProgram, fence: int = 0) -> None:
        """fence: bytes on either side of its memory that no run may touch, for checks.

        Raises: DeviceMemoryError, DeviceError.
        """
        artifact, context = program.artifact, program.context
        self._program = program
        self._kept = artifact.arena_bytes + artifact.workspace_bytes
        size, self._fence = self._kept + artifact.interface_bytes, aligned(fence)
        self._whole = context.allocate(size + 2 * self._fence)
        self._memory = self._whole.part(self._fence, size)
        self._offsets: dict[tuple[str, int], int] = {}
        at = 0
        for space, parameters in (("input", artifact.inputs), ("output", artifact.outputs)):
            for position, parameter in enumerate(parameters):
                self._offsets[space, position] = at
                at += aligned(parameter.bytes)
        self._words_at = at
        pinned = context.pin(at + _WORD_BYTES * len(artifact.checks))
        self._staging = pinned.array((pinned.size,), np.uint8)
        count = 1 + max((placed.stream for placed in program.placed), default=0)
        self._streams = [context.stream() for _ in range(count)]
        self._arrays: dict[str, Sequence[Array | DeviceArray]] = {}
        self._graph: DeviceGraph | None = None
        self._recorded_for: tuple[int | None, ...] = ()
        self._marks: list[Event] = []  # of the graph, while it is recorded

    def point(
        self, inputs: Sequence[Array | DeviceArray], outputs: Sequence[Array | DeviceArray]
    ) -> None:
        """Let the next runs use these arrays, which the caller keeps alive."""
        self._arrays = {"input": inputs, "output": outputs}

    def run(self, threads: int) -> int:
        """Run on the arrays pointed to, and wait for it.

        Raises: DeviceError; IndexRangeError after a run in which an index lay outside of its range.
        """
        graph = self._ready()
        for position, array in enumerate(self._arrays["input"]):
            if not isinstance(array, DeviceArray):
                self._staged("input", position)[...] = array
        graph.launch(self._streams[0])
        self._streams[0].synchronize()
        for position, array in enumerate(self._arrays["output"]):
            if not isinstance(array, DeviceArray):
                array[...] = self._staged("output", position)
        words = self._staging[self._words_at :].view(np.uint64)
        for item, word in zip(self._program.artifact.checks, words, strict=True):
            check_indices(self._program.artifact.name, [(item.check, int(word))], item.label)
        return 1

    def put(self, stream: Stream) -> None:
        """Put all steps into a stream, without what comes from and goes to the host."""
        self._steps(stream)

    def measure(self, seconds: float, cache: CacheState) -> Timing:
        """Time runs on the arrays pointed to by the device's clock; nothing is copied from or to
        the host. Raises: DeviceError.
        """
        self.run(1)  # what lies on the host is there then
        timing = measure_on(self._program.context, self.put, seconds, cache=cache)
        self._marks.clear()
        return timing

    def profile(self, threads: int, rounds: int) -> Profile:
        """Time each step alone on the arrays pointed to, and the whole run, as `measure` does."""
        self.run(threads)
        context, placed = self._program.context, self._program.placed
        whole = sampler_on(context, self.put, "warm")
        samplers = [sampler_on(context, partial(self._put, item.step), "warm") for item in placed]
        samples = [[sampler.take() for sampler in (whole, *samplers)] for _ in range(rounds)]
        self._marks.clear()
        seconds = [median(taken) for taken in zip(*samples, strict=True)]
        steps = tuple(
            step_time(item.step, taken) for item, taken in zip(placed, seconds[1:], strict=True)
        )
        return Profile(self._program.artifact.name, threads, rounds, seconds[0], steps)

    # -- for checks ------------------------------------------------------------------------------

    def fill(self, value: int) -> None:
        """Set every byte of its memory on the device, and of its fences."""
        self._whole.fill(value)

    def fences(self) -> tuple[Array, Array]:
        """The bytes on either side of its memory, as they are now."""
        before, behind = (np.empty(self._fence, np.uint8) for _ in range(2))
        self._whole.copy_out(before)
        self._whole.copy_out(behind, at=self._whole.size - self._fence)
        return before, behind

    def steps(self) -> list[tuple[Launch | Copy, Callable[[Iterations], object]]]:
        """Each step as a call of its own, which waits for it; there are no loops around them. The
        inputs pointed to, of the host, are copied now; outputs stay on the device.
        """
        for position, array in enumerate(self._arrays["input"]):
            if not isinstance(array, DeviceArray):
                self._own_of("input", position).copy_in(np.ascontiguousarray(array))
        return [(item.step, partial(self._alone, item.step)) for item in self._program.placed]

    def view(self, item: Slice) -> Array:
        """What lies in a slice, as it is now."""
        array = np.empty(closed_shape(item.shape), item.dtype.numpy)
        self._place(item).copy_out(array)
        return array

    def _alone(self, step: Launch | Copy, iterations: Iterations) -> None:
        self._put(step, self._streams[0])
        self._streams[0].synchronize()

    # -- where things lie ------------------------------------------------------------------------

    def _place(self, item: Slice) -> DeviceMemory:
        """The device memory of a slice."""
        match item.space:
            case "arena":
                return self._memory.part(item.position, item.bytes)
            case "constant":
                return self._program.constant(item.position)
        array = self._arrays[item.space][item.position]
        return array.memory if isinstance(array, DeviceArray) else self._own(item)

    def _own(self, item: Slice) -> DeviceMemory:
        """The place of an input or an output in our own memory."""
        at = self._kept + self._offsets[item.space, item.position]
        return self._memory.part(at, item.bytes)

    def _staged(self, space: str, position: int) -> Array:
        """The place of an input or an output in pinned memory."""
        artifact = self._program.artifact
        parameters = artifact.inputs if space == "input" else artifact.outputs
        parameter, at = parameters[position], self._offsets[space, position]
        data = self._staging[at : at + parameter.bytes]
        return data.view(parameter.dtype.numpy).reshape(parameter.largest_shape)

    # -- recording -------------------------------------------------------------------------------

    def _ready(self) -> DeviceGraph:
        """The graph for the arrays pointed to."""
        wanted = tuple(
            array.pointer if isinstance(array, DeviceArray) else None
            for arrays in self._arrays.values()
            for array in arrays
        )
        if self._graph is None or wanted != self._recorded_for:
            self._graph = self._record()
            self._recorded_for = wanted
        return self._graph

    def _record(self) -> DeviceGraph:
        main = self._streams[0]
        recording = Recording(main)
        with recording:
            for position, array in enumerate(self._arrays["input"]):
                if not isinstance(array, DeviceArray):
                    staged = self._staged("input", position)
                    self._own_of("input", position).copy_in(staged, main)
            self._steps(main)
            for position, array in enumerate(self._arrays["output"]):
                if not isinstance(array, DeviceArray):
                    staged = self._staged("output", position)
                    self._own_of("output", position).copy_out(staged, main)
            for number, item in enumerate(self._program.artifact.checks):
                at = self._words_at + _WORD_BYTES * number
                word = self._staging[at : at + _WORD_BYTES]
                self._place(item.word).copy_out(word, main)
        self._marks.clear()
        return recording.graph

    def _own_of(self, space: str, position: int) -> DeviceMemory:
        artifact = self._program.artifact
        parameters = artifact.inputs if space == "input" else artifact.outputs
        parameter = parameters[position]
        return self._own(Slice(space, position, parameter.dtype, parameter.shape))

    def _steps(self, main: Stream) -> None:
        """All steps, each on its stream, which all begin and end with the first, `main`."""
        placed = self._program.placed
        streams = [main, *self._streams[1:]]
        others = streams[1:]
        if others:
            fork = self._marked(main)
            for stream in others:
                stream.wait(fork)
        awaited = {number for step in placed for number in step.waits}
        events: dict[int, Event] = {}
        for number, step in enumerate(placed):
            stream = streams[step.stream]
            for other in step.waits:
                stream.wait(events[other])
            self._put(step.step, stream)
            if number in awaited:
                events[number] = self._marked(stream)
        for stream in others:
            main.wait(self._marked(stream))

    def _put(self, step: Launch | Copy, stream: Stream) -> None:
        match step:
            case Launch():
                self._program.put(step, self._place, stream)
            case Copy():
                self._place(step.target).copy_from(self._place(step.source), stream)

    def _marked(self, stream: Stream) -> Event:
        """A mark behind what the stream has so far."""
        event = self._program.context.event()
        self._marks.append(event)
        event.record(stream)
        return event
