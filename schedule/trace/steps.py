"""The steps of a schedule as the lines that a person would write to take them again.

    B_packed = cache_read("C", "B", name="B_packed")
    i_0, i_1 = split(i, factors=(None, 8), tail="partition")

A trace keeps keys, so that it replays on any function of the same workload; here every key is
replaced by the name that stood for it when the step was taken, or that the step gave.
"""

from __future__ import annotations

from ...tir.func import PrimFunc
from .references import References
from .trace import Step

GIVES_BLOCK = frozenset(  # others give loops
    {
        "cache_read",
        "cache_write",
        "decompose_padding",
        "decompose_reduction",
        "reindex",
        "rfactor",
        "rolling_buffer",
    }
)


def step_line(
    number: int, step: Step, func: PrimFunc, before: References, after: References
) -> str:
    """One line for step `number`, taken on `func`; the references before it and after it."""
    arguments = ", ".join(
        text for name, value in step.arguments if (text := _argument(name, value, func, before))
    )
    call = f"{step.primitive}({arguments})"
    if step.decision is not None:
        return f"{step.decision!r} = {call}"
    if step.primitive in GIVES_BLOCK:
        made = [name for key, name in after.blocks.items() if key.startswith(f"s{number}.b")]
    else:
        made = [var.name for key, var in after.loops.items() if key.startswith(f"s{number}.l")]
    return f"{', '.join(made)} = {call}" if made else call


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
