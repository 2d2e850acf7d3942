"""Rules of what prepares features: Scaler, Normalizer, Binarizer, Imputer, ArrayFeatureExtractor
and FeatureVectorizer.
"""

from __future__ import annotations

import numpy as np

from ......tir.sizes import closed
from .....errors import ModelError
from .....ops import arithmetic, functions, logic
from .....ops.gathering import Gather
from .....ops.movement import Concat, Identity, Reshape
from .....ops.reduction import ReduceMax, ReduceSum
from .....ops.slicing import Pad, Slice
from .....types import Array
from ...node import NodeReader, NotSupported
from ..conversions import converted
from ..rule import ImportRule, Result
from .scores import scalar


def _scaler(node: NodeReader) -> Result:
    """(x - offset) * scale along the last axis, in float32."""
    x = converted(node, node.value(0), "float32")
    offset, scale = (_per_feature(node, name) for name in ("offset", "scale"))
    if offset.any():
        x = node.emit(arithmetic.Sub(), x, node.table("offset", offset))
    return arithmetic.Mul(), (x, node.table("scale", scale))


def _per_feature(node: NodeReader, name: str) -> Array:
    """A number for each feature, or one for all."""
    found = np.array(node.reals(name), np.float32)
    width = node.type(0).shape[-1] if node.type(0).rank else 1
    if found.size not in (1, width):
        raise ModelError(
            f"model: attribute '{name}' of {node.title} has {found.size} elements; expected 1 or "
            f"{width}.",
            code="onnx-per-feature",
        )
    return found


def _normalizer(node: NodeReader) -> Result:
    """Each row over its largest element, the sum of its magnitudes, or the root of its squares; a
    row where that is 0 stays.
    """
    name = node.text("norm", "MAX")
    if name not in ("MAX", "L1", "L2"):
        raise NotSupported(f"norm is '{name}'; known are MAX, L1, L2")
    type_ = node.type(0)
    if type_.rank not in (1, 2):
        raise ModelError(
            f"model: {node.title} has the input {type_}; expected rows.", code="onnx-normalizer"
        )
    x, axes = converted(node, node.value(0), "float32"), (type_.rank - 1,)
    if name == "MAX":
        norm = node.emit(ReduceMax(axes), x)
    elif name == "L1":
        norm = node.emit(ReduceSum(axes), node.emit(functions.Abs(), x))
    else:
        squares = node.emit(ReduceSum(axes), node.emit(arithmetic.Mul(), x, x))
        norm = node.emit(functions.Sqrt(), squares)
    none = node.emit(logic.Equal(), norm, scalar(node, 0.0, norm))
    norm = node.emit(logic.Where(), none, scalar(node, 1.0, norm), norm)
    return arithmetic.Div(), (x, norm)


def _binarizer(node: NodeReader) -> Result:
    """1 where x is above the threshold, else 0."""
    limit, type_ = node.real("threshold", 0.0), node.type(0)
    if not type_.is_float:
        limit = float(np.floor(limit))
    above = node.emit(
        logic.Less(), scalar(node, _fitting(limit, type_.dtype), node.value(0)), node.value(0)
    )
    return functions.Cast(type_.dtype), (above,)


def _fitting(value: float, dtype: str) -> float | int:
    """A number in an element type; of integers, the nearest that there is."""
    if dtype.startswith("float"):
        return value
    limits = np.iinfo(dtype)
    return int(min(max(value, limits.min), limits.max))


def _imputer(node: NodeReader) -> Result:
    """The value of its feature, or the one for all, in place of each element that is missing."""
    type_, x = node.type(0), node.value(0)
    kind = "floats" if type_.is_float else "int64s"
    name, replaced = f"imputed_value_{kind}", f"replaced_value_{kind[:-1]}"
    found = (node.reals if type_.is_float else node.integers)(name)
    values = np.array(found, np.float32 if type_.is_float else np.int64).astype(type_.dtype)
    if values.size not in (1, type_.shape[-1] if type_.rank else 1):
        raise ModelError(
            f"model: {node.title} has {values.size} values for {type_}; expected 1, or 1 for each "
            "feature.",
            code="onnx-imputer",
        )
    wanted = node.real(replaced, 0.0) if type_.is_float else node.integer(replaced, 0)
    if wanted != wanted:
        missing = node.emit(logic.IsNaN(), x)
    else:
        missing = node.emit(logic.Equal(), x, scalar(node, wanted, x))
    return logic.Where(), (missing, node.table("imputed", values), x)


def _extractor(node: NodeReader) -> Result:
    """The columns with these numbers; of a vector, as one row."""
    x, indices = node.type(0), node.type(1)
    if not x.rank or indices.dtype != "int64":
        raise ModelError(
            f"model: {node.title} has the inputs {x} and {indices}; expected rows of features and "
            "int64.",
            code="onnx-extractor",
        )
    places = node.emit(Reshape((indices.elements,)), node.value(1))
    if x.rank > 1:
        return Gather(x.rank - 1), (node.value(0), places)
    taken = node.emit(Gather(0), node.value(0), places)
    return Reshape((1, indices.elements)), (taken,)


def _vectorizer(node: NodeReader) -> Result:
    """The inputs side by side, each cut, or filled up with 0, to its number of features."""
    widths, parts = node.integers("inputdimensions"), list[str]()
    node.check_present(node.inputs)
    if len(widths) != len(node.inputs) or min(widths, default=0) < 0:
        raise ModelError(
            f"model: {node.title} has {len(node.inputs)} inputs of {list(widths)} features; "
            "expected a number for each.",
            code="onnx-vectorizer",
        )
    for number, width in enumerate(widths):
        type_, value = node.type(number), converted(node, node.value(number), "float32")
        if type_.rank not in (1, 2):
            raise NotSupported(f"input {number} is {type_}; known are vectors and rows")
        if type_.rank == 1:
            value = node.emit(Reshape((*type_.shape, 1)), value)
        rows, own = node.builder.types[value].shape[0], closed((*type_.shape, 1)[1])
        if width < own:
            value = node.emit(Slice((0, 0), (rows, width), (1, 1)), value)
        elif width > own:
            value = node.emit(Pad((0, 0), (0, width - own)), value)
        parts.append(value)
    return (Identity() if len(parts) == 1 else Concat(1)), tuple(parts)


_IMPUTER = (
    "imputed_value_floats",
    "imputed_value_int64s",
    "replaced_value_float",
    "replaced_value_int64",
)

RULES: dict[str, ImportRule] = {
    "ai.onnx.ml.ArrayFeatureExtractor": ImportRule((1,), (), _extractor),
    "ai.onnx.ml.Binarizer": ImportRule((1,), ("threshold",), _binarizer),
    "ai.onnx.ml.FeatureVectorizer": ImportRule((1,), ("inputdimensions",), _vectorizer),
    "ai.onnx.ml.Imputer": ImportRule((1,), _IMPUTER, _imputer),
    "ai.onnx.ml.Normalizer": ImportRule((1,), ("norm",), _normalizer),
    "ai.onnx.ml.Scaler": ImportRule((1,), ("offset", "scale"), _scaler),
}
