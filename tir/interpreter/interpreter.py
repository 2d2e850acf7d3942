"""The interpreter: it executes a function of any stage element by element, and so defines what a
function means.

A function is written as Python text once, then run on NumPy arrays: about a million scalar steps a
second. A checked run also watches every access and is some five times slower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from ..analysis.specialise import sizes_of, specialise
from ..func import PrimFunc
from ..reference.arithmetic import Array, poisoned
from ..stmt import Parameter
from .checks import InterpreterError, Watch
from .statements import PythonProgram, python_program

__all__ = ["InterpreterError", "interpret", "python_program"]

Run = Callable[[Sequence[Array], Watch | None], None]


def interpret(
    func: PrimFunc,
    *arrays: Array,
    checked: bool = False,
    barriers: bool = False,
    whole: bool = True,
    constants: Mapping[str, Array] | None = None,
) -> tuple[Array, ...]:
    """Execute `func` and return its outputs.

    arrays: one per parameter in order, of its dtype and shape, without those that `constants` binds
    by name. Outputs may be left out, all of them: they are allocated. Those that are given are
    written and returned.
    checked: find accesses out of bounds, reads of what was not written, races between iterations of
    a parallel or vectorised loop, points of a block that lie outside its domain or run twice,
    outputs that are not written. Without it an access out of bounds may go unseen.
    barriers: in a checked run, only a Barrier orders what different threads do, as in functions
    whose barriers have been placed; otherwise the end of each parallel loop does.
    whole: whether a checked run asks for every element of an output to be written.
    Raises: InterpreterError, also for arrays that do not fit, and for an integer divided by 0.
    """
    given = _by_parameter(func, arrays, constants or {})
    func, given = _at_sizes(func, given)
    flat = [_storage(func, parameter, given.get(parameter)) for parameter in func.parameters]
    program, run = _compiled(func, checked, barriers, whole)
    watch = Watch(func.name, program.sites, program.slots, barriers) if checked else None
    try:
        with np.errstate(all="ignore"):
            run(flat, watch)
    except ZeroDivisionError:
        raise InterpreterError(
            f"interpreter: function '{func.name}' divides an integer by 0.",
            code="interpreter-division",
        ) from None
    except IndexError as error:
        raise InterpreterError(
            f"interpreter: function '{func.name}' leaves a buffer: {error}.",
            code="interpreter-index",
            hints=("interpret(..., checked=True) names the access.",),
        ) from None
    return tuple(
        _result(parameter, data, given.get(parameter))
        for parameter, data in zip(func.parameters, flat, strict=True)
        if parameter.role == "output"
    )


@lru_cache(maxsize=128)
def _compiled(
    func: PrimFunc, checked: bool, barriers: bool, whole: bool
) -> tuple[PythonProgram, Run]:
    program = python_program(func, checked=checked, barriers=barriers, whole=whole)
    names = dict(program.constants)
    exec(compile(program.source, f"<tilewright {func.name}>", "exec"), names)  # the text is ours
    run: Run = names["run"]  # type: ignore[assignment]
    return program, run


def _by_parameter(
    func: PrimFunc, arrays: Sequence[Array], constants: Mapping[str, Array]
) -> dict[Parameter, Array]:
    """Match arrays with parameters.

    Raises: InterpreterError for a wrong number or an unknown constant.
    """
    free = [p for p in func.parameters if not (p.role == "constant" and p.name in constants)]
    needed = [p for p in free if p.role != "output"]
    unknown = sorted(set(constants) - {p.name for p in func.parameters if p.role == "constant"})
    if unknown or len(arrays) not in (len(needed), len(free)):
        listed = ", ".join(f"'{p.name}'" for p in free)
        problem = (
            f"{len(arrays)} arrays"
            if not unknown
            else f"a constant '{unknown[0]}', which it does not have"
        )
        raise InterpreterError(
            f"interpreter: function '{func.name}' was given {problem}; "
            f"expected {len(needed)} or {len(free)} arrays, for {listed}.",
            code="interpreter-arguments",
        )
    given = dict(zip(free, arrays, strict=False))
    return given | {p: constants[p.name] for p in func.parameters if p not in free}


def _at_sizes(
    func: PrimFunc, given: dict[Parameter, Array]
) -> tuple[PrimFunc, dict[Parameter, Array]]:
    """The function for the sizes that the arrays have, with its parameters' arrays."""
    if not func.dims:
        return func, given
    sizes = sizes_of(((p.buffer, array.shape) for p, array in given.items()))
    made = specialise(func, sizes)
    pairs = zip(func.parameters, made.parameters, strict=True)
    return made, {new: given[old] for old, new in pairs if old in given}


def _storage(func: PrimFunc, parameter: Parameter, array: Array | None) -> Array:
    """The flat array that a parameter's elements stand in while the function runs."""
    buffer = parameter.buffer
    if array is None:
        return poisoned((buffer.size,), buffer.type)
    if array.dtype != buffer.type.numpy or array.shape != buffer.shape:
        raise InterpreterError(
            f"interpreter: parameter '{parameter.name}' of '{func.name}' is "
            f"{array.dtype}{list(array.shape)}; expected {buffer.type}{list(buffer.shape)}.",
            code="interpreter-array",
        )
    flat: Array = np.ascontiguousarray(array).reshape(-1)
    return flat


def _result(parameter: Parameter, data: Array, given: Array | None) -> Array:
    result: Array = data.reshape(parameter.buffer.shape)
    if given is None:
        return result
    np.copyto(given, result)
    return given
