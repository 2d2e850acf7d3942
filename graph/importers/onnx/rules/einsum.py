"""The rule of Einsum, in words of other operators: diagonals, sums, products of two operands at a
time from left to right.

Each pair becomes a MatMul where they share axes that are summed over and both have others, so that
it runs where products run; else a Mul, and a ReduceSum of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from .....tir.sizes import AnySize, closed, product_of
from ....errors import ModelError
from ....ops import arithmetic, matmul, movement, reduction
from ....ops.slicing import Slice
from ....types import Shape
from ..node import NodeReader
from .rule import ImportRule, Result

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A value with a label for each of its axes."""

    value: str
    labels: tuple[str, ...]


def _einsum(node: NodeReader) -> Result:
    return _Einsum(node).result()


class _Einsum:
    """An equation with its operands. An axis of the ellipsis is labelled by the number of those
    behind it. sizes: of each label.
    """

    def __init__(self, node: NodeReader) -> None:
        self.node = node
        self.equation = node.text("equation", "").replace(" ", "")
        given, arrow, result = self.equation.partition("->")
        terms = given.split(",")
        if len(terms) != len(node.inputs):
            self._refuse(f"{len(terms)} terms for {len(node.inputs)} inputs")
        shapes = [node.type(position).shape for position in range(len(terms))]
        self.operands = [
            Labelled(value, self._labels(term, shape))
            for value, term, shape in zip(node.inputs, terms, shapes, strict=True)
        ]
        self.sizes: dict[str, AnySize] = {}
        for operand, shape in zip(self.operands, shapes, strict=True):
            self._note_sizes(operand, shape)
        labels = [label for operand in self.operands for label in operand.labels]
        dots = sorted({label for label in labels if label.isdigit()}, key=int, reverse=True)
        self.output = self._output(result, dots) if arrow else self._implicit(labels, dots)

    def _refuse(self, problem: str) -> NoReturn:
        raise ModelError(
            f"model: {self.node.title} has the equation '{self.equation}': {problem}.",
            code="onnx-einsum",
        )

    def _labels(self, term: str, shape: Shape) -> tuple[str, ...]:
        if not _TERM.fullmatch(term):
            self._refuse(f"'{term}' is no row of letters with at most one '...'")
        before, dots, behind = term.partition("...")
        count = len(shape) - len(before) - len(behind)
        if count < 0 or (count and not dots):
            self._refuse(f"'{term}' is the term of an input with {len(shape)} axes")
        return (*before, *(str(n) for n in reversed(range(count))), *behind)

    def _note_sizes(self, operand: Labelled, shape: Shape) -> None:
        """The size of a label; an axis of one element goes with every other size."""
        for label, size in zip(operand.labels, shape, strict=True):
            known = self.sizes.get(label, 1)
            if known == 1:
                self.sizes[label] = size
            elif size not in (1, known):
                self._refuse(f"axis '{label}' has sizes {known} and {size}")

    def _output(self, term: str, dots: Sequence[str]) -> tuple[str, ...]:
        if not _TERM.fullmatch(term):
            self._refuse(f"'{term}' is no row of letters with at most one '...'")
        before, has_dots, behind = term.partition("...")
        found = (*before, *(dots if has_dots else ()), *behind)
        if len(set(found)) < len(found) or not set(found) <= set(self.sizes):
            self._refuse(f"'{term}' names an axis twice, or one that no input has")
        return found

    def _implicit(self, labels: list[str], dots: Sequence[str]) -> tuple[str, ...]:
        once = (label for label in sorted(set(labels)) if labels.count(label) == 1)
        return (*dots, *(label for label in once if label.isalpha()))

    def result(self) -> Result:
        """The output."""
        waiting = [self._plain(operand) for operand in self.operands]
        made = self._summed(waiting[0], self._needed(waiting[1:]))
        while waiting[1:]:
            del waiting[0]
            needed = self._needed(waiting[1:])
            other = self._summed(waiting[0], {*needed, *made.labels})
            made = self._product(self._summed(made, {*needed, *other.labels}), other, needed)
        order = tuple(map(made.labels.index, self.output))
        return movement.Transpose(order), (made.value,)

    def _needed(self, later: Iterable[Labelled]) -> set[str]:
        return {*self.output, *(label for operand in later for label in operand.labels)}

    def _shape(self, labels: Iterable[str]) -> Shape:
        return tuple(self.sizes[label] for label in labels)

    def _plain(self, operand: Labelled) -> Labelled:
        """An operand with each label once, and without axes of one element that another operand has
        more of.
        """
        shape = self.node.builder.types[operand.value].shape
        pairs = list(zip(operand.labels, shape, strict=True))
        kept = [(label, size) for label, size in pairs if size == self.sizes[label]]
        made = Labelled(operand.value, tuple(label for label, _ in kept))
        if len(kept) < len(pairs):
            value = self.node.emit(movement.Reshape(tuple(s for _, s in kept)), operand.value)
            made = Labelled(value, made.labels)
        for label in dict.fromkeys(made.labels):
            while made.labels.count(label) > 1:
                made = self._diagonal(made, label)
        return made

    def _diagonal(self, operand: Labelled, label: str) -> Labelled:
        """An operand whose first two axes of a label have become one."""
        first = operand.labels.index(label)
        second = operand.labels.index(label, first + 1)
        rest = [axis for axis in range(len(operand.labels)) if axis not in (first, second)]
        labels = tuple(operand.labels[axis] for axis in rest)
        size = closed(self.sizes[label])
        last = self.node.emit(movement.Transpose((*rest, first, second)), operand.value)
        flat = self.node.emit(movement.Reshape((*self._shape(labels), size * size)), last)
        counts = (*self._shape(labels), size)
        steps = (*(1 for _ in rest), size + 1)
        taken = self.node.emit(Slice((0,) * len(counts), counts, steps), flat)
        return Labelled(taken, (*labels, label))

    def _summed(self, operand: Labelled, needed: set[str]) -> Labelled:
        """An operand without the axes that nobody needs."""
        axes = tuple(axis for axis, label in enumerate(operand.labels) if label not in needed)
        if not axes:
            return operand
        value = self.node.emit(reduction.ReduceSum(axes, False), operand.value)
        return Labelled(value, tuple(label for label in operand.labels if label in needed))

    def _product(self, a: Labelled, b: Labelled, needed: set[str]) -> Labelled:
        """The product of two operands, without the axes of both that nobody needs."""
        shared = [label for label in a.labels if label in b.labels]
        inner = [label for label in shared if label not in needed]
        rows = [label for label in a.labels if label not in shared]
        columns = [label for label in b.labels if label not in shared]
        is_float = self.node.builder.types[a.value].is_float
        if not (inner and rows and columns and is_float):
            return self._multiplied(a, b, needed)
        mine = next((label for label in self.output if label in (*rows, *columns)), None)
        if mine in columns:
            a, b, rows, columns = b, a, columns, rows
        batch = sorted((label for label in shared if label in needed), key=self._place)
        left = self._arranged(a, (batch, rows, inner))
        right = self._arranged(b, (batch, inner, columns))
        product = self.node.emit(matmul.MatMul(), left, right)
        labels = (*batch, *rows, *columns)
        value = self.node.emit(movement.Reshape(self._shape(labels)), product)
        return Labelled(value, labels)

    def _place(self, label: str) -> int:
        """Where a label stands in the output."""
        return self.output.index(label) if label in self.output else len(self.output)

    def _arranged(self, operand: Labelled, groups: tuple[list[str], list[str], list[str]]) -> str:
        """An operand as a stack of matrices: axes of the stack, rows and columns joined."""
        batch, rows, columns = groups
        order = tuple(map(operand.labels.index, (*batch, *rows, *columns)))
        moved = self.node.emit(movement.Transpose(order), operand.value)
        shape = (*self._shape(batch), *(product_of(self._shape(g)) for g in (rows, columns)))
        return self.node.emit(movement.Reshape(shape), moved)

    def _multiplied(self, a: Labelled, b: Labelled, needed: set[str]) -> Labelled:
        """The same by broadcasting: all axes of both, then sums."""
        labels = sorted({*a.labels, *b.labels}, key=self._place)
        values = []
        for operand in (a, b):
            own = [label for label in labels if label in operand.labels]
            moved = self.node.emit(
                movement.Transpose(tuple(map(operand.labels.index, own))), operand.value
            )
            shape = tuple(self.sizes[label] if label in own else 1 for label in labels)
            values.append(self.node.emit(movement.Reshape(shape), moved))
        product = Labelled(self.node.emit(arithmetic.Mul(), *values), tuple(labels))
        return self._summed(product, needed)


RULES: dict[str, ImportRule] = {"Einsum": ImportRule((12, 28), ("equation",), _einsum)}
