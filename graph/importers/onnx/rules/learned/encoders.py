"""Rules of what turns values into others, LabelEncoder and OneHotEncoder, for numbers; what makes
maps or reads strings is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .....errors import ModelError
from .....ops import arithmetic, functions, logic
from .....ops.gathering import Gather
from .....ops.movement import Reshape
from .....ops.ranking import ArgMax
from .....ops.reduction import ReduceMax
from .....types import Array, Splat
from ...node import NodeReader, NotSupported
from ..conversions import converted
from ..rule import Application, ImportRule, Result

_SPARSE = 16  # times as many places as keys, at most, that a table of whole numbers has
_STRINGS = "it reads or gives strings"
_NUMBERS = "encode strings before the model: tilewright computes with numbers."


def _label_encoder(node: NodeReader) -> Result:
    """The value of the first key that is equal, as a NaN is to another from version 4 on; else the
    default.
    """
    keys, values = _numbers(node, "keys"), _numbers(node, "values")
    if keys.size != values.size or not keys.size:
        raise ModelError(
            f"model: {node.title} has {keys.size} keys and {values.size} values; expected as many, "
            "and at least one.",
            code="onnx-label-encoder",
        )
    keys, default = keys.astype(node.type(0).dtype), _default(node, values.dtype.name)
    missing = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(keys.size, bool)
    kept, first = np.unique(keys[~missing], return_index=True)
    found = _looked_up(node, kept, values[~missing][first], default)
    if not missing.any() or node.version < 4:
        return found
    nan = node.emit(logic.IsNaN(), node.value(0))
    own = node.table("value", Splat(values[missing][0].item(), values.dtype.name, ()))
    op, operands = found
    return logic.Where(), (nan, own, node.emit(op, *operands))


def _looked_up(node: NodeReader, keys: Array, values: Array, default: Splat) -> Application:
    """The values of sorted, distinct keys: from a table, where they are whole numbers close
    together, else by comparison with all of them.
    """
    x, other = node.value(0), node.table("default", default)
    if not keys.size:
        return logic.Where(), (node.emit(logic.IsNaN(), x), other, other)
    if keys.dtype.kind != "f" and int(keys[-1]) - int(keys[0]) < _SPARSE * keys.size:
        low, count = int(keys[0]), int(keys[-1]) - int(keys[0]) + 1
        table = np.full(count + 2, default.value, default.dtype)
        table[keys.astype(np.int64) - low + 1] = values
        place = converted(node, x, "int64")
        ends = (node.table("end", Splat(end, "int64", ())) for end in (low - 1, low + count))
        place = node.emit(arithmetic.Max(), place, next(ends))
        place = node.emit(arithmetic.Min(), place, next(ends))
        start = node.table("start", Splat(low - 1, "int64", ()))
        return Gather(0), (node.table("values", table), node.emit(arithmetic.Sub(), place, start))
    hot = _hot(node, x, keys)
    place = node.emit(ArgMax(node.type(0).rank, False), hot)
    some = node.emit(functions.Cast("bool"), _any(node, hot))
    return logic.Where(), (some, node.emit(Gather(0), node.table("values", values), place), other)


def _hot(node: NodeReader, x: str, keys: Array) -> str:
    """1 where an element equals a key, along one more axis."""
    spread = node.emit(Reshape((*node.builder.types[x].shape, 1)), x)
    equal = node.emit(logic.Equal(), spread, node.table("keys", keys))
    return node.emit(functions.Cast("float32"), equal)


def _any(node: NodeReader, hot: str) -> str:
    rank = node.builder.types[hot].rank
    return node.emit(ReduceMax((rank - 1,), False), hot)


def _numbers(node: NodeReader, what: str) -> Array:
    """The keys or values, whose attribute says of which type they are."""
    if node.given(f"{what}_strings") or node.given("classes_strings"):
        raise NotSupported(_STRINGS, _NUMBERS)
    if node.given(f"{what}_tensor"):
        found = node.tensor(f"{what}_tensor").reshape(-1)
        return found
    if node.given(f"{what}_floats"):
        return np.array(node.reals(f"{what}_floats"), np.float32)
    return np.array(node.integers(f"{what}_int64s", ()), np.int64)


def _default(node: NodeReader, dtype: str) -> Splat:
    if node.given("default_tensor"):
        value = node.tensor("default_tensor").reshape(-1)[0].item()
        return Splat(value, dtype, ())
    whole = dtype == "int64"
    value = node.integer("default_int64", -1) if whole else node.real("default_float", -0.0)
    return Splat(value if whole or dtype.startswith("float") else int(value), dtype, ())


def _one_hot_encoder(node: NodeReader) -> Result:
    """1 where an element is the category, along one more axis. Without `zeros`, an element that is
    none raises IndexError.
    """
    if node.given("cats_strings"):
        raise NotSupported(_STRINGS, _NUMBERS)
    categories = np.array(node.integers("cats_int64s", ()), np.int64)
    if not categories.size:
        raise ModelError(f"model: {node.title} has no categories.", code="onnx-categories")
    x = converted(node, node.value(0), "int64")
    hot = _hot(node, x, categories)
    if node.integer("zeros", 1):
        return functions.Cast("float32"), (hot,)
    count = categories.size
    outside = node.table("outside", Splat(count, "int64", ()))
    some = node.emit(functions.Cast("bool"), _any(node, hot))
    place = node.emit(ArgMax(node.type(0).rank, False), hot)
    place = node.emit(logic.Where(), some, place, outside)
    return Gather(0), (node.table("rows", np.eye(count, dtype=np.float32)), place)


def _refused(reason: str, hint: str) -> Callable[[NodeReader], Result]:
    def build(node: NodeReader) -> Result:
        raise NotSupported(reason, hint)

    return build


_ENCODER = tuple(
    f"{what}_{kind}" for what in ("keys", "values") for kind in ("floats", "int64s", "strings")
)
_DEFAULTS = ("default_float", "default_int64", "default_string", "default_tensor")
_LABELS = ("classlabels_int64s", "classlabels_strings")
_MAPS = "it makes a map for each row"
_OF_MAPS = "it reads maps"

RULES: dict[str, ImportRule] = {
    "ai.onnx.ml.CastMap": ImportRule(
        (1,), ("cast_to", "map_form", "max_map"), _refused(_OF_MAPS, _NUMBERS)
    ),
    "ai.onnx.ml.CategoryMapper": ImportRule(
        (1,),
        ("cats_int64s", "cats_strings", "default_int64", "default_string"),
        _refused(_STRINGS, _NUMBERS),
    ),
    "ai.onnx.ml.DictVectorizer": ImportRule(
        (1,), ("int64_vocabulary", "string_vocabulary"), _refused(_OF_MAPS, _NUMBERS)
    ),
    "ai.onnx.ml.LabelEncoder": ImportRule(
        (1, 2, 4),
        (*_ENCODER, *_DEFAULTS, "classes_strings", "keys_tensor", "values_tensor"),
        _label_encoder,
    ),
    "ai.onnx.ml.OneHotEncoder": ImportRule(
        (1,), ("cats_int64s", "cats_strings", "zeros"), _one_hot_encoder
    ),
    "ai.onnx.ml.ZipMap": ImportRule(
        (1,),
        _LABELS,
        _refused(
            _MAPS,
            "skl2onnx.to_onnx(..., options={'zipmap': False}) leaves the probabilities a matrix.",
        ),
    ),
}
