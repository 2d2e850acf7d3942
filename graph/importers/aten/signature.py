"""What a program takes and gives, by the names that its callers use."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...errors import ModelError
from .program import Argument, Named


def output_names(outputs: Sequence[Argument], inputs: Collection[str]) -> tuple[str, ...]:
    """The names that the graph has for its outputs; another one where it is taken."""
    found = list[str]()
    for number, output in enumerate(outputs):
        name = output.name if isinstance(output, Named) else f"output_{number}"
        taken = name in found or name in inputs
        found.append(f"output_{number}" if taken else name)
    return tuple(found)


def changed(kind: str, names: Sequence[str]) -> ModelError:
    """What is wrong with a program that changes its buffers, its weights or its inputs: that must
    not be forgotten.
    """
    return ModelError(
        f"model: the program changes {', '.join(map(repr, names)) or kind} "
        f"({kind.replace('_', ' ')}); expected one that only computes its outputs.",
        code="pt2-mutation",
        hints=("return the new value as an output, and pass it in with the next call.",),
    )
