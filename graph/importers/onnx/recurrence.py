"""A recurrent operator over all steps: the products of the input at once, then loops over rows.

A loop runs two steps in each iteration, the gates of the second in the opposite order of those of
the first (`cells`); where the number of steps is odd, one step stands alone. So what a loop reads
and gives are arrays of every other step. Where a run decides how many steps there are, that one is
a loop of no iteration or one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....tir.sizes import AnySize, closed_shape, is_closed, largest
from ...ir.build import GraphBuilder
from ...ir.ir import GraphNode, make_graph
from ...ops.logic import Where
from ...ops.matmul import Gemm
from ...ops.movement import Concat, Reshape
from ...ops.repetition import Expand
from ...ops.slicing import Slice
from ...regions.loop import ITERATION, Loop
from ...types import Shape, Splat, TensorType
from .cells import Cell, CellBuilder, StepInputs
from .node import NodeReader, node_name


@dataclass(frozen=True, slots=True)
class Steps:
    """Rows of successive steps, [count, ...] each: of the first, third, ... step, and of the
    second, fourth, ... one; or of the last step alone.
    """

    arrays: tuple[str, ...]
    count: AnySize


@dataclass(frozen=True, slots=True)
class DirectionInputs:
    """What one direction computes with. weights, biases: of the input, for each gate; state_weights
    and others: as a cell takes them; states: before the first step.
    """

    weights: tuple[str, ...]
    biases: tuple[str, ...]
    state_weights: tuple[str, ...]
    others: tuple[str, ...]
    states: tuple[str, ...]
    reverse: bool


@dataclass(frozen=True, slots=True)
class DirectionResult:
    """What one direction gives: rows of h for the steps of each loop, and the last states."""

    rows: tuple[Steps, ...]
    states: tuple[str, ...]


def part(
    node: NodeReader, value: str, axis: int, start: AnySize, size: AnySize, step: int = 1
) -> str:
    """So many elements along an axis, each `step` behind the one before."""
    shape = node.builder.types[value].shape
    if size == shape[axis]:
        return value
    starts: list[AnySize] = [0] * len(shape)
    sizes, steps = list(shape), [1] * len(shape)
    starts[axis], sizes[axis], steps[axis] = start, size, step
    return node.emit(Slice(tuple(starts), tuple(sizes), tuple(steps)), value)


def split_steps(node: NodeReader, value: str) -> tuple[Steps, ...]:
    """The rows of an array by the loops that read them."""
    steps = node.builder.types[value].shape[0]
    pairs, found = steps // 2, list[Steps]()
    alone = steps - 2 * pairs
    if largest(pairs):
        halves = tuple(part(node, value, 0, first, pairs, 2) for first in range(2))
        found.append(Steps(halves, pairs))
    if largest(alone):
        found.append(Steps((part(node, value, 0, 2 * pairs, alone),), alone))
    return tuple(found)


def join_steps(node: NodeReader, rows: Sequence[tuple[Steps, ...]], shape: Shape) -> str:
    """The rows of all steps and directions, [steps, directions, ...]; `shape` is that of a step."""
    if not rows[0]:
        return zeros(node, node.type(0).dtype, (0, *shape))
    wholes = []
    for several in zip(*rows, strict=True):
        arrays = [one.arrays[n] for n in range(len(several[0].arrays)) for one in several]
        count, *rest = node.builder.types[arrays[0]].shape
        apart = [node.emit(Reshape((count, 1, *rest)), array) for array in arrays]
        joined = _concat(node, 1, apart)
        steps = count * (len(arrays) // len(several))
        wholes.append(node.emit(Reshape((steps, len(several), *rest)), joined))
    return _concat(node, 0, wholes)


def _concat(node: NodeReader, axis: int, values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else node.emit(Concat(axis), *values)


def run_direction(
    node: NodeReader,
    cell: Cell,
    given: DirectionInputs,
    steps: tuple[Steps, ...],
    masks: tuple[Steps, ...],
    collects: bool,
) -> DirectionResult:
    """One direction. steps: of the input; masks: whether a step is one of its sequence, where
    sequences have lengths; collects: whether the rows of h are asked for.
    """
    states, rows = given.states, list[Steps]()
    numbers = range(len(steps))
    for number in reversed(numbers) if given.reverse else numbers:
        inputs = tuple(
            _input_product(node, array, weight, bias)
            for array in steps[number].arrays
            for weight, bias in zip(given.weights, given.biases, strict=True)
        )
        inside = masks[number].arrays if masks else ()
        loop = _LoopOver(
            node, cell, given, len(steps[number].arrays), steps[number].count, collects
        )
        states, made = loop.run(states, inputs, inside)
        rows.append(Steps(made, steps[number].count))
    return DirectionResult(tuple(reversed(rows) if given.reverse else rows), states)


def _input_product(node: NodeReader, x: str, weight: str, bias: str) -> str:
    """The product of the input of all steps with the weights of one gate: [count, batch, hidden]"""
    count, batch, size = node.builder.types[x].shape
    hidden = node.builder.types[weight].shape[0]
    flat = node.emit(Reshape((count * batch, size)), x)
    inputs = (flat, weight, bias) if bias else (flat, weight)
    product = node.emit(Gemm(trans_b=True), *inputs)
    return node.emit(Reshape((count, batch, hidden)), product)


@dataclass(frozen=True, slots=True)
class _LoopOver:
    """A loop over `count` iterations of `steps` steps each. collects: whether it gives the rows."""

    node: NodeReader
    cell: Cell
    given: DirectionInputs
    steps: int
    count: AnySize
    collects: bool

    def run(
        self, states: tuple[str, ...], rows: tuple[str, ...], masks: tuple[str, ...]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The last states, and the rows of h for each of the steps."""
        outer = self.node.builder
        body = GraphBuilder(f"{node_name(self.node.proto)}.steps")
        body.input("iteration", ITERATION)
        carried = self._inputs(body, "state", states)
        read = self._inputs(body, "row", rows, is_row=True)
        inside = self._inputs(body, "mask", masks, is_row=True)
        captured = (*self.given.state_weights, *self.given.others)
        taken = self._inputs(body, "weight", captured)
        made: dict[int, str] = {}
        order = range(self.steps)
        for place, number in enumerate(reversed(order) if self.given.reverse else order):
            gates = len(self.cell.gates)
            step = StepInputs(
                carried,
                read[number * gates : (number + 1) * gates],
                taken[:gates],
                taken[gates:],
            )
            builder = CellBuilder(body, body.types[carried[0]].dtype, self.node.proto.name)
            later = self.cell.step(builder, step, place % 2 == 1)
            made[number] = later[0]
            if masks:
                later, made[number] = _masked(builder, inside[number], later, carried)
            carried = later
        outputs = (*carried, *(made[number] for number in order if self.collects))
        graph = make_graph(body.name, body.inputs, outputs, body.nodes, body.constants)
        backwards = self.given.reverse
        op = Loop(
            graph,
            len(states),
            self.count,
            rows=(backwards,) * (len(rows) + len(masks)),
            collected=(backwards,) * (self.steps if self.collects else 0),
        )
        names = tuple(outer.fresh(f"{body.name}.{n}") for n in range(len(outputs)))
        inputs = (*states, *rows, *masks, *captured)
        self.node.define(GraphNode(op, inputs, names, self.node.proto.name))
        return names[: len(states)], names[len(states) :]

    def _inputs(
        self, body: GraphBuilder, base: str, values: Sequence[str], *, is_row: bool = False
    ) -> tuple[str, ...]:
        types = [self.node.builder.types[value] for value in values]
        if is_row:
            types = [TensorType(type_.dtype, type_.shape[1:]) for type_ in types]
        return tuple(body.input(body.fresh(base), type_) for type_ in types)


def _masked(
    builder: CellBuilder, mask: str, later: tuple[str, ...], before: tuple[str, ...]
) -> tuple[tuple[str, ...], str]:
    """The states where a sequence goes on, and those before where it does not; its row of h."""
    kept = tuple(
        builder.add(Where(), mask, new, old) for new, old in zip(later, before, strict=True)
    )
    return kept, builder.add(Where(), mask, later[0], builder.number(0))


def zeros(node: NodeReader, dtype: str, shape: Shape) -> str:
    """Zeros: a constant, unless a run decides how many."""
    if is_closed(shape):
        return node.table("zeros", Splat(0, dtype, closed_shape(shape)))
    return node.emit(Expand(shape), node.table("zero", Splat(0, dtype, ())))
