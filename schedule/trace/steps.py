"""The steps of a schedule as the lines that a person would write to take them again.

    B_packed = cache_read("C", "B", name="B_packed")
    i_0, i_1 = split(i, factors=(None, 8), tail="partition")

A trace keeps keys, so that it replays on any function of the same workload; here every key is
replaced by the name that stood for it when the step was taken, or that the step gave.
"""

from __future__ import annotations

from ...tir.func import PrimFunc
from .references import LoopRef, References
from .trace import Step


def step_line(step: Step, made: object, func: PrimFunc, references: References) -> str:
    """One line for a step, taken on `func`; what its caller got, and the references before it."""
    arguments = ", ".join(
        text for name, value in step.arguments if (text := _argument(name, value, func, references))
    )
    call = f"{step.primitive}({arguments})"
    if step.decision is not None:
        return f"{step.decision!r} = {call}"
    names = ", ".join(_names(made))
    return f"{names} = {call}" if names else call


def _names(made: object) -> tuple[str, ...]:
    """The names of the loops or blocks that a caller got."""
    match made:
        case LoopRef(name=name) | str(name):
            return (name,)
        case tuple():
            return tuple(name for item in made for name in _names(item))
    return ()


def _argument(name: str, value: object, func: PrimFunc, references: References) -> str:
    text = _value(value, func, references)
    if name == "loops":
        return text.removeprefix("(").removesuffix(")").removesuffix(",")
    return text if name in ("loop", "block", "buffer") else f"{name}={text}"


def _value(value: object, func: PrimFunc, references: References) -> str:
    match value:
        case {"loop": _, "name": name}:
            return str(name)
        case {"block": key}:
            return _quoted(references.blocks[str(key)])
        case {"tensor": key}:
            return _quoted(references.storage(func, str(key)).name)
        case str():
            return _quoted(value)
        case tuple():
            items = ", ".join(_value(item, func, references) for item in value)
            return f"({items},)" if len(value) == 1 else f"({items})"
    return repr(value)


def _quoted(name: str) -> str:
    return f'"{name}"'
