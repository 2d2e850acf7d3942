"""Where onnxruntime computes otherwise than ONNX says, so that a difference there is none of ours.

Each is one that ONNX's reference evaluator decides for us; `tests/graph/fuzz` asks it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx import GraphProto, ModelProto

from ..importers.onnx.nested import graphs_of


@dataclass(frozen=True, slots=True)
class KnownDeviation:
    """An operator of which onnxruntime differs. attributes: those with which it does, by name and
    value; of none, whatever they are.
    """

    operator: str
    reason: str
    attributes: tuple[tuple[str, str], ...] = ()


KNOWN: tuple[KnownDeviation, ...] = ()


def deviations_in(model: ModelProto) -> tuple[KnownDeviation, ...]:
    """Those that a model may meet."""
    return tuple(dict.fromkeys(_in_graph(model.graph)))


def _in_graph(graph: GraphProto) -> Iterator[KnownDeviation]:
    for node in graph.node:
        given = {(one.name, one.s.decode()) for one in node.attribute if one.s}
        for known in KNOWN:
            if node.op_type == known.operator and given.issuperset(known.attributes):
                yield known
        for inner in graphs_of(node):
            yield from _in_graph(inner)
