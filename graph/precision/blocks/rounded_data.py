"""Round the data of products with weights of few bits to bytes, where a model or its user permits
it and the target multiplies bytes or numbers of 16 bits in groups.

What comes out is another model, beside which an engine is verified: it says in RoundBlocks what is
rounded. A strict build, and one for another target, multiplies floats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ....tir.instructions.tensor_intrinsics import VPDPBUSD, VPMADDWD
from ....tir.target.target import Target
from ...ir.build import GraphBuilder
from ...ir.ir import Graph, GraphNode, rebuilt
from ...ops.block_matmul import BlockMatMul
from ...ops.functions import Cast
from ...ops.rounded_blocks import (
    MOST_STEPS,
    POINTS,
    RoundBlocks,
    RoundedBlockMatMul,
    lane_words,
)
from ...passes.dead_code import DeadCode
from ...types import array_of, owned

KINDS = (("int8", VPDPBUSD), ("int16", VPMADDWD))  # of levels of data, the fastest first


@dataclass(frozen=True, slots=True)
class RoundedData:
    """A graph, and what is said of the products whose data may be rounded."""

    graph: Graph
    notes: tuple[str, ...]


def round_data(graph: Graph, target: Target, *, strict: bool) -> RoundedData:
    """Replace products whose data may be rounded by ones of bytes.

    y = BlockMatMul(x, ...)  ->  y = RoundedBlockMatMul(*RoundBlocks(x), ...)

    Products of one value round it once. Products within branches and loops multiply floats.
    """
    found = [node for node in graph.nodes if isinstance(node.op, BlockMatMul) and node.op.data]
    if not found:
        return RoundedData(graph, ())
    kind = next((name for name, unit in KINDS if unit.is_on(target)), "")
    reasons = {node.outputs[0]: _why_floats(graph, node, kind, target, strict) for node in found}
    taken = [node for node in found if not reasons[node.outputs[0]]]
    said = [
        f"data of {count} product(s) with weights of few bits may be rounded to bytes, and stay "
        f"floats: {reason}"
        for reason, count in Counter(filter(None, reasons.values())).items()
    ]
    if not taken:
        return RoundedData(graph, tuple(said))
    said.insert(
        0,
        f"data of {len(taken)} product(s) with weights of few bits are rounded to bytes, each "
        "block with a scale, as the model permits; the engine is compared with that",
    )
    made = _Writer(graph, kind, taken).write()
    return RoundedData(made, tuple(said))


def _why_floats(graph: Graph, node: GraphNode, kind: str, target: Target, strict: bool) -> str:
    """Why a product multiplies floats; empty where it need not."""
    assert isinstance(node.op, BlockMatMul)
    if strict:
        return "the build is strict"
    if not kind:
        return f"'{target}' has no instruction that multiplies bytes in groups"
    if any(value not in graph.constants for value in node.inputs[1:]):
        return "a run computes the weights"
    if graph.types[node.inputs[0]].dtype == "float64":
        return "they are float64"
    if node.op.group > MOST_STEPS:
        return f"a block has more than {MOST_STEPS} steps"
    if node.op.in_word % POINTS[kind]:
        return f"{POINTS[kind]} levels of {node.op.bits} bits are no part of a word"
    return ""


class _Writer:
    def __init__(self, graph: Graph, kind: str, taken: Sequence[GraphNode]) -> None:
        self.graph, self.kind = graph, kind
        self.taken = {node.outputs[0] for node in taken}
        self.builder = GraphBuilder.like(graph)
        self.rounded: dict[tuple[str, int], tuple[str, ...]] = {}  # by value and group
        self.tables: dict[tuple[str, int], str] = {}  # by constant and bits, 0 for numbers

    def write(self) -> Graph:
        """The graph with products of bytes."""
        for node in self.graph.nodes:
            if node.outputs[0] in self.taken:
                self._write(node)
            else:
                self.builder.add_node(node)
        made = self.builder.finish(self.graph.outputs)
        return DeadCode()(rebuilt(self.graph, made.nodes, made.constants))

    def _write(self, node: GraphNode) -> None:
        assert isinstance(node.op, BlockMatMul)
        op, (x, levels, *numbers), (last,) = node.op, node.inputs, node.outputs
        product = RoundedBlockMatMul(op.bits, op.group)
        operands = (
            *self._round(x, op.group, node.name),
            self._words(levels, op.bits),
            *map(self._numbers, numbers),
        )
        own = self.graph.types[x].dtype
        value = last if own == "float32" else self.builder.fresh(f"{last}.wide")
        self.builder.add(product, *operands, output=value, name=node.name)
        if value != last:
            self.builder.add(Cast(own), value, output=last, name=node.name)

    def _round(self, x: str, group: int, name: str) -> tuple[str, ...]:
        """Levels, scales and sums of a value."""
        key = x, group
        if key not in self.rounded:
            builder, wide = self.builder, x
            if self.graph.types[x].dtype != "float32":
                wide = builder.add(Cast("float32"), x, output=builder.fresh(f"{x}.wide"), name=name)
            outputs = tuple(builder.fresh(f"{x}.{what}") for what in ("levels", "scales", "sums"))
            builder.add_node(GraphNode(RoundBlocks(group, self.kind), (wide,), outputs, name))
            self.rounded[key] = outputs
        return self.rounded[key]

    def _words(self, value: str, bits: int) -> str:
        """Levels in the order in which an instruction takes them."""
        key = value, bits
        if key not in self.tables:
            words = lane_words(array_of(self.graph.constants[value]), bits, POINTS[self.kind])
            name = self.builder.fresh(f"{value}.lanes")
            self.tables[key] = self.builder.constant(name, owned(words))
        return self.tables[key]

    def _numbers(self, value: str) -> str:
        """Scales or zeros as float32."""
        constant = self.graph.constants[value]
        if self.graph.types[value].dtype == "float32":
            return value
        key = value, 0
        if key not in self.tables:
            numbers = array_of(constant).astype("float32")
            name = self.builder.fresh(f"{value}.wide")
            self.tables[key] = self.builder.constant(name, owned(numbers))
        return self.tables[key]
