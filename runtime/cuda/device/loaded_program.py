"""A model's kernels and constants as they lie on a device, for any number of frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ....codegen.cuda.program_artifact import PREPARE, CudaProgram, aligned
from ....codegen.cuda.streams import place_on_streams
from ....tir.program.program import Launch, Slice
from ....tir.sizes import closed
from ...arrays import Array
from ..toolchain.compile import Cubin
from .context import DeviceContext, DeviceKernel, DeviceMemory, Stream
from .launch import pack


class LoadedProgram:
    """A model's kernels and constants on a device. placed: the steps of a run, on their streams."""

    def __init__(
        self,
        context: DeviceContext,
        artifact: CudaProgram,
        cubins: Sequence[Cubin],
        constants: Sequence[Array | None],
        poison: int | None = None,
    ) -> None:
        """Load the cubins, copy the constants, and compute those that depend on them alone.

        poison: what every byte of the memory for that is set to first, for checks.
        """
        self.context = context
        self._poison = poison
        self.artifact = artifact
        self.placed = place_on_streams(artifact)
        self._kernels: dict[tuple[str, str], DeviceKernel] = {}
        for kernel, cubin in zip(artifact.kernels, cubins, strict=True):
            module = context.load(cubin)
            for part in (kernel.run, kernel.prepare):
                for launch in part.launches if part is not None else ():
                    self._kernels[kernel.name, launch.kernel] = module.kernel(launch.kernel)
        self._constants = self._copied(artifact.read, constants)
        self._prepare(constants)

    def constant(self, position: int) -> DeviceMemory:
        """Where a constant that a run reads lies."""
        return self._constants[position]

    def weights(self) -> Iterator[Array]:
        """The bytes of each constant that a run reads, as they are now."""
        for memory in self._constants.values():
            array = np.empty(memory.size, np.uint8)
            memory.copy_out(array)
            yield array

    def put(self, step: Launch, place: Callable[[Slice], DeviceMemory], stream: Stream) -> None:
        """Put the launches of a step, whose sizes are numbers, into a stream. place: where each
        slice lies.
        """
        name, places = step.function.removesuffix(PREPARE), self.artifact.places(step)
        sizes = {n: np.int32(closed(size)) for n, size in self.artifact.sizes(step).items()}
        for launch in self.artifact.launches_at(step):
            arguments = pack(
                *(sizes[n] if n in sizes else place(places[n]) for n in launch.arguments)
            )
            self._kernels[name, launch.kernel].launch(
                launch.grid,
                launch.block,
                arguments,
                shared_bytes=launch.shared_bytes,
                stream=stream,
            )

    def _allocate(self, size: int) -> DeviceMemory:
        memory = self.context.allocate(size)
        if self._poison is not None:
            memory.fill(self._poison)
        return memory

    def _copied(
        self, positions: Sequence[int], constants: Sequence[Array | None]
    ) -> dict[int, DeviceMemory]:
        """One memory with these constants, those that are given as they are."""
        sizes = [self.artifact.constants[position].bytes for position in positions]
        whole = self._allocate(sum(map(aligned, sizes)))
        places, at = {}, 0
        for position, size in zip(positions, sizes, strict=True):
            places[position] = whole.part(at, size)
            at += aligned(size)
            array = constants[position]
            if array is not None:
                places[position].copy_in(np.ascontiguousarray(array))
        return places

    def _prepare(self, constants: Sequence[Array | None]) -> None:
        """Compute what depends on constants alone; what only that needs goes with it."""
        if not self.artifact.prepare:
            return
        passing = self._copied(self.artifact.passing, constants)
        arena = self._allocate(self.artifact.arena_bytes + self.artifact.workspace_bytes)
        stream = self.context.stream()

        def place(item: Slice) -> DeviceMemory:
            if item.space == "arena":
                return arena.part(item.position, item.bytes)
            return passing.get(item.position) or self.constant(item.position)

        for launch in self.artifact.prepare:
            self.put(launch, place, stream)
        stream.synchronize()  # before that memory goes
