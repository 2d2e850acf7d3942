"""Run a Program step by step, on the very bytes that its plan gives each tensor.

This is what a Program means. `evaluate_program` computes each function with NumPy,
`interpret_program` element by element. The arena and the outputs are filled with NaNs first, so a
tensor that is read before it is written, or whose place was given away too early, shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import EllipsisType

import numpy as np

from ..buffer import Buffer
from ..dim import Dim
from ..dtype import DType
from ..dtype import dtype as as_dtype
from ..errors import IRError
from ..func import PrimFunc
from ..interpreter.interpreter import interpret
from ..reference.definitions import definitions
from ..reference.evaluate import Array, compute, promoted
from ..sizes import closed_shape, shape_in
from .at_sizes import launch_at, program_at, values_told
from .flow import Iterations, taken
from .program import (
    Copy,
    KeepLargest,
    Launch,
    Program,
    ProgramTensor,
    ReadSize,
    Slice,
    WriteIteration,
    actions,
)
from .steps_at import action_at

Arrays = Mapping[str, Array]
Run = Callable[[PrimFunc, dict[Buffer, Array]], Sequence[Array]]
_OUTSIDE: Iterations = {}  # of all loops


class TooManySteps(Exception):
    """A run goes on for longer than asked for."""


def evaluate_program(
    program: Program,
    inputs: Arrays,
    constants: Arrays,
    dtype: DType | str | None = None,
    most: int | None = None,
) -> dict[str, Array]:
    """The outputs of a program by name, as NumPy computes them.

    inputs, constants: arrays by name. dtype: the type that every float is promoted to, inside
    functions and between them; None: each keeps its own. most: how many steps a run may take.
    Raises: IRError for arrays that do not fit; TooManySteps.
    """
    working = None if dtype is None else as_dtype(dtype)

    def run(func: PrimFunc, buffers: dict[Buffer, Array]) -> Sequence[Array]:
        with np.errstate(all="ignore"):
            for definition in definitions(func):
                compute(definition, buffers, working)
        return [buffers[buffer] for buffer in func.outputs]

    return _run(program, inputs, constants, working, run, most).outputs()


def interpret_program(program: Program, inputs: Arrays, constants: Arrays) -> dict[str, Array]:
    """The outputs of a program by name, computed by the interpreter.

    inputs, constants: arrays by name. Raises: IRError for arrays that do not fit.
    """
    return interpret_with_checks(program, inputs, constants)[0]


def interpret_with_checks(
    program: Program, inputs: Arrays, constants: Arrays
) -> tuple[dict[str, Array], tuple[int, ...], dict[Dim, int]]:
    """As `interpret_program`, with the words of the program's checks, and the sizes of the run."""
    memory = _run(program, inputs, constants, None, lambda f, b: interpret(f, *b.values()))
    words = tuple(int(memory.view(check.word).item()) for check in memory.program.checks)
    return memory.outputs(), words, memory.sizes


def _run(
    program: Program,
    inputs: Arrays,
    constants: Arrays,
    working: DType | None,
    run: Run,
    most: int | None = None,
) -> _Memory:
    given = [inputs.get(t.name) for t in program.inputs]
    shapes = [() if array is None else array.shape for array in given]
    sizes = values_told(program.inputs, shapes)
    program = program_at(program, sizes)
    memory = _Memory(program, inputs, constants, working, sizes)
    for number, item in enumerate(taken(program.body, memory)):
        if most is not None and number >= most:
            raise TooManySteps
        at, step = item.iterations, action_at(item.step, sizes)
        match step:
            case Copy(source, target):
                memory.view(target, at)[...] = memory.view(source, at)
            case WriteIteration(loop, target):
                memory.view(target, at)[...] = at[loop]
            case KeepLargest(source, target):
                words = memory.view(source, at), memory.view(target, at)
                words[1][...] = np.maximum(*words)
            case ReadSize(dim, source):
                sizes[dim] = memory.size(dim, source)
            case Launch(_, arguments):
                func, _ = launch_at(program, step, sizes)
                views = {
                    parameter.buffer: memory.view(place, at).reshape(parameter.buffer.shape)
                    for parameter, place in zip(func.parameters, arguments, strict=True)
                }
                outputs = [views.pop(buffer) for buffer in func.outputs]
                read = {buffer: view.copy() for buffer, view in views.items()}
                for view, result in zip(outputs, run(func, read), strict=True):
                    view[...] = result
    memory.end()
    return memory


def _slices(program: Program) -> Iterator[Slice]:
    for step in (*program.prepare, *actions(program.body)):
        match step:
            case Launch():
                yield from step.arguments
            case _:
                yield from step.effects.touched


class _Memory:
    """The arrays of the four spaces. Where floats are promoted the arena is stretched alike."""

    def __init__(
        self,
        program: Program,
        inputs: Arrays,
        constants: Arrays,
        working: DType | None,
        sizes: dict[Dim, int],
    ) -> None:
        self.program = program
        self.sizes = sizes  # those that the run has computed are added
        self.working = working
        floats = [item.dtype for item in _slices(program) if item.dtype.is_float]
        self.stretch = max((self._type(kind).itemsize // kind.bytes for kind in floats), default=1)
        self.arena = np.full(program.arena_bytes * self.stretch, 0xFF, dtype=np.uint8)
        self.spaces: dict[str, Sequence[Array]] = {
            "input": self._given(program, "input", program.inputs, inputs),
            "constant": self._given(program, "constant", program.constants, constants),
            "output": [
                np.frombuffer(bytearray(b"\xff" * self._most(t)), self._type(t.dtype))
                for t in program.outputs
            ],
        }

    def end(self) -> None:
        """The run is over: outputs are as large as it has made them."""
        self.spaces["output"] = [
            self._shaped(array, shape_in(tensor.shape, self.sizes))
            for tensor, array in zip(self.program.outputs, self.spaces["output"], strict=True)
        ]

    def outputs(self) -> dict[str, Array]:
        """The arrays of the outputs by name."""
        named = zip(self.program.outputs, self.spaces["output"], strict=True)
        return {tensor.name: array for tensor, array in named}

    def size(self, dim: Dim, source: Slice) -> int:
        """A size that the run has computed. Raises: IRError for one out of bounds."""
        found = self.scalar(source, _OUTSIDE)
        if not dim.low <= found <= dim.high:
            raise IRError(
                f"program: the size '{dim.name}' is {found}; expected {dim.low} to {dim.high}.",
                code="program-size-found",
            )
        return found

    def view(self, item: Slice, iterations: Iterations = _OUTSIDE) -> Array:
        """The elements of a slice, to read and to write."""
        shape = closed_shape(item.whole.shape)
        rows = (move.of(iterations) for move in item.moves)
        row: tuple[int | EllipsisType, ...] = (*rows, ...)
        if item.space != "arena":
            return self._shaped(self.spaces[item.space][item.position], shape)[row]
        start = item.position * self.stretch
        part = self.arena[start : start + self._bytes(item.dtype, shape)]
        return part.view(self._type(item.dtype)).reshape(shape)[row]

    def scalar(self, item: Slice, iterations: Iterations) -> int:
        """The one element of a slice."""
        return int(self.view(item, iterations).item())

    @staticmethod
    def _shaped(array: Array, shape: tuple[int, ...]) -> Array:
        """The first elements of an array, as many as the shape has."""
        return array.reshape(-1)[: math.prod(shape)].reshape(shape)

    def _most(self, tensor: ProgramTensor) -> int:
        """Bytes of an array, at most."""
        return tensor.bytes // tensor.dtype.bytes * self._type(tensor.dtype).itemsize

    def _type(self, dtype: DType) -> np.dtype[np.generic]:
        return promoted(dtype, self.working)

    def _bytes(self, dtype: DType, shape: tuple[int, ...]) -> int:
        return int(np.prod(shape, dtype=np.int64)) * self._type(dtype).itemsize

    def _given(
        self, program: Program, kind: str, wanted: Sequence[ProgramTensor], given: Arrays
    ) -> list[Array]:
        found = []
        for tensor in wanted:
            array = given.get(tensor.name)
            if array is None or (array.dtype, array.shape) != (tensor.dtype.numpy, tensor.shape):
                got = "none" if array is None else f"{array.dtype}{list(array.shape)}"
                raise IRError(
                    f"program: {kind} '{tensor.name}' of '{program.name}' is "
                    f"{tensor.dtype}{list(tensor.shape)}; got {got}.",
                    code="program-array",
                )
            found.append(array.astype(self._type(tensor.dtype), copy=False))
        return found
