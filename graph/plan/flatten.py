"""A model as one graph without regions, and what runs where: blocks of steps within each other.

Fusion, choice and memory see all nodes of a model at once, those of regions among them, each value
under a name of its own. What a region takes from the graph around it has the name that it has
there. What no node computes, because a branch or a loop decides what it is, is an input of the flat
graph; what has to be in memory for it, an output: no group reaches from one block into another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ...tir.sizes import AnySize
from ..ir.ir import Graph, GraphNode, has_regions, make_graph
from ..regions.branch import IfElse
from ..regions.loop import Loop
from ..types import Constant, TensorType, bits_of


@dataclass(frozen=True, slots=True)
class Carried:
    """A value that a loop carries: before it, in an iteration, for the next one, behind it."""

    first: str
    now: str
    next: str
    last: str


@dataclass(frozen=True, slots=True)
class ArrayRows:
    """An array, and the row of it that an iteration reads or gives; the last one first where
    `reverse`.
    """

    array: str
    row: str
    reverse: bool


@dataclass(frozen=True, slots=True)
class FlatBranch:
    """A branch. results: the values that it gives, each from one of the blocks' outputs."""

    label: str
    condition: str
    then: FlatBlock
    otherwise: FlatBlock
    results: tuple[str, ...]

    @property
    def blocks(self) -> tuple[FlatBlock, ...]:
        """Both blocks."""
        return self.then, self.otherwise


@dataclass(frozen=True, slots=True)
class FlatLoop:
    """A loop with its number. count: how often at most, or the value that says so. condition: what
    says whether it begins, and whether it goes on.
    """

    label: str
    number: int
    count: AnySize | str | None
    begins: str | None
    goes_on: str | None
    iteration: str
    carried: tuple[Carried, ...]
    rows: tuple[ArrayRows, ...]
    collected: tuple[ArrayRows, ...]
    body: FlatBlock

    @property
    def results(self) -> tuple[str, ...]:
        """The values that it gives."""
        last = (item.last for item in self.carried)
        return (*last, *(item.array for item in self.collected))


@dataclass(frozen=True, slots=True)
class FlatBlock:
    """What runs one after the other: nodes, each under its first value, branches and loops.

    outputs: of a branch's block, what its results are.
    """

    items: tuple[str | FlatBranch | FlatLoop, ...]
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FlatModel:
    """A model without regions. inputs, outputs: of the model; those of `graph` are more where there
    are branches or loops.
    """

    graph: Graph
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    block: FlatBlock

    @property
    def has_flow(self) -> bool:
        """Whether there are branches or loops."""
        return any(not isinstance(item, str) for item in self.block.items)


def flatten(graph: Graph) -> FlatModel:
    """The flat model of a graph: the very graph where it has no regions."""
    if not has_regions(graph):
        block = FlatBlock(tuple(node.outputs[0] for node in graph.nodes))
        return FlatModel(graph, graph.inputs, graph.outputs, block)
    return _Flattener(graph).run()


def loops_in(block: FlatBlock) -> Iterator[FlatLoop]:
    """The loops of a block, and those within them."""
    for item in block.items:
        if isinstance(item, FlatLoop):
            yield item
            yield from loops_in(item.body)
        elif isinstance(item, FlatBranch):
            for inner in item.blocks:
                yield from loops_in(inner)


@dataclass(slots=True)
class _Scope:
    """A graph on its way: what its values are called, and in which block they are computed."""

    graph: Graph
    names: dict[str, str]
    items: list[str | FlatBranch | FlatLoop] = field(default_factory=list)


class _Flattener:
    def __init__(self, graph: Graph) -> None:
        self._model = graph
        self._types: dict[str, TensorType] = {}
        self._nodes: list[GraphNode] = []
        self._constants: dict[str, Constant] = {}
        self._by_bits: dict[object, str] = {}
        self._given: dict[str, TensorType] = {}  # what no node computes
        self._stored: dict[str, None] = {}
        self._homes: dict[str, _Scope] = {}  # of values: where they are computed
        self._loops = 0
        self._numbers: dict[str, int] = {}  # of a name: the last number appended to it

    def run(self) -> FlatModel:
        """The whole model."""
        graph = self._model
        scope = _Scope(graph, {})
        for name in graph.inputs:
            scope.names[name] = self._give(name, graph.types[name])
        block = self._block(scope)
        outputs = dict.fromkeys((*graph.outputs, *self._stored))
        flat = make_graph(graph.name, self._given, outputs, self._nodes, self._constants)
        return FlatModel(flat, graph.inputs, graph.outputs, block)

    def _block(self, scope: _Scope) -> FlatBlock:
        self._take_constants(scope)
        for node in scope.graph.nodes:
            inputs = tuple(scope.names[value] for value in node.inputs)
            if isinstance(node.op, IfElse):
                scope.items.append(self._branch(scope, node, node.op, inputs))
            elif isinstance(node.op, Loop):
                scope.items.append(self._loop(scope, node, node.op, inputs))
            else:
                self._plain(scope, node, inputs)
        return FlatBlock(tuple(scope.items))

    def _plain(self, scope: _Scope, node: GraphNode, inputs: tuple[str, ...]) -> None:
        for value in inputs:
            if value in self._homes and self._homes[value] is not scope:
                self._stored[value] = None
        outputs = tuple(self._named(scope, value) for value in node.outputs)
        for own, value in zip(node.outputs, outputs, strict=True):
            scope.names[own] = value
            self._types[value] = scope.graph.types[own]
            self._homes[value] = scope
        self._nodes.append(GraphNode(node.op, inputs, outputs, node.name))
        scope.items.append(outputs[0])

    def _branch(
        self, scope: _Scope, node: GraphNode, op: IfElse, inputs: tuple[str, ...]
    ) -> FlatBranch:
        condition, *captured = inputs
        results = self._results(scope, node)
        blocks: list[FlatBlock] = []
        for region in op.regions:
            inner = _Scope(region, dict(zip(region.inputs, captured, strict=True)))
            block = self._block(inner)
            blocks.append(replace(block, outputs=tuple(inner.names[v] for v in region.outputs)))
            self._store(*blocks[-1].outputs)
        self._store(condition)
        then, otherwise = blocks
        return FlatBranch(_label(node), condition, then, otherwise, results)

    def _loop(self, scope: _Scope, node: GraphNode, op: Loop, inputs: tuple[str, ...]) -> FlatLoop:
        given, taken, body = op.given(inputs), op.taken, op.body
        number, self._loops = self._loops, self._loops + 1
        results = self._results(scope, node)
        inner = _Scope(body, dict(zip(taken.captured, given.captured, strict=True)))
        assert taken.count is not None
        for name in (taken.count, *taken.carried, *taken.rows):
            inner.names[name] = self._give(self._named(inner, name), body.types[name])
        block = self._block(inner)
        made, names = op.made, inner.names
        carried = tuple(
            Carried(first, names[now], names[later], last)
            for first, now, later, last in zip(
                given.carried, taken.carried, made.carried, results[: op.carried], strict=True
            )
        )
        rows = tuple(
            ArrayRows(array, names[row], reverse)
            for array, row, reverse in zip(given.rows, taken.rows, op.rows, strict=True)
        )
        collected = tuple(
            ArrayRows(array, names[row], reverse)
            for array, row, reverse in zip(
                results[op.carried :], made.rows, op.collected, strict=True
            )
        )
        goes_on = None if made.condition is None else names[made.condition]
        count = given.count if op.counted else op.count
        self._store(*filter(None, (given.count, given.condition, goes_on)))
        self._store(*(value for item in carried for value in (item.first, item.next)))
        self._store(*(item.array for item in rows), *(item.row for item in collected))
        return FlatLoop(
            _label(node),
            number,
            count,
            given.condition,
            goes_on,
            names[taken.count],
            carried,
            rows,
            collected,
            block,
        )

    def _results(self, scope: _Scope, node: GraphNode) -> tuple[str, ...]:
        found = []
        for own in node.outputs:
            value = self._give(self._named(scope, own), scope.graph.types[own])
            scope.names[own] = value
            found.append(value)
        return tuple(found)

    def _take_constants(self, scope: _Scope) -> None:
        for own, constant in scope.graph.constants.items():
            bits = bits_of(constant)
            if bits in self._by_bits and scope.graph is not self._model:
                scope.names[own] = self._by_bits[bits]
                continue
            name = self._named(scope, own)
            self._by_bits.setdefault(bits, name)
            self._constants[name] = constant
            self._types[name] = scope.graph.types[own]
            scope.names[own] = name

    def _give(self, name: str, type_: TensorType) -> str:
        self._given[name] = self._types[name] = type_
        return name

    def _store(self, *values: str) -> None:
        for value in values:
            self._stored[value] = None

    def _named(self, scope: _Scope, own: str) -> str:
        """A name for a value: its own in the model, and one that the model does not have within."""
        if scope.graph is self._model:
            return own
        number, name = self._numbers.get(own, 0), own
        while name in self._types or name in self._model.types:
            number += 1
            name = f"{own}_{number}"
        self._numbers[own] = number
        return name


def _label(node: GraphNode) -> str:
    return node.name or node.outputs[0]
