"""Multiply unsigned bytes as signed ones, where processors multiply bytes of one sign alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.integer_sums import Bytes, moved, sums_of_filters
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ir.replacement_writer import ReplacementWriter
from ..ops.arithmetic import Add, Mul
from ..ops.base import Operator
from ..ops.convolution import IntegerConv
from ..ops.matmul import IntegerMatMul
from ..ops.reduction import IntegerSum
from ..types import Splat
from .levels import has_bytes

_STEP = 128  # between a byte without a sign and one with it


@dataclass(frozen=True, slots=True)
class SignedProducts:
    """Take 128 from unsigned data that meet signed weights, and add it to the sums.

    sum a * b   ->   sum (a - 128) * b  +  128 * sum b

    A convolution pads with its zero less 128, so that each window has all terms. What depends on
    constants is folded later. 64-bit ARM with FEAT_DotProd multiplies bytes of the same sign (sdot,
    udot); usdot, for bytes of both, came with FEAT_I8MM.
    """

    keeps_rounding: ClassVar[bool] = True
    concerns = staticmethod(has_bytes)
    needs: ClassVar[tuple[str, ...]] = ("neon+dotprod",)
    idle: ClassVar[tuple[str, ...]] = ("neon+i8mm",)

    def __call__(self, graph: Graph) -> Graph:
        found = {node.outputs[0] for node in graph.nodes if _is_mixed(graph, node)}
        if not found:
            return graph
        builder, signed = GraphBuilder.like(graph), dict[str, str]()
        for node in graph.nodes:
            if node.outputs[0] in found:
                _Writer(builder, node).write(signed)
            else:
                builder.add_node(node)
        result = builder.finish(graph.outputs)
        return rebuilt(graph, result.nodes, result.constants)


def _is_mixed(graph: Graph, node: GraphNode) -> bool:
    """Whether a node multiplies unsigned bytes by signed ones."""
    match node.op:
        case IntegerMatMul(zeros=(0, 0)) | IntegerConv(layout="NCHW"):
            return [graph.types[value].dtype for value in node.inputs] == ["uint8", "int8"]
    return False


@dataclass(frozen=True, slots=True)
class _Writer(ReplacementWriter):
    """Writes a product."""

    def write(self, signed: dict[str, str]) -> None:
        """The product of signed bytes, and what is added. signed: data that are so already."""
        data, weights = self.node.inputs
        if data not in signed:
            signed[data] = moved(self, Bytes(data), "int8").value
        product = self.emit(self._op(), signed[data], weights)
        step = self.table("step", Splat(_STEP, "int32", ()))
        lacking = self.emit(Mul(), self._sums(weights), step)
        (output,) = self.node.outputs
        self.builder.add(Add(), product, lacking, output=output, name=self.node.name)

    def _op(self) -> Operator:
        op = self.node.op
        return replace(op, zero=op.zero - _STEP) if isinstance(op, IntegerConv) else op

    def _sums(self, weights: str) -> str:
        """The sum of the weights of each output, which broadcasts to the result."""
        if isinstance(self.node.op, IntegerConv):
            return sums_of_filters(self, weights)
        return self.emit(IntegerSum((self.builder.types[weights].rank - 2,), True), weights)
