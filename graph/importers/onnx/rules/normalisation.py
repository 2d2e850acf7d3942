"""Rules of normalisation."""

from __future__ import annotations

from .....tir.dtype import dtype
from .....tir.sizes import closed
from ....errors import ModelError
from ....ops import arithmetic, layer_norm, movement, normalisation, reduction
from ....ops.base import Operator, normal_axis
from ....ops.functions import Cast, Sqrt
from ..node import NodeReader, NotSupported
from .conversions import converted
from .rule import Application, ImportRule, Result, Several


def _batch_normalization(node: NodeReader) -> Result:
    if node.integer("spatial", 1) != 1:
        raise NotSupported("spatial is 0")
    op = normalisation.BatchNormalization(node.real("epsilon", 1e-5))
    if node.flag("training_mode"):
        return _trained(node, op)
    if extra := [name for name in node.proto.output[1:] if name]:
        raise NotSupported(f"its output '{extra[0]}' is used, which training_mode 1 alone gives")
    return _in_one_type(node, op, 0)


def _trained(node: NodeReader, op: normalisation.BatchNormalization) -> Result:
    """By the mean and the variance of the batch, which the running ones approach."""
    x, statistic = node.type(0), node.type(3).dtype
    if x.rank < 2:
        raise NotSupported(f"its data are {x}; expected a channel axis")
    wide = x.dtype if dtype(x.dtype).bits > 16 else "float32"
    axes = tuple(axis for axis in range(x.rank) if axis != 1)
    value = converted(node, node.value(0), wide)
    mean = node.emit(reduction.ReduceMean(axes), value)
    apart = node.emit(arithmetic.Sub(), value, mean)
    square = node.emit(arithmetic.Mul(), apart, apart)
    found = (
        node.emit(movement.Reshape(x.shape[1:2]), mean),
        node.emit(reduction.ReduceMean(axes, False), square),
    )
    given = (converted(node, node.value(position), wide) for position in (1, 2))
    scaled = node.emit(op, value, *given, *found)
    running = (_running(node, n, converted(node, one, statistic)) for n, one in enumerate(found, 3))
    shown = (converted(node, scaled, x.dtype), *running)
    return Several(tuple((movement.Identity(), (one,)) for one in shown))


def _running(node: NodeReader, position: int, found: str) -> str:
    """The running statistic, and a part of what was found."""
    momentum = node.real("momentum", 0.9)
    kept = node.emit(arithmetic.Mul(), node.value(position), node.number(momentum, position))
    added = node.emit(arithmetic.Mul(), found, node.number(1 - momentum, position))
    return node.emit(arithmetic.Add(), kept, added)


def _lrn(node: NodeReader) -> Result:
    alpha, beta, bias = node.real("alpha", 1e-4), node.real("beta", 0.75), node.real("bias", 1.0)
    return normalisation.LRN(node.integer("size"), alpha, beta, bias), node.inputs


def _layer_normalization(node: NodeReader) -> Result:
    axis, epsilon = _row_start(node)
    return layer_norm.LayerNormalization(axis, epsilon), node.inputs


def _rms_normalization(node: NodeReader) -> Result:
    axis, epsilon = _row_start(node)
    return _in_one_type(node, layer_norm.RMSNormalization(axis, epsilon), 1)


def _in_one_type(node: NodeReader, op: Operator, like: int) -> Application:
    """An operator of inputs that may have several types: computed in the widest of them, with a
    result of the type of the input at `like`.
    """
    types = [node.type(position).dtype for position in range(len(node.inputs))]
    widest = max(types, key=lambda name: dtype(name).bits)
    if set(types) == {widest}:
        return op, node.inputs
    widest = widest if dtype(widest).bits > 16 else "float32"
    wide = (converted(node, value, widest) for value in node.inputs)
    return Cast(types[like]), (node.emit(op, *wide),)


def _mean_variance_normalization(node: NodeReader) -> Result:
    """(x - E[x]) / (sqrt(E[x * x] - E[x] * E[x]) + 1e-9), as ONNX spells it out."""
    rank = node.type(0).rank
    axes = node.integers("axes", (0, 2, 3))
    mean = reduction.ReduceMean(
        tuple(sorted({normal_axis(movement.Identity(), axis, rank) for axis in axes})), True
    )
    x = node.value(0)
    average = node.emit(mean, x)
    squares = node.emit(mean, node.emit(arithmetic.Mul(), x, x))
    variance = node.emit(arithmetic.Sub(), squares, node.emit(arithmetic.Mul(), average, average))
    deviation = node.emit(arithmetic.Add(), node.emit(Sqrt(), variance), node.number(1e-9))
    return arithmetic.Div(), (node.emit(arithmetic.Sub(), x, average), deviation)


def _row_start(node: NodeReader) -> tuple[int, float]:
    """The first axis that is normalised over, and epsilon."""
    if node.integer("stash_type", 1) != 1:
        raise NotSupported(f"stash_type is {node.integer('stash_type')}")
    axis = normal_axis(movement.Identity(), node.integer("axis", -1), node.type(0).rank)
    return axis, node.real("epsilon", 1e-5)


def _instance_normalization(node: NodeReader) -> Result:
    """A group for each channel."""
    x = node.type(0)
    return _grouped(node, closed(x.shape[1]) if x.rank > 1 else 0)


def _group_normalization(node: NodeReader) -> Result:
    if node.integer("stash_type", 1) != 1:
        raise NotSupported(f"stash_type is {node.integer('stash_type')}")
    return _grouped(node, node.integer("num_groups"))


def _grouped(node: NodeReader, groups: int) -> Result:
    """[n, c, ...] -> [n, groups, c / groups, ...], normalised over all axes behind the groups.

    Scale and bias have a number for each channel, or for each group in old opsets.
    """
    x, scale = node.type(0), node.type(1)
    channels = closed(x.shape[1]) if x.rank > 1 else 0
    wanted = groups if node.version == 18 else channels
    affine = all(node.type(position).shape == (wanted,) for position in (1, 2))
    if groups < 1 or channels % groups or not affine:
        raise ModelError(
            f"model: {node.title} has {groups} groups, data {x}, scale {scale} and bias "
            f"{node.type(2)}; expected groups of equal size, with {wanted} numbers in scale and "
            "bias.",
            code="onnx-groups",
        )
    members = channels // groups
    shape = (x.shape[0], groups, members, *x.shape[2:])
    numbers = (groups, wanted // groups, *(1 for _ in x.shape[2:]))
    split = node.emit(movement.Reshape(shape), node.value(0))
    given = (node.emit(movement.Reshape(numbers), node.value(position)) for position in (1, 2))
    op = layer_norm.LayerNormalization(2, node.real("epsilon", 1e-5))
    return movement.Reshape(x.shape), (node.emit(op, split, *given),)


RULES: dict[str, ImportRule] = {
    "BatchNormalization": ImportRule(
        (7, 9, 14, 15),
        ("epsilon", "momentum", "spatial", "training_mode"),
        _batch_normalization,
        None,
    ),
    "GroupNormalization": ImportRule(
        (18, 21), ("epsilon", "num_groups", "stash_type"), _group_normalization
    ),
    "InstanceNormalization": ImportRule((6, 22), ("epsilon",), _instance_normalization),
    "LayerNormalization": ImportRule(
        (1, 17), ("axis", "epsilon", "stash_type"), _layer_normalization, foreign=True
    ),
    "LRN": ImportRule((1, 13), ("alpha", "beta", "bias", "size"), _lrn),
    "MeanVarianceNormalization": ImportRule((9, 13), ("axes",), _mean_variance_normalization),
    "RMSNormalization": ImportRule((23,), ("axis", "epsilon", "stash_type"), _rms_normalization),
    "SimplifiedLayerNormalization": ImportRule(
        (1,), ("axis", "epsilon", "stash_type"), _rms_normalization, foreign=True
    ),
}
