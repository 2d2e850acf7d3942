"""Models of opsets from before the rules, brought to the oldest one that these know by ONNX's own
converter.

What it gets wrong is spelled out first: before opset 7 the second operand of a broadcast may name
the axis of the first where its own begin, and the converter adds one axis too many behind those;
and several slopes of a PRelu are those of the channels, which it forgets.
"""

from __future__ import annotations

from onnx import ModelProto, NodeProto, helper
from onnx.shape_inference import InferenceError, infer_shapes
from onnx.version_converter import ConvertError, convert_version

from .node import attribute_names, node_name

OLDEST = 7  # the opset from which on the rules know the operators
_BROADCASTING = frozenset(
    ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
)


class CannotConvert(Exception):
    """A model stays as old as it is; the text says why."""


def converted(proto: ModelProto) -> ModelProto:
    """A model of opset 1 to 6 as one of opset 7. Raises: CannotConvert."""
    old = ModelProto()
    old.CopyFrom(proto)
    try:
        _spell_out_axes(old)
        return convert_version(old, OLDEST)
    except (ConvertError, InferenceError, RuntimeError, ValueError) as error:
        lines = str(error).splitlines() or [""]
        raise CannotConvert(f"onnx.version_converter says: {lines[0][:200]}") from error


def _spell_out_axes(proto: ModelProto) -> None:
    """Give second operands whose axes begin within those of the first all axes behind them."""
    ranks: dict[str, int] | None = None
    nodes: list[NodeProto] = []
    for node in proto.graph.node:
        given = attribute_names(node)
        if node.op_type in _BROADCASTING and "axis" in given and len(node.input) == 2:
            ranks = _ranks(proto) if ranks is None else ranks
            nodes.extend(_with_all_axes(node, given["axis"].i, ranks))
        elif node.op_type == "PRelu" and len(node.input) == 2:
            ranks = _ranks(proto) if ranks is None else ranks
            nodes.extend(_with_slopes_of_channels(node, ranks))
        else:
            nodes.append(node)
    if ranks is not None:
        copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        proto.graph.ClearField("node")
        proto.graph.node.extend(copies)


def _with_all_axes(node: NodeProto, axis: int, ranks: dict[str, int]) -> list[NodeProto]:
    unknown = [name for name in node.input if name not in ranks]
    if unknown:
        raise CannotConvert(
            f"node '{node_name(node)}' ({node.op_type}) broadcasts along axis {axis}, and nobody "
            f"says how many axes '{unknown[0]}' has"
        )
    first, second = (ranks[name] for name in node.input)
    begin = axis + first if axis < 0 else axis
    if not 0 <= begin <= first - second:
        raise CannotConvert(
            f"node '{node_name(node)}' ({node.op_type}) broadcasts '{node.input[1]}', of {second} "
            f"axes, along axis {axis} of '{node.input[0]}', of {first}"
        )
    made = NodeProto()
    made.CopyFrom(node)
    made.ClearField("attribute")
    made.attribute.append(helper.make_attribute("broadcast", 1))
    return _widened(made, second, first - begin - second)


def _with_slopes_of_channels(node: NodeProto, ranks: dict[str, int]) -> list[NodeProto]:
    """Axis 1 is that of the channels. Where nobody says how many axes there are, the slope is taken
    to be one.
    """
    first, second = (ranks.get(name, 0) for name in node.input)
    made = NodeProto()
    made.CopyFrom(node)
    return _widened(made, second, first - 1 - second if second == 1 else 0)


def _widened(made: NodeProto, second: int, behind: int) -> list[NodeProto]:
    """A node whose second operand, of `second` axes, gets so many more behind these."""
    if behind <= 0:
        return [made]
    wide = f"{node_name(made)}.{made.input[1]}"
    axes = list(range(second, second + behind))
    widening = helper.make_node("Unsqueeze", [made.input[1]], [wide], axes=axes)
    made.input[1] = wide
    return [widening, made]


def _ranks(proto: ModelProto) -> dict[str, int]:
    """How many axes the values have of which that is known."""
    graph = infer_shapes(proto).graph
    found = {item.name: len(item.dims) for item in graph.initializer}
    for item in (*graph.input, *graph.value_info, *graph.output):
        if item.type.tensor_type.HasField("shape"):
            found[item.name] = len(item.type.tensor_type.shape.dim)
    return found
