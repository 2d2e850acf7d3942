"""The memory of one run of a model on a device at a time, and the run as one graph.

On the device it is one allocation: the arena, what kernels need between their launches, and a place
for each input and output. Arrays of the host come and go through pinned memory; arrays of the
device are read and written where they lie. The memory is that of the largest sizes; a run touches
as much of it as its own sizes need. Copies and launches are recorded once for the sizes and the
arrays of the device that a run is pointed to, and the last MOST_GRAPHS recordings are kept; for
other arrays of the host nothing is recorded anew. A run waits for nothing that somebody else still
writes into an array of the device.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import TypeAlias

import numpy as np

from ....codegen.cuda.program_artifact import aligned
from ....codegen.cuda.streams import Placed, placed_at
from ....tir.program.flow import Iterations
from ....tir.program.program import Copy, Launch, Slice
from ....tir.sizes import closed_shape
from ...arrays import Array
from ...index_checks import check_indices
from ...machine.timing import CacheState, Timing
from ...model.interface import told
from ...model.profile import Profile, step_time
from .array import DeviceArray
from .context import DeviceMemory, Event, Stream
from .graph import DeviceGraph, Recording
from .loaded_program import LoadedProgram
from .timing import measure_on, sampler_on

# A server that goes through powers of two of batches and lengths, or through a few buffers, finds
# all of its own; each takes memory of the driver for every launch in it, on both sides.
MOST_GRAPHS = 32
_WORD_BYTES = 8  # of what a check of indices leaves

Sizes: TypeAlias = tuple[int, ...]  # of a run, in the order of the program's dims
Pointers: TypeAlias = tuple[int | None, ...]  # of its arrays; None for those of the host


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
        self._told = tuple(told(artifact.inputs).values())
        self._sizes: Sizes = ()
        self._graphs: OrderedDict[tuple[Sizes, Pointers], DeviceGraph] = OrderedDict()
        self._marks: list[Event] = []  # of the graph, while it is recorded

    def point(
        self, inputs: Sequence[Array | DeviceArray], outputs: Sequence[Array | DeviceArray]
    ) -> None:
        """Let the next runs use these arrays, which the caller keeps alive."""
        self._arrays = {"input": inputs, "output": outputs}
        self._sizes = tuple(inputs[number].shape[axis] for number, axis in self._told)

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

    def measure(self, seconds: float, cache: CacheState) -> Timing:
        """Time runs on the arrays pointed to by the device's clock; nothing is copied from or to
        the host. Raises: DeviceError.
        """
        self.run(1)  # what lies on the host is there then
        work = partial(self._steps, self._placed())
        timing = measure_on(self._program.context, work, seconds, cache=cache)
        self._marks.clear()
        return timing

    def profile(self, threads: int, rounds: int) -> Profile:
        """Time each step alone on the arrays pointed to, and the whole run, as `measure` does."""
        self.run(threads)
        context, placed = self._program.context, self._placed()
        whole = sampler_on(context, partial(self._steps, placed), "warm")
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
        return [(item.step, partial(self._alone, item.step)) for item in self._placed()]

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
        if isinstance(array, DeviceArray):
            return array.memory.part(0, item.bytes)
        return self._own_of(item.space, item.position)

    def _own_of(self, space: str, position: int) -> DeviceMemory:
        """The place of an input or an output in our own memory."""
        at = self._kept + self._offsets[space, position]
        return self._memory.part(at, self._arrays[space][position].nbytes)

    def _staged(self, space: str, position: int) -> Array:
        """The place of an input or an output in pinned memory."""
        array, at = self._arrays[space][position], self._offsets[space, position]
        return self._staging[at : at + array.nbytes].view(array.dtype).reshape(array.shape)

    # -- recording -------------------------------------------------------------------------------

    def _ready(self) -> DeviceGraph:
        """The graph for the sizes and the arrays pointed to."""
        pointers = tuple(
            array.pointer if isinstance(array, DeviceArray) else None
            for arrays in self._arrays.values()
            for array in arrays
        )
        wanted, graphs = (self._sizes, pointers), self._graphs
        if wanted not in graphs:
            graphs[wanted] = self._record()
            if len(graphs) > MOST_GRAPHS:
                graphs.popitem(last=False)
        graphs.move_to_end(wanted)
        return graphs[wanted]

    def _record(self) -> DeviceGraph:
        main = self._streams[0]
        recording = Recording(main)
        with recording:
            for position, array in enumerate(self._arrays["input"]):
                if not isinstance(array, DeviceArray):
                    staged = self._staged("input", position)
                    self._own_of("input", position).copy_in(staged, main)
            self._steps(self._placed(), main)
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

    def _placed(self) -> tuple[Placed, ...]:
        """The steps at the sizes of the arrays pointed to."""
        dims = self._program.artifact.dims
        return placed_at(self._program.placed, dict(zip(dims, self._sizes, strict=True)))

    def _steps(self, placed: Sequence[Placed], main: Stream) -> None:
        """All steps, each on its stream, which all begin and end with the first, `main`."""
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
