"""What models of ai.onnx.ml do with the scores of classes or targets, and with labels."""

from __future__ import annotations

import math

import numpy as np

from .....errors import ModelError
from .....ops import arithmetic, functions, logic
from .....ops.activation import Sigmoid
from .....ops.elementwise import Elementwise
from .....ops.gathering import Gather
from .....ops.movement import Identity, Reshape
from .....ops.ranking import ArgMax
from .....ops.reduction import ReduceMax, ReduceSum
from .....ops.slicing import Slice
from .....ops.softmax import Softmax
from .....types import Array, Splat
from ...node import NodeReader, NotSupported
from ..conversions import converted
from ..rule import Application

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")  # as TreeEnsemble counts
_TINY = 1e-7  # what SOFTMAX_ZERO takes for 0
_WINITZKI = 0.147


def transform_of(node: NodeReader) -> str:
    """The attribute post_transform."""
    name = node.text("post_transform", "NONE")
    if name not in TRANSFORMS:
        raise NotSupported(f"post_transform is '{name}'; known are {', '.join(TRANSFORMS)}")
    return name


def scalar(node: NodeReader, value: float, like: str) -> str:
    """A number in the element type of another value."""
    return node.table("number", Splat(value, node.builder.types[like].dtype, ()))


def matrix(node: NodeReader, dtypes: tuple[str, ...] = ("float32",)) -> str:
    """The first input as rows of features in floats: in its own type, where that is one of
    `dtypes`, else in the first of them; a vector is one row.
    """
    type_ = node.type(0)
    if type_.rank not in (1, 2):
        raise ModelError(
            f"model: {node.title} has the input {type_}; expected rows of features.",
            code="onnx-learned-rank",
        )
    value = converted(node, node.value(0), type_.dtype if type_.dtype in dtypes else dtypes[0])
    return value if type_.rank == 2 else node.emit(Reshape((1, *type_.shape)), value)


def transformed(node: NodeReader, scores: str, transform: str) -> str:
    """Scores of two classes or targets, or more, behind a post_transform."""
    match transform:
        case "LOGISTIC":
            return node.emit(Sigmoid(), scores)
        case "SOFTMAX":
            return node.emit(Softmax((1,)), scores)
        case "SOFTMAX_ZERO":
            return _softmax_zero(node, scores)
        case "PROBIT":
            return probit(node, scores)
    return scores


def _softmax_zero(node: NodeReader, scores: str) -> str:
    """A softmax of the scores that are not 0, which stay 0."""
    small = node.emit(logic.LessOrEqual(), *_pair(node, functions.Abs(), scores, _TINY))
    largest = node.emit(ReduceMax((1,)), scores)
    powers = node.emit(functions.Exp(), node.emit(arithmetic.Sub(), scores, largest))
    powers = node.emit(logic.Where(), small, scalar(node, 0.0, scores), powers)
    return node.emit(arithmetic.Div(), powers, node.emit(ReduceSum((1,)), powers))


def _pair(node: NodeReader, op: functions.Abs, value: str, number: float) -> tuple[str, str]:
    return node.emit(op, value), scalar(node, number, value)


def probit(node: NodeReader, scores: str) -> str:
    """sqrt(2) times the inverse of the error function at 2 * score - 1, as S. Winitzki approximates
    it ("A handy approximation for the error function and its inverse", 2008), to 0.2 %.
    """

    def emit(op: Elementwise, *operands: str | float) -> str:
        named = (scalar(node, x, scores) if isinstance(x, float) else x for x in operands)
        return node.emit(op, *named)

    x = emit(arithmetic.Sub(), emit(arithmetic.Mul(), scores, 2.0), 1.0)
    up, down = emit(arithmetic.Add(), x, 1.0), emit(arithmetic.Sub(), 1.0, x)
    log = emit(functions.Log(), emit(arithmetic.Mul(), up, down))
    half = emit(arithmetic.Mul(), log, 0.5)
    v = emit(arithmetic.Add(), half, 2 / (math.pi * _WINITZKI))
    square = emit(arithmetic.Mul(), v, v)
    rest = emit(arithmetic.Sub(), square, emit(arithmetic.Mul(), log, 1 / _WINITZKI))
    size = emit(functions.Sqrt(), emit(arithmetic.Sub(), emit(functions.Sqrt(), rest), v))
    below = emit(logic.Less(), x, 0.0)
    sign = emit(logic.Where(), below, -1.0, 1.0)
    return emit(arithmetic.Mul(), emit(arithmetic.Mul(), sign, size), math.sqrt(2))


def labels_of(node: NodeReader, integers: str) -> Array | None:
    """The labels of a classifier; None where they are strings, which nobody reads.

    Raises: NotSupported where somebody does.
    """
    if not node.given("classlabels_strings"):
        labels = np.array(node.integers(integers, ()), np.int64)
        if labels.size == 0:
            raise ModelError(f"model: {node.title} has no labels.", code="onnx-labels")
        return labels
    if node.proto.output[0]:
        raise NotSupported(
            "its labels are strings",
            "fit the model to labels that are integers, as those of scikit-learn's "
            "LabelEncoder, or keep only its probabilities as an output.",
        )
    return None


def class_count(node: NodeReader, labels: Array | None) -> int:
    """How many labels a classifier has."""
    return labels.size if labels is not None else len(node.texts("classlabels_strings"))


def best_label(node: NodeReader, labels: Array | None, scores: str) -> Application:
    """The label of the first of the largest scores of each row."""
    place = node.emit(ArgMax(1, False), scores)
    if labels is None or np.array_equal(labels, np.arange(labels.size)):
        return Identity(), (place,)
    return Gather(0), (node.table("labels", labels), place)


def label_where(node: NodeReader, labels: Array | None, condition: str) -> Application:
    """The second of two labels where a condition holds, else the first."""
    first, second = (0, 1) if labels is None else (int(label) for label in labels[:2])
    numbers = (node.table("label", Splat(n, "int64", ())) for n in (second, first))
    return logic.Where(), (condition, *numbers)


def column(node: NodeReader, value: str, number: int) -> str:
    """A column of a matrix, as one."""
    rows = node.builder.types[value].shape[0]
    return node.emit(Slice((0, number), (rows, 1), (1, 1)), value)


def row_of(node: NodeReader, condition: str) -> str:
    """A matrix of one column as a vector."""
    return node.emit(Reshape(node.builder.types[condition].shape[:1]), condition)
