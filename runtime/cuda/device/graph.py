"""A sequence of launches and copies, recorded once and put into a stream as a whole.

    recording = Recording(stream)
    with recording:
        kernel.launch(..., stream=stream)   # recorded, not run
    recording.graph.launch(stream)

PyCUDA has no graphs: the driver is called directly, on its stream and in its context.
"""

from __future__ import annotations

import weakref

from ...toolchain.library import Pointer, ffi
from ..driver.errors import DeviceUseError
from ..driver.libcuda import libcuda
from .context import DeviceContext, Stream

_RELAXED = 2  # capture: other threads may do what they like meanwhile


class DeviceGraph:
    """Recorded work, ready to run; nodes: how many launches, copies and fills it holds."""

    def __init__(self, context: DeviceContext, recorded: Pointer) -> None:
        """Instantiate a CUgraph and destroy it."""
        self.context = context
        count, made = ffi.new("size_t *"), ffi.new("void **")
        with context.during("making a graph"):
            try:
                libcuda().check("GraphGetNodes", recorded, ffi.NULL, count)
                libcuda().check("GraphInstantiateWithFlags", made, recorded, 0)
            finally:
                libcuda().call.GraphDestroy(recorded)
        self.nodes = int(count[0])
        self._handle = made[0]
        weakref.finalize(self, _destroy, context, made[0])

    def launch(self, stream: Stream) -> None:
        """Put all of it into a stream. Raises: DeviceError, also for what kernels did before."""
        with self.context.during("launching a graph"):
            libcuda().check("GraphLaunch", self._handle, ffi.cast("void *", stream.pointer))


class Recording:
    """Between `with` and its end what is put into the stream is kept in `graph`, and not run."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._handle = ffi.cast("void *", stream.pointer)
        self._graph: DeviceGraph | None = None

    @property
    def graph(self) -> DeviceGraph:
        """What was recorded."""
        if self._graph is None:
            raise DeviceUseError(
                "cuda: nothing was recorded yet.",
                code="cuda-recording",
                hints=("with recording: launch and copy on recording.stream",),
            )
        return self._graph

    def __enter__(self) -> Recording:
        with self.stream.context.during("beginning to record"):
            libcuda().check("StreamBeginCapture_v2", self._handle, _RELAXED)
        return self

    def __exit__(self, kind: object, error: object, at: object) -> None:
        recorded = ffi.new("void **")
        if error is not None:  # which says more than that the recording has failed
            with self.stream.context:
                libcuda().call.StreamEndCapture(self._handle, recorded)
                if recorded[0] != ffi.NULL:
                    libcuda().call.GraphDestroy(recorded[0])
            return
        with self.stream.context.during("ending a recording"):
            libcuda().check("StreamEndCapture", self._handle, recorded)
        self._graph = DeviceGraph(self.stream.context, recorded[0])


def _destroy(context: DeviceContext, graph: Pointer) -> None:
    if context.holds_what_was_made:
        with context.during("giving a graph back"):
            libcuda().check("GraphExecDestroy", graph)
