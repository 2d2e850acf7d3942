"""A model's kernels and constants as they lie on a device, for any number of frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...codegen.cuda.program_artifact import PREPARE, CudaProgram, aligned
from ...codegen.cuda.streams import place_on_streams
from ...tir.program import Launch, Slice
from ..arrays import Array
from .compile import Cubin
from .context import Context, Kernel, Memory, Stream
from .launch import pack


class LoadedProgram:
    """A model's kernels and constants on a device. placed: the steps of a run, on their streams."""

    def __init__(
        self,
        context: Context,
        artifact: CudaProgram,
        cubins: Sequence[Cubin],
        constants: Sequence[Array | None],
    ) -> None:
        """Load the cubins, copy the constants, and compute those that depend on them alone."""
        self.context = context
        self.artifact = artifact
        self.placed = place_on_streams(artifact)
        self._kernels: dict[tuple[str, str], Kernel] = {}
        for kernel, cubin in zip(artifact.kernels, cubins, strict=True):
            module = context.load(cubin)
            for part in (kernel.run, kernel.prepare):
                for launch in part.launches if part is not None else ():
                    self._kernels[kernel.name, launch.kernel] = module.kernel(launch.kernel)
        self._weights = context.allocate(artifact.weights_bytes)
        self._places: dict[int, Memory] = {}
        at = 0
        for position in artifact.weights:
            size = artifact.constants[position].bytes
            self._places[position] = self._weights.part(at, size)
            at += aligned(size)
            array = constants[position]
            if array is not None:
                self._places[position].copy_in(np.ascontiguousarray(array))
        self._prepare()

    def constant(self, position: int) -> Memory:
        """Where a constant lies."""
        return self._places[position]

    def put(self, step: Launch, place: Callable[[Slice], Memory], stream: Stream) -> None:
        """Put the launches of a step into a stream. place: where each slice lies."""
        name, places = step.function.removesuffix(PREPARE), self.artifact.places(step)
        for launch in self.artifact.part(step.function).launches:
            arguments = pack(*(place(places[argument]) for argument in launch.arguments))
            self._kernels[name, launch.kernel].launch(
                launch.grid,
                launch.block,
                arguments,
                shared_bytes=launch.shared_bytes,
                stream=stream,
            )

    def _prepare(self) -> None:
        if not self.artifact.prepare:
            return
        arena = self.context.allocate(self.artifact.arena_bytes + self.artifact.workspace_bytes)
        stream = self.context.stream()

        def place(item: Slice) -> Memory:
            if item.space == "arena":
                return arena.part(item.position, item.bytes)
            return self.constant(item.position)

        for launch in self.artifact.prepare:
            self.put(launch, place, stream)
        stream.synchronize()  # before the arena goes
