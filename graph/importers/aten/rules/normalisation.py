"""Rules of normalisations with the statistics of a layer, a group or a training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....tir.sizes import AnySize
from ....ops.arithmetic import Div, Mul
from ....ops.functions import Sqrt
from ....ops.reduction import ReduceSum
from ...onnx.node import NotSupported
from ..rule import Rule
from ..writer import AtenValue, AtenWriter

_EVAL = "model.eval() before the export."


def layer_norm(
    w: AtenWriter,
    input: AtenValue,
    normalized_shape: Sequence[AnySize],
    weight: AtenValue | None = None,
    bias: AtenValue | None = None,
    eps: float = 1e-5,
) -> AtenValue:
    return _normalised(w, input, normalized_shape, weight, bias, eps, 1)[0]


def _native_layer_norm(
    w: AtenWriter,
    input: AtenValue,
    normalized_shape: Sequence[AnySize],
    weight: AtenValue | None,
    bias: AtenValue | None,
    eps: float,
) -> Sequence[AtenValue]:
    return _normalised(w, input, normalized_shape, weight, bias, eps, w.results)


def _normalised(
    w: AtenWriter,
    x: AtenValue,
    shape: Sequence[AnySize],
    weight: AtenValue | None,
    bias: AtenValue | None,
    eps: float,
    outputs: int,
) -> Sequence[AtenValue]:
    axis = x.rank - len(shape)
    scale = weight or w.filled(shape, 1, x.dtype)
    return w.spell_all("LayerNormalization", outputs, x, scale, bias, axis=axis, epsilon=eps)


def _rms_norm(
    w: AtenWriter,
    input: AtenValue,
    normalized_shape: Sequence[AnySize],
    weight: AtenValue | None = None,
    eps: float | None = None,
) -> AtenValue:
    """Without an epsilon it is the smallest step of the type above 1."""
    axis = input.rank - len(normalized_shape)
    scale = weight or w.filled(normalized_shape, 1, input.dtype)
    own = float(np.finfo(input.dtype).eps) if eps is None else eps
    return w.spell("RMSNormalization", input, scale, axis=axis, epsilon=own)


def _group_norm(
    w: AtenWriter,
    input: AtenValue,
    num_groups: int,
    weight: AtenValue | None = None,
    bias: AtenValue | None = None,
    eps: float = 1e-5,
) -> AtenValue:
    scale = weight or w.filled(input.shape[1:2], 1, input.dtype)
    shift = bias or w.filled(input.shape[1:2], 0, input.dtype)
    return w.spell("GroupNormalization", input, scale, shift, num_groups=num_groups, epsilon=eps)


def _batch_norm(
    w: AtenWriter,
    input: AtenValue,
    weight: AtenValue | None,
    bias: AtenValue | None,
    running_mean: AtenValue | None,
    running_var: AtenValue | None,
    training: bool,
    momentum: float,
    eps: float,
) -> AtenValue:
    if training:
        raise NotSupported("it normalises with the statistics of each batch, as in training", _EVAL)
    if running_mean is None or running_var is None:
        raise NotSupported("it has no statistics of a training")
    channels = input.shape[1:2]
    scale = weight or w.filled(channels, 1, input.dtype)
    shift = bias or w.filled(channels, 0, input.dtype)
    return w.spell(
        "BatchNormalization", input, scale, shift, running_mean, running_var, epsilon=eps
    )


def _native_batch_norm(
    w: AtenWriter,
    input: AtenValue,
    weight: AtenValue | None,
    bias: AtenValue | None,
    running_mean: AtenValue,
    running_var: AtenValue,
    momentum: float,
    eps: float,
) -> list[AtenValue]:
    made = _batch_norm(w, input, weight, bias, running_mean, running_var, False, momentum, eps)
    nothing = w.filled((0,), 0, input.dtype)
    return [made, nothing, nothing]


def _instance_norm(
    w: AtenWriter,
    input: AtenValue,
    weight: AtenValue | None,
    bias: AtenValue | None,
    running_mean: AtenValue | None,
    running_var: AtenValue | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> AtenValue:
    if not use_input_stats:
        return _batch_norm(w, input, weight, bias, running_mean, running_var, False, momentum, eps)
    channels = input.shape[1:2]
    scale = weight or w.filled(channels, 1, input.dtype)
    shift = bias or w.filled(channels, 0, input.dtype)
    return w.spell("InstanceNormalization", input, scale, shift, epsilon=eps)


def _weight_norm(w: AtenWriter, v: AtenValue, g: AtenValue, dim: int = 0) -> AtenValue:
    """A weight whose length over all axes but one is `g`."""
    axes = tuple(axis for axis in range(v.rank) if axis != v.axis(dim))
    total = w.emit(ReduceSum(axes, True), w.emit(Mul(), v, v))
    return w.emit(Mul(), v, w.emit(Div(), g, w.emit(Sqrt(), total)))


def _native_group_norm(
    w: AtenWriter,
    input: AtenValue,
    weight: AtenValue | None,
    bias: AtenValue | None,
    N: AnySize,
    C: AnySize,
    HxW: AnySize,
    group: int,
    eps: float,
) -> list[AtenValue | None]:
    """The statistics, which only training reads, are left out."""
    return [_group_norm(w, input, group, weight, bias, eps), None, None]


def _batch_statistics(
    w: AtenWriter,
    input: AtenValue,
    weight: AtenValue | None,
    bias: AtenValue | None,
    training: bool,
    momentum: float,
    eps: float,
) -> AtenValue:
    raise NotSupported("it normalises with the statistics of each batch, as in training", _EVAL)


RULES: dict[str, Rule] = {
    "_native_batch_norm_legit_no_training": _native_batch_norm,
    "_native_batch_norm_legit.no_stats": _batch_statistics,
    "_weight_norm": _weight_norm,
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
    "instance_norm": _instance_norm,
    "layer_norm": layer_norm,
    "native_group_norm": _native_group_norm,
    "native_layer_norm": _native_layer_norm,
    "rms_norm": _rms_norm,
}
