"""What a drawing of an operator is: it reads values of one shape, and computes one of that shape.

Both systems that run a model round, so a value that was computed may differ in its last place. What
makes a great difference of a small one (a comparison, a rounding to whole numbers) therefore reads
inputs of the model, which are the same in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Protocol

from onnx import NodeProto, helper

from ...types import Array

Attribute = int | float | str | list[int]


class NodeWriter:
    """Nodes that are being written, each with results of its own names."""

    def __init__(self, names: Iterator[str]) -> None:
        self.names = names
        self.made: list[NodeProto] = []

    def add(self, op: str, *inputs: str, **attributes: Attribute) -> str:
        """A node of one result; its name."""
        return self.several(op, 1, *inputs, **attributes)[0]

    def several(self, op: str, count: int, *inputs: str, **attributes: Attribute) -> list[str]:
        """A node of so many results; their names."""
        names = [next(self.names) for _ in range(count)]
        node = helper.make_node(op, list(inputs), names)
        node.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items())
        self.made.append(node)
        return names


class DrawnPoint(Protocol):
    """What a drawing reads, and where it writes. opset: of the model; width: the last size of all
    values, which have three axes.
    """

    @property
    def rng(self) -> Random: ...

    @property
    def nodes(self) -> NodeWriter: ...

    @property
    def opset(self) -> int: ...

    @property
    def width(self) -> int: ...

    def value(self) -> str:
        """A value that is known here."""

    def exact(self) -> str:
        """An input of the model."""

    def hold(self, array: object, kind: str = "int64") -> str:
        """A constant."""

    def weight(self, *shape: int) -> str:
        """A constant of small numbers."""


Write = Callable[[DrawnPoint], str]


@dataclass(frozen=True, slots=True)
class Drawing:
    """How an operator is drawn: its name, what writes it, and the first opset that has it so.
    is_closed: it is read where sizes are numbers alone.
    """

    op: str
    write: Write
    since: int = 1
    is_closed: bool = False


def bounded(draw: DrawnPoint) -> str:
    """A value within -0.9 and 0.9."""
    return draw.nodes.add("Mul", draw.nodes.add("Tanh", draw.value()), scalar(draw, 0.9))


def positive(draw: DrawnPoint) -> str:
    """A value of at least one."""
    return draw.nodes.add("Add", draw.nodes.add("Abs", draw.value()), scalar(draw, 1.0))


def scalar(draw: DrawnPoint, number: float) -> str:
    """A constant of no axes."""
    return draw.hold(number, "float32")


def shape_of(draw: DrawnPoint, value: str) -> str:
    """The shape of a value."""
    return draw.nodes.add("Shape", value)


def image(draw: DrawnPoint, value: str) -> str:
    """A value as an image of one channel."""
    return draw.nodes.add("Unsqueeze", value, draw.hold([1]))


def flat(draw: DrawnPoint, picture: str) -> str:
    """An image of one channel as a value."""
    return draw.nodes.add("Squeeze", picture, draw.hold([1]))


def whole(draw: DrawnPoint) -> str:
    """Whole numbers as floats, from -60 to 60, the same in all systems."""
    scaled = draw.nodes.add("Mul", draw.exact(), scalar(draw, 16.0))
    return draw.nodes.add("Clip", draw.nodes.add("Floor", scaled), *limits(draw, -60.0, 60.0))


def limits(draw: DrawnPoint, low: float, high: float) -> tuple[str, str]:
    """Two constants of no axes."""
    return scalar(draw, low), scalar(draw, high)


def spread(draw: DrawnPoint, array: Array, value: str) -> str:
    """A constant of the last axis, for all points of a value."""
    held = draw.hold(array.reshape(1, 1, -1), array.dtype.name)
    return draw.nodes.add("Expand", held, shape_of(draw, value))
