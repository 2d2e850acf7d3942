"""Run a Program launch by launch, on the very bytes that its plan gives each tensor.

This is what a Program means. `evaluate_program` computes each function with NumPy,
`interpret_program` element by element. The arena and the outputs are filled with NaNs first, so a
tensor that is read before it is written, or whose place was given away too early, shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from ...tir.sizes import closed_shape
from ..buffer import Buffer
from ..dtype import DType
from ..dtype import dtype as as_dtype
from ..errors import IRError
from ..func import PrimFunc
from ..interpreter.interpreter import interpret
from ..reference.definitions import definitions
from ..reference.evaluate import Array, compute, promoted
from .at_sizes import program_at, values_told
from .program import Copy, Launch, Program, ProgramTensor, Slice

Arrays = Mapping[str, Array]
Run = Callable[[PrimFunc, dict[Buffer, Array]], Sequence[Array]]


def evaluate_program(
    program: Program, inputs: Arrays, constants: Arrays, dtype: DType | str | None = None
) -> dict[str, Array]:
    """The outputs of a program by name, as NumPy computes them.

    inputs, constants: arrays by name. dtype: the type that every float is promoted to, inside
    functions and between them; None: each keeps its own.
    Raises: IRError for arrays that do not fit.
    """
    working = None if dtype is None else as_dtype(dtype)

    def run(func: PrimFunc, buffers: dict[Buffer, Array]) -> Sequence[Array]:
        with np.errstate(all="ignore"):
            for definition in definitions(func):
                compute(definition, buffers, working)
        return [buffers[buffer] for buffer in func.outputs]

    return _run(program, inputs, constants, working, run).outputs()


def interpret_program(program: Program, inputs: Arrays, constants: Arrays) -> dict[str, Array]:
    """The outputs of a program by name, computed by the interpreter.

    inputs, constants: arrays by name. Raises: IRError for arrays that do not fit.
    """
    return interpret_with_checks(program, inputs, constants)[0]


def interpret_with_checks(
    program: Program, inputs: Arrays, constants: Arrays
) -> tuple[dict[str, Array], tuple[int, ...]]:
    """As `interpret_program`, with the words of the program's checks."""
    memory = _run(program, inputs, constants, None, lambda f, b: interpret(f, *b.values()))
    return memory.outputs(), tuple(int(memory.view(c.word).item()) for c in memory.program.checks)


def _run(
    program: Program, inputs: Arrays, constants: Arrays, working: DType | None, run: Run
) -> _Memory:
    given = [inputs.get(t.name) for t in program.inputs]
    shapes = [() if array is None else array.shape for array in given]
    program = program_at(program, values_told(program.inputs, shapes))
    memory = _Memory(program, inputs, constants, working)
    for step in program.body:
        match step:
            case Copy(source, target):
                memory.view(target)[...] = memory.view(source)
            case Launch(name, arguments):
                func = program.function(name)
                views = {
                    parameter.buffer: memory.view(item).reshape(parameter.buffer.shape)
                    for parameter, item in zip(func.parameters, arguments, strict=True)
                }
                outputs = [views.pop(buffer) for buffer in func.outputs]
                read = {buffer: view.copy() for buffer, view in views.items()}
                for view, result in zip(outputs, run(func, read), strict=True):
                    view[...] = result
    return memory


def _slices(program: Program) -> Iterator[Slice]:
    for step in (*program.prepare, *program.body):
        match step:
            case Launch():
                yield from step.arguments
            case Copy():
                yield from (step.source, step.target)


class _Memory:
    """The arrays of the four spaces. Where floats are promoted the arena is stretched alike."""

    def __init__(
        self, program: Program, inputs: Arrays, constants: Arrays, working: DType | None
    ) -> None:
        self.program = program
        self.working = working
        floats = [item.dtype for item in _slices(program) if item.dtype.is_float]
        self.stretch = max((self._type(kind).itemsize // kind.bytes for kind in floats), default=1)
        self.arena = np.full(program.arena_bytes * self.stretch, 0xFF, dtype=np.uint8)
        self.spaces: dict[str, Sequence[Array]] = {
            "input": self._given(program, "input", program.inputs, inputs),
            "constant": self._given(program, "constant", program.constants, constants),
            "output": [
                np.frombuffer(
                    bytearray(b"\xff" * self._bytes(t.dtype, closed_shape(t.shape))),
                    self._type(t.dtype),
                ).reshape(closed_shape(t.shape))
                for t in program.outputs
            ],
        }

    def outputs(self) -> dict[str, Array]:
        """The arrays of the outputs by name."""
        named = zip(self.program.outputs, self.spaces["output"], strict=True)
        return {tensor.name: array for tensor, array in named}

    def view(self, item: Slice) -> Array:
        """The elements of a slice, to read and to write."""
        if item.space != "arena":
            return self.spaces[item.space][item.position].reshape(closed_shape(item.shape))
        start = item.position * self.stretch
        shape = closed_shape(item.shape)
        part = self.arena[start : start + self._bytes(item.dtype, shape)]
        return part.view(self._type(item.dtype)).reshape(shape)

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
