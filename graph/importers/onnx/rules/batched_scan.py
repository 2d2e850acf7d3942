"""Scan as opset 8 has it: a scan of each element of a batch, whose sequences may end early."""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.build import GraphBuilder
from ....ir.draws import drawing_nodes
from ....ir.ir import Graph, GraphNode, make_graph
from ....ops.logic import Less, Where
from ....ops.scattering import ReverseSequence
from ....regions.loop import ITERATION, Loop
from ....types import Splat, TensorType
from ..node import NodeReader, NotSupported, Region
from .rule import Result, Several


def batched_scan(node: NodeReader) -> Result:
    """A loop over the batch, whose body is the scan. A sequence that ends early keeps its states
    from there on, and its outputs are 0.
    """
    number, given = node.integer("num_scan_inputs"), node.inputs[1:]
    states = len(given) - number
    if number < 1 or states < 0:
        raise NotSupported(f"it scans {number} of {len(given)} inputs; expected 1 to {len(given)}")
    node.check_present(given)
    arrays = _turned(node, given[states:])
    types = [node.builder.types[value] for value in (*given[:states], *arrays)]
    lengths = {type_.shape[:2] for type_ in types[states:]}
    batches = {type_.shape[:1] for type_ in types}
    if min(type_.rank for type_ in types[states:]) < 2 or len(lengths) > 1 or len(batches) > 1:
        raise NotSupported(
            f"it scans {', '.join(map(str, types[states:]))} from "
            f"{', '.join(map(str, types[:states])) or 'no state'}; expected one batch, and as many "
            "rows of each"
        )
    ((batch, steps),) = lengths
    rows = [TensorType(t.dtype, t.shape[1 if n < states else 2 :]) for n, t in enumerate(types)]
    region = node.region("body", rows)
    if drawing_nodes(region.graph):
        raise NotSupported(
            "its iterations would all draw the same random numbers; expected what they draw as an "
            "input of the loop"
        )
    collected = len(region.graph.outputs) - states
    if collected < 0:
        raise NotSupported(
            f"its body gives {len(region.graph.outputs)} values; expected {states} states first"
        )
    ends = node.has(0)
    scan = Loop(
        _ending(region.graph, states) if ends else _counting(region.graph),
        states,
        steps,
        rows=(False,) * number if ends else _backwards(node, number),
        collected=(False,) * collected,
    )
    made = len(region.graph.outputs)
    op = Loop(
        _element(node, scan, types, region, ends=ends),
        0,
        batch,
        rows=(False,) * (len(types) + ends),
        collected=(False,) * made,
    )
    inputs = (*given[:states], *arrays, *node.inputs[: int(ends)], *region.captured)
    node.define(GraphNode(op, inputs, node.outputs(made), node.proto.name))
    return Several(())


def _backwards(node: NodeReader, number: int) -> tuple[bool, ...]:
    return tuple(map(bool, node.as_many("directions", (0,) * number)))


def _turned(node: NodeReader, arrays: Sequence[str]) -> list[str]:
    """The arrays; where sequences end early, those that are read backwards from there on."""
    if not node.has(0):
        return list(arrays)
    pairs = zip(arrays, _backwards(node, len(arrays)), strict=True)
    reversing = ReverseSequence(1, 0)
    return [node.emit(reversing, v, node.value(0)) if back else v for v, back in pairs]


def _counting(graph: Graph) -> Graph:
    """The body with the number of the iteration as its first input."""
    inputs = {_fresh(graph, "iteration"): ITERATION} | _inputs(graph)
    return make_graph(graph.name, inputs, graph.outputs, graph.nodes, graph.constants)


def _ending(graph: Graph, states: int) -> Graph:
    """The body of a sequence that ends early: how long it is, one int64, is the last input."""
    number, length, goes_on = (_fresh(graph, name) for name in ("iteration", "length", "goes_on"))
    inputs = {number: ITERATION} | _inputs(graph) | {length: ITERATION}
    nodes = [*graph.nodes, GraphNode(Less(), (number, length), (goes_on,))]
    constants, outputs = dict(graph.constants), list[str]()
    for n, value in enumerate(graph.outputs):
        kept = _fresh(graph, f"kept{n}")
        if n < states:
            other = graph.inputs[n]
        else:
            other, dtype = _fresh(graph, f"none{n}"), graph.types[value].dtype
            constants[other] = Splat(False if dtype == "bool" else 0, dtype, ())
        nodes.append(GraphNode(Where(), (goes_on, value, other), (kept,)))
        outputs.append(kept)
    return make_graph(graph.name, inputs, outputs, nodes, constants)


def _element(
    node: NodeReader, scan: Loop, types: Sequence[TensorType], region: Region, *, ends: bool
) -> Graph:
    """The scan of one element of the batch."""
    builder = GraphBuilder(f"{region.graph.name}.batch")
    builder.input("number", ITERATION)
    rows = [
        builder.input(f"row{n}", TensorType(type_.dtype, type_.shape[1:]))
        for n, type_ in enumerate(types)
    ]
    length = [builder.input("length", ITERATION)] if ends else []
    outer = node.builder.types
    captured = [builder.input(f"outer{n}", outer[v]) for n, v in enumerate(region.captured)]
    made = tuple(f"made{n}" for n in range(len(region.graph.outputs)))
    builder.add_node(GraphNode(scan, (*rows, *captured, *length), made))
    return builder.finish(made)


def _inputs(graph: Graph) -> dict[str, TensorType]:
    return {value: graph.types[value] for value in graph.inputs}


def _fresh(graph: Graph, name: str) -> str:
    while name in graph.types:
        name += "_"
    return name
