"""A model's compiled code: loaded, joined with its constants, run in frames.

A frame is the memory of one run: the arena, the workspaces, and the pointers that the model's entry
takes. Frames share code and constants and may run at the same time, each in one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, assert_never

import numpy as np

from ...codegen.program_artifact import ProgramArtifact
from ...tir.dim import Dim
from ...tir.program.flow import Iterations, Taken, taken
from ...tir.program.program import (
    Action,
    Copy,
    KeepLargest,
    Launch,
    ReadSize,
    Slice,
    WriteIteration,
    actions,
)
from ...tir.program.steps_at import slice_at, steps_at
from ...tir.sizes import shape_in
from ..arrays import ALIGNMENT, Array, empty_aligned, memory
from ..index_checks import check_indices
from ..machine.host import default_threads
from ..model.interface import Interface, told
from ..toolchain.library import Library, Pointer, SharedObject, ffi
from .native import NativeEntry
from .pages import side_by_side
from .pool import pool_run
from .workspace import ScratchMemory

if TYPE_CHECKING:
    from ..model.profile import Profile

_CHARS = ffi.typeof("char *")
_POINTERS = ffi.typeof("void *[]")
_WORDS = ffi.typeof("uint64_t *")
_POINTER = ffi.typeof("void *")
_OUTSIDE: Iterations = {}  # of all loops


class NativeProgram:
    """The loaded object of a model. constants: by position; None for those that no run reads."""

    def __init__(
        self, artifact: ProgramArtifact, shared: SharedObject, constants: Sequence[Array | None]
    ) -> None:
        """Load the object.

        Raises: TargetError where this machine lacks the instruction set; LibraryError.
        """
        self.artifact = artifact
        self.shared = shared
        self.constants = tuple(constants)
        self.checks = artifact.checks
        self.interface = Interface(artifact)
        self._library = Library(shared, name=artifact.name)
        self.function = self._library.entry(artifact.symbol)
        self.pointers: list[Pointer] = []
        for position in artifact.read:
            array = self.constants[position]
            assert array is not None, position
            self.pointers.append(memory(array))

    def frame(self, threads: int, fence: int = 0) -> CpuFrame:
        """Memory for runs on up to `threads` threads; more when a run asks for them.

        fence: bytes on either side of its scratch memory that no run may touch, for checks.
        """
        return CpuFrame(self, threads, fence)

    def kernel_function(self, symbol: str) -> Pointer:
        """The address of one kernel's entry."""
        return self._library.entry(symbol)


class _Block:
    """Where the scratch memory of frames lies that share it."""

    block: ScratchMemory


class CpuFrame:
    """The memory of one run at a time."""

    def __init__(self, program: NativeProgram, threads: int, fence: int = 0) -> None:
        self.program = program
        self._fence = -(-fence // ALIGNMENT) * ALIGNMENT
        artifact = program.artifact
        self._outputs_at = len(artifact.inputs) + len(program.pointers)
        self._sizes_at = self._outputs_at + len(artifact.outputs)
        self._scratch_at = self._sizes_at + len(artifact.dims)
        self._told = told(artifact.inputs)
        self._sizes = dict.fromkeys(artifact.dims, 0)
        self._read = artifact.sizes_read
        self._arguments = ffi.new(_POINTERS, self._scratch_at + 1)
        for position, pointer in enumerate(program.pointers, len(artifact.inputs)):
            self._arguments[position] = pointer
        self._checks = program.checks
        self._memory = _Block()
        self._reserve(artifact.scratch_bytes(threads))

    def share(self, other: object) -> None:
        """Have the scratch memory of another frame, which never runs at the same time."""
        if isinstance(other, CpuFrame):
            self._memory = other._memory
            self._follow()

    def point(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Let the next runs use these arrays, which the caller keeps alive."""
        arguments = self._arguments
        for position, array in enumerate(inputs):
            arguments[position] = memory(array)
        for position, array in enumerate(outputs, self._outputs_at):
            arguments[position] = memory(array)
        for dim, (number, axis) in self._told.items():
            self._sizes[dim] = inputs[number].shape[axis]
        for position, dim in enumerate(self._told, self._sizes_at):
            arguments[position] = ffi.cast(_POINTER, self._sizes[dim])

    def run(self, threads: int) -> int:
        """Run on the arrays pointed to; how many threads took part.

        Raises: IndexRangeError after a run in which an index lay outside of its range.
        """
        self._enough(threads)
        took_part = int(pool_run()(self.program.function, self._arguments, threads))
        for step in self._read:
            self._read_size(step)
        for item in self._checks:
            word = int(ffi.cast(_WORDS, self._pointer(item.word))[0])
            check_indices(self.program.artifact.name, [(item.check, word)], item.label)
        return took_part

    @property
    def sizes(self) -> Mapping[Dim, int]:
        """The sizes of the run: what its inputs tell, and what it has computed."""
        return self._sizes

    def profile(self, threads: int, rounds: int) -> Profile:
        """Time each step alone on the arrays pointed to, and the whole run."""
        from ..model.profile import profile_steps  # a run needs no clock

        artifact, steps = self.program.artifact, self.steps(threads)

        def run() -> Iterator[Taken]:
            return taken(steps_at(artifact.body, self._sizes), self)

        return profile_steps(artifact.name, steps, run, lambda: self.run(threads), threads, rounds)

    @property
    def scratch(self) -> Array:
        """Every byte of the scratch memory, the arena first."""
        size = self._memory.block.size - 2 * self._fence
        return np.frombuffer(ffi.buffer(self._base, size), np.uint8)

    @property
    def fences(self) -> tuple[Array, Array]:
        """The bytes on either side of the scratch memory."""
        block = self._memory.block
        whole = np.frombuffer(ffi.buffer(block.pointer, block.size), np.uint8)
        return whole[: self._fence], whole[whole.size - self._fence :]

    def steps(self, threads: int) -> list[tuple[Action, Callable[[Iterations], object]]]:
        """Each step that reads and writes as a call of its own, on the arrays pointed to, given the
        iterations of the loops around it.
        """
        self._enough(threads)
        return [(step, self._alone(step, threads)) for step in actions(self.program.artifact.body)]

    def scalar(self, item: Slice, iterations: Iterations) -> int:
        """The one element of a slice, as it is now."""
        pointer = ffi.buffer(self._pointer(item, iterations), item.bytes)
        return int(np.frombuffer(pointer, item.dtype.numpy)[0])

    def _alone(self, step: Action, threads: int) -> Callable[[Iterations], object]:
        match step:
            case Launch():
                return partial(
                    self._launch, self.program.kernel_function(step.function), step, threads
                )
            case Copy():
                return partial(self._copy, step)
            case WriteIteration():
                return lambda at: self._set(step.target, at, at[step.loop])
            case KeepLargest():
                return partial(self._keep_largest, step)
            case ReadSize():
                return lambda _: self._read_size(step)
        assert_never(step)

    def _launch(self, function: Pointer, step: Launch, threads: int, at: Iterations) -> None:
        pointers = [self._pointer(item, at) for item in step.arguments]
        pointers += (ffi.cast(_POINTER, size) for size in shape_in(step.sizes, self._sizes))
        pointers.append(self._base + self.program.artifact.arena_bytes)
        pool_run()(function, ffi.new(_POINTERS, pointers), threads)

    def _copy(self, step: Copy, at: Iterations) -> None:
        target, source = self._pointer(step.target, at), self._pointer(step.source, at)
        ffi.memmove(target, source, slice_at(step.source, self._sizes).bytes)

    def _keep_largest(self, step: KeepLargest, at: Iterations) -> None:
        largest = max(self.scalar(step.source, at), self.scalar(step.target, at))
        self._set(step.target, at, largest)

    def _read_size(self, step: ReadSize) -> None:
        self._sizes[step.dim] = self.scalar(step.source, _OUTSIDE)

    def _set(self, item: Slice, at: Iterations, value: int) -> None:
        data = np.array([value], item.dtype.numpy).tobytes()
        ffi.memmove(self._pointer(item, at), data, item.bytes)

    def _pointer(self, item: Slice, iterations: Iterations = _OUTSIDE) -> Pointer:
        artifact = self.program.artifact
        match item.space:
            case "arena":
                start = self._base + item.position
            case "input":
                start = self._arguments[item.position]
            case "constant":
                start = self._arguments[len(artifact.inputs) + artifact.read.index(item.position)]
            case _:
                start = self._arguments[self._outputs_at + item.position]
        if not item.moves:
            return start
        return ffi.cast(_CHARS, start) + slice_at(item, self._sizes).offset(iterations)

    def _enough(self, threads: int) -> None:
        needed = self.program.artifact.scratch_bytes(threads)
        if needed > self._memory.block.size - 2 * self._fence:
            self._reserve(needed)

    def _reserve(self, size: int) -> None:
        self._memory.block = ScratchMemory(size + 2 * self._fence)
        self._follow()

    def _follow(self) -> None:
        """Let runs use the scratch memory where it is now."""
        self._base = ffi.cast(_CHARS, self._memory.block.pointer) + self._fence
        self._arguments[self._scratch_at] = self._base


def prepare_constants(
    artifact: ProgramArtifact, shared: SharedObject, bound: Mapping[int, Array]
) -> tuple[Array | None, ...]:
    """The constants that a run reads, by position: those bound, copied and aligned, and those that
    `prepare` computes, now, once.

    bound: an array for each constant of role "constant", by position, of its dtype and shape.
    Raises: LibraryError.
    """
    library = Library(shared, name=artifact.name)
    kept = artifact.read
    types = [(artifact.constants[n].largest_shape, artifact.constants[n].dtype.numpy) for n in kept]
    known = dict(zip(kept, side_by_side(types), strict=True))
    for position, parameter in enumerate(artifact.constants):
        if parameter.role == "prepared" and position not in known:
            known[position] = empty_aligned(parameter.largest_shape, parameter.dtype.numpy)
    for position, array in known.items():
        # nobody reads what `prepare` leaves out, but it is kept
        array[...] = 0 if artifact.constants[position].role == "prepared" else bound[position]
    for launch in artifact.prepare:
        _prepare(library, artifact, launch, {**bound, **known})
    return tuple(
        known[position] if position in artifact.read else None
        for position in range(len(artifact.constants))
    )


def _prepare(
    library: Library, artifact: ProgramArtifact, launch: Launch, arrays: Mapping[int, Array]
) -> None:
    """Run one launch of `prepare`; the copies that it needs of weights that are not dense go with
    it.
    """
    dense = [np.ascontiguousarray(arrays[item.position]) for item in launch.arguments]
    NativeEntry(library, artifact.kernel(launch.function), {}).run(dense, default_threads())
