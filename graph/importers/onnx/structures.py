"""Sequences of tensors, and optional values, as far as their structure is known when the model is
read: the graph has their tensors, and nothing of what holds them together.

An optional value that has an element is that element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorSequence:
    """Tensors in order, by the names of their values."""

    elements: tuple[str, ...]

    def __str__(self) -> str:
        count = len(self.elements)
        return f"a sequence of {count} tensor{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class NoElement:
    """An optional value without an element."""

    def __str__(self) -> str:
        return "an optional value without an element"


Structure = TensorSequence | NoElement
Value = str | Structure  # a tensor by its name, or what holds tensors


def tensors_of(values: Sequence[Value]) -> Iterator[str]:
    """The tensors of values, in order."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, TensorSequence):
            yield from value.elements


def regrouped(values: Sequence[Value], tensors: Sequence[str]) -> tuple[Value, ...]:
    """Values of the same structures with other tensors, which stand in one order."""
    rest, made = iter(tensors), list[Value]()
    for value in values:
        if isinstance(value, str):
            made.append(next(rest))
        elif isinstance(value, TensorSequence):
            made.append(TensorSequence(tuple(next(rest) for _ in value.elements)))
        else:
            made.append(value)
    return tuple(made)


def structures_of(values: Sequence[Value]) -> tuple[str, ...]:
    """What kind of value each is, in words."""
    return tuple("a tensor" if isinstance(value, str) else str(value) for value in values)
