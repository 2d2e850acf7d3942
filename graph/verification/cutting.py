"""Models cut out of a model: with values within as outputs, or some of its nodes alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from ...runtime.arrays import Array
from ..importers.onnx.nested import reads_of


def inner_values(model: ModelProto) -> tuple[str, ...]:
    """What the nodes of a model compute and somebody reads, node by node, in their order, which is
    topological; not what graphs within nodes do.
    """
    read = {name for node in model.graph.node for name in reads_of(node)}
    read.update(item.name for item in model.graph.output)
    return tuple(name for node in model.graph.node for name in node.output if name and name in read)


def with_outputs(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """The model whose outputs are these values, without nodes and weights that none of them needs;
    all inputs stay. The outputs have their names alone: whoever reads the model finds their types.
    """
    needed, kept = set(names), []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(reads_of(node))
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [item for item in model.graph.input if item.name not in weights - needed]
    outputs = [ValueInfoProto(name=name) for name in names]
    return with_graph(model, kept[::-1], inputs, outputs, needed)


def node_alone(model: ModelProto, node: NodeProto, arrays: Mapping[str, Array]) -> ModelProto:
    """A model of one node. arrays: of what is computed before it, which become its inputs."""
    weights = {tensor.name for tensor in model.graph.initializer}
    reads = [name for name in dict.fromkeys(reads_of(node)) if name and name not in weights]
    declared = {item.name: item for item in model.graph.input}
    inputs = [
        declared[name] if name in declared else value_of(name, arrays[name]) for name in reads
    ]
    outputs = [ValueInfoProto(name=name) for name in node.output if name]
    return with_graph(model, [node], inputs, outputs, set(reads_of(node)))


def value_of(name: str, array: Array) -> ValueInfoProto:
    """A value of the type and the shape of an array."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape)


def with_graph(
    model: ModelProto,
    nodes: Iterable[NodeProto],
    inputs: Iterable[ValueInfoProto],
    outputs: Iterable[ValueInfoProto],
    needed: set[str],
    weights: Mapping[str, Array] | None = None,
) -> ModelProto:
    """The model with these nodes, inputs and outputs; needed: what keeps its weights. weights:
    further ones.
    """
    made = ModelProto()
    made.CopyFrom(_without_graph(model))
    graph = GraphProto(name=model.graph.name or "model")
    graph.node.extend(nodes)
    graph.input.extend(inputs)
    graph.output.extend(outputs)
    graph.initializer.extend(one for one in model.graph.initializer if one.name in needed)
    graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in (weights or {}).items())
    made.graph.CopyFrom(graph)
    return made


def _without_graph(model: ModelProto) -> ModelProto:
    """All of a model but its graph."""
    made = ModelProto(ir_version=model.ir_version)
    made.opset_import.extend(model.opset_import)
    made.functions.extend(model.functions)
    return made
