"""Execute a program of TENSOR functions: by the interpreter, which defines what it means, or by the
NumPy evaluator, the fast oracle.

With `dtype` every float is computed and kept in that type: the arena and its offsets grow in
proportion, so that slices overlap exactly as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .definitions import definitions
from .dtype import DType
from .dtype import dtype as as_dtype
from .errors import IRError
from .evaluate import compute, promoted
from .func import PrimFunc
from .interpreter import interpret
from .program import Copy, Launch, Program, Slice, Sync, Tensor

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Run = Callable[[PrimFunc, Sequence[Array]], Sequence[Array]]


def evaluate_program(
    program: Program,
    inputs: Mapping[str, Array],
    constants: Mapping[str, Array],
    dtype: DType | str | None = None,
) -> dict[str, Array]:
    """The outputs by name, as the NumPy evaluator computes them.

    constants: those that are bound; prepared ones are computed. dtype: what every float is
    promoted to; None: its own type.
    Raises: IRError for arrays that do not fit, or functions of another stage.
    """
    working = None if dtype is None else as_dtype(dtype)

    def run(func: PrimFunc, arrays: Sequence[Array]) -> Sequence[Array]:
        read = (p.buffer for p in func.parameters if p.role != "output")
        known = dict(zip(read, arrays, strict=True))
        with np.errstate(all="ignore"):
            for definition in definitions(func):
                compute(definition, known, working)
        return [known[buffer] for buffer in func.outputs]

    return _execute(program, inputs, constants, run, working)


def interpret_program(
    program: Program, inputs: Mapping[str, Array], constants: Mapping[str, Array]
) -> dict[str, Array]:
    """The outputs by name, as the interpreter computes them, element by element.

    Raises: IRError for arrays that do not fit; InterpreterError.
    """
    return _execute(program, inputs, constants, lambda func, arrays: interpret(func, *arrays), None)


@dataclass(frozen=True, slots=True)
class _Memory:
    """The arrays of the spaces; the arena in bytes, `scale` times its planned size."""

    tensors: Mapping[str, Sequence[Array]]
    arena: np.ndarray[tuple[int], np.dtype[np.uint8]]
    working: DType | None
    scale: int

    def view(self, item: Slice, shape: tuple[int, ...]) -> Array:
        """The memory of a slice, as an array of `shape`."""
        if item.space != "arena":
            return self.tensors[item.space][item.position].reshape(shape)
        kind = promoted(item.dtype, self.working)
        step = item.dtype.bytes * self.scale
        strides: list[int] = []
        for extent in reversed(shape):
            strides.insert(0, step)
            step *= extent
        start = self.arena[item.position * self.scale :].view(np.uint8)
        if not item.bytes:
            return np.empty(shape, kind)
        whole = start[: start.size // kind.itemsize * kind.itemsize].view(kind)
        return as_strided(whole, shape, strides)


def _execute(
    program: Program,
    inputs: Mapping[str, Array],
    constants: Mapping[str, Array],
    run: Run,
    working: DType | None,
) -> dict[str, Array]:
    prepared = program.prepared
    bound = [t for position, t in enumerate(program.constants) if position not in prepared]
    outputs = [np.empty(t.shape, promoted(t.dtype, working)) for t in program.outputs]
    known = {t.name: _array(program, t, constants, working) for t in bound}
    tensors = {
        "input": [_array(program, t, inputs, working) for t in program.inputs],
        "constant": [
            known[t.name] if t.name in known else np.empty(t.shape, promoted(t.dtype, working))
            for t in program.constants
        ],
        "output": outputs,
    }
    scale = 1 if working is None else max(1, working.bytes // _narrowest_float(program))
    arena = np.zeros(program.arena_bytes * scale + 16, np.uint8)
    memory = _Memory(tensors, arena, working, scale)
    for step in (*program.prepare, *program.body):
        match step:
            case Launch():
                _launch(program.function(step.function), step, memory, run)
            case Copy():
                target, shape = step.target, step.target.shape
                memory.view(target, shape)[...] = memory.view(step.source, shape)
            case Sync():
                pass
    return {t.name: array for t, array in zip(program.outputs, outputs, strict=True)}


def _launch(func: PrimFunc, launch: Launch, memory: _Memory, run: Run) -> None:
    pairs = list(zip(func.parameters, launch.arguments, strict=True))
    given = [memory.view(item, p.buffer.shape) for p, item in pairs if p.role != "output"]
    written = [memory.view(item, p.buffer.shape) for p, item in pairs if p.role == "output"]
    for target, result in zip(written, run(func, given), strict=True):
        target[...] = result


def _narrowest_float(program: Program) -> int:
    """Bytes of the narrowest float that the program computes in."""
    sizes = [
        buffer.type.bytes
        for func in program.functions
        for buffer in (p.buffer for p in func.parameters)
        if buffer.type.is_float
    ]
    return min(sizes, default=8)


def _array(
    program: Program, tensor: Tensor, arrays: Mapping[str, Array], working: DType | None
) -> Array:
    array = arrays.get(tensor.name)
    if array is None or array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
        got = "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
        raise IRError(
            f"program: '{tensor.name}' of '{program.name}' is {tensor.dtype}{list(tensor.shape)}; "
            f"got {got}.",
            code="program-array",
        )
    return np.asarray(array, promoted(tensor.dtype, working), order="C")
