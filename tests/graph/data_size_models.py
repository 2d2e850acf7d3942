"""Models in ONNX of which data decide sizes, and inputs for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tilewright.runtime.arrays import Array

Inputs = dict[str, Array]
Range = tuple[int, int, int]
Declared = Sequence[tuple[str, int, Sequence[int | str] | None]]


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Declared,
    outputs: Declared,
    constants: Mapping[str, Array] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "data_sizes",
        [helper.make_tensor_value_info(*item) for item in inputs],
        [helper.make_tensor_value_info(*item) for item in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model


@dataclass(frozen=True, slots=True, eq=False)
class DataSizes:
    """A model; inputs: some for a share of what may be found, from none (0) to all (1)."""

    model: onnx.ModelProto
    inputs: Callable[[float, np.random.Generator], Inputs]
    shapes: Mapping[str, Range] | None = None


def sparse(shape: tuple[int, ...], share: float, rng: np.random.Generator) -> Array:
    """Numbers that are not 0 with such a probability."""
    numbers = rng.standard_normal(shape, np.float32) + 5
    return np.where(rng.random(shape) < share, numbers, 0).astype(np.float32)


def nonzero(*shape: int) -> DataSizes:
    """Where elements are not 0, and what else a model may make of that."""
    rank = len(shape)
    nodes = [
        helper.make_node("NonZero", ["x"], ["y"]),
        helper.make_node("Transpose", ["y"], ["rows"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "rows"], ["found"]),
        helper.make_node("Relu", ["found"], ["positive"]),
        helper.make_node("ReduceSum", ["positive"], ["sum"], keepdims=0),
        helper.make_node("Shape", ["found"], ["shape"]),
    ]
    outputs: Declared = [
        ("y", TensorProto.INT64, [rank, "n"]),
        ("positive", TensorProto.FLOAT, ["n"]),
        ("sum", TensorProto.FLOAT, []),
        ("shape", TensorProto.INT64, [1]),
    ]
    return DataSizes(
        model_of(nodes, [("x", TensorProto.FLOAT, shape)], outputs),
        lambda share, rng: {"x": sparse(shape, share, rng)},
    )


def compress(axis: int | None) -> DataSizes:
    """Slices of a tensor, or elements, that a condition chooses."""
    attributes = {} if axis is None else {"axis": axis}
    shape, count = (4, 9, 3), 30 if axis is None else 9
    nodes = [
        helper.make_node("Compress", ["x", "chosen"], ["found"], **attributes),
        helper.make_node("Mul", ["found", "two"], ["y"]),
    ]
    inputs: Declared = [("x", TensorProto.FLOAT, shape), ("chosen", TensorProto.BOOL, [count])]
    model = model_of(
        nodes, inputs, [("y", TensorProto.FLOAT, None)], {"two": np.array(2, np.float32)}
    )
    return DataSizes(
        model,
        lambda share, rng: {"x": sparse(shape, 1, rng), "chosen": rng.random(count) < share},
    )


def top(axis: int, largest: int = 1) -> DataSizes:
    """As many of the largest elements as an input says."""
    shape = (3, 11)
    nodes = [helper.make_node("TopK", ["x", "k"], ["y", "places"], axis=axis, largest=largest)]
    model = model_of(
        nodes,
        [("x", TensorProto.FLOAT, shape), ("k", TensorProto.INT64, [1])],
        [("y", TensorProto.FLOAT, None), ("places", TensorProto.INT64, None)],
    )
    return DataSizes(
        model,
        lambda share, rng: {
            "x": sparse(shape, 0.8, rng),
            "k": np.array([round(share * shape[axis])]),
        },
    )


def unique(
    shape: tuple[int, ...], outputs: int, in_order: int, kind: str, **settings: int
) -> DataSizes:
    """Distinct elements, or slices along an axis, where they stand first, which one each is, and
    how many are equal.
    """
    names = ("y", "places", "inverse", "counts")[:outputs]
    types = (helper.np_dtype_to_tensor_dtype(np.dtype(kind)), *(TensorProto.INT64,) * 3)
    model = model_of(
        [helper.make_node("Unique", ["x"], names, sorted=in_order, **settings)],
        [("x", types[0], shape)],
        [(name, type_, None) for name, type_ in zip(names, types, strict=False)],
    )
    return DataSizes(
        model,
        lambda share, rng: {"x": rng.integers(0, 1 + round(30 * share), shape).astype(kind)},
    )


def suppression(
    count: int,
    classes: int = 2,
    most: int | None = 3,
    *,
    threshold: bool = True,
    centers: int = 0,
) -> DataSizes:
    """The boxes that no better ones of their class cover."""
    inputs: list[tuple[str, int, Sequence[int | str] | None]] = [
        ("boxes", TensorProto.FLOAT, [2, count, 4]),
        ("scores", TensorProto.FLOAT, [2, classes, count]),
    ]
    constants = {"iou": np.array([0.3], np.float32)}
    if most is None:
        inputs.append(("most", TensorProto.INT64, [1]))
    else:
        constants["most"] = np.array([most])
    given = ["boxes", "scores", "most", "iou"]
    if threshold:
        inputs.append(("least", TensorProto.FLOAT, [1]))
        given.append("least")
    nodes = [helper.make_node("NonMaxSuppression", given, ["y"], center_point_box=centers)]
    model = model_of(nodes, inputs, [("y", TensorProto.INT64, None)], constants)

    def drawn(share: float, rng: np.random.Generator) -> Inputs:
        corners = rng.random((2, count, 2), np.float32) * 4
        sizes = rng.random((2, count, 2), np.float32) * 3
        parts = (corners, sizes) if centers else (corners, corners + sizes)
        found: Inputs = {
            "boxes": np.concatenate(parts, axis=2),
            "scores": np.round(rng.random((2, classes, count), np.float32), 1),
        }
        if most is None:
            found["most"] = np.array([round(share * count)])
        if threshold:
            found["least"] = np.array([1 - share], np.float32)
        return found

    return DataSizes(model, drawn)


def ranged(kind: str) -> DataSizes:
    """Numbers from one input to another one, at most 20 of them."""
    type_ = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    nodes = [
        helper.make_node("Range", ["start", "limit", "step"], ["numbers"]),
        helper.make_node("Mul", ["numbers", "numbers"], ["y"]),
    ]
    inputs: Declared = [(name, type_, []) for name in ("start", "limit", "step")]
    model = model_of(nodes, inputs, [("numbers", type_, ["n"]), ("y", type_, ["n"])])

    def drawn(share: float, rng: np.random.Generator) -> Inputs:
        step = int(rng.choice([1, 3, -2]))
        numbers = (4, 4 + step * round(20 * share), step)
        return {
            name: np.array(number, kind)
            for name, number in zip(("start", "limit", "step"), numbers, strict=True)
        }

    return DataSizes(model, drawn, {"n": (0, 8, 20)})


def halves() -> DataSizes:
    """What is found of float16, twice."""
    nodes = [
        helper.make_node("Compress", ["x", "chosen"], ["found"], axis=0),
        helper.make_node("Add", ["found", "found"], ["y"]),
    ]
    inputs: Declared = [("x", TensorProto.FLOAT16, [9]), ("chosen", TensorProto.BOOL, [9])]
    return DataSizes(
        model_of(nodes, inputs, [("y", TensorProto.FLOAT16, None)]),
        lambda share, rng: {
            "x": sparse((9,), 1, rng).astype(np.float16),
            "chosen": rng.random(9) < share,
        },
    )


def collecting(*, counted: bool) -> DataSizes:
    """A loop that collects what it carries, for as often as an input says, or until it is large."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["before", "x"], ["after"]),
            helper.make_node("ReduceSum", ["after"], ["total"], keepdims=0),
            helper.make_node("Less", ["total", "most"], ["goes_on"]),
            helper.make_node("Mul", ["after", "after"], ["row"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("so_far", TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, [2, 3]),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("row", TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("total", TensorProto.FLOAT, []),
        ],
    )
    count = "times" if counted else "ten"
    nodes = [helper.make_node("Loop", [count, "yes", "x"], ["last", "rows", "totals"], body=body)]
    inputs: list[tuple[str, int, Sequence[int | str] | None]] = [
        ("x", TensorProto.FLOAT, [2, 3]),
        ("most", TensorProto.FLOAT, []),
    ]
    constants = {"yes": np.array(True)}
    if counted:
        inputs.append(("times", TensorProto.INT64, []))
    else:
        constants["ten"] = np.array(10)
    outputs: Declared = [(name, TensorProto.FLOAT, None) for name in ("last", "rows", "totals")]

    def drawn(share: float, rng: np.random.Generator) -> Inputs:
        found: Inputs = {
            "x": np.ones((2, 3), np.float32),
            "most": np.array(60 * share, np.float32),
        }
        if counted:
            found["times"] = np.array(round(12 * share))
        return found

    shapes = {"rows": (0, 8, 12)} if counted else None
    return DataSizes(model_of(nodes, inputs, outputs, constants), drawn, shapes)


def carrying() -> DataSizes:
    """A loop that carries as much as is found, and reads as much."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["before", "found"], ["sum"]),
            helper.make_node("Mul", ["sum", "half"], ["after"]),
            helper.make_node("Identity", ["so_far"], ["goes_on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("so_far", TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        helper.make_node("Compress", ["x", "chosen"], ["found"], axis=0),
        helper.make_node("Relu", ["found"], ["begin"]),
        helper.make_node("Loop", ["times", "", "begin"], ["y"], body=body),
    ]
    inputs: Declared = [
        ("x", TensorProto.FLOAT, [9, 4]),
        ("chosen", TensorProto.BOOL, [9]),
        ("times", TensorProto.INT64, []),
    ]
    constants = {"half": np.array(0.5, np.float32)}
    return DataSizes(
        model_of(nodes, inputs, [("y", TensorProto.FLOAT, None)], constants),
        lambda share, rng: {
            "x": rng.standard_normal((9, 4), np.float32),
            "chosen": rng.random(9) < share,
            "times": np.array(round(7 * share)),
        },
    )


def detection_head() -> DataSizes:
    """The boxes and scores that a suppression leaves, and the classes that they are of."""
    nodes = [
        helper.make_node(
            "NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["kept"]
        ),
        helper.make_node("Gather", ["kept", "two"], ["box"], axis=1),
        helper.make_node("Gather", ["kept", "one"], ["class"], axis=1),
        helper.make_node("Squeeze", ["boxes", "first"], ["flat"]),
        helper.make_node("Gather", ["flat", "box"], ["y"], axis=0),
        helper.make_node("GatherND", ["scores", "kept"], ["score"]),
        helper.make_node("Mul", ["score", "hundred"], ["percent"]),
    ]
    constants = {
        "most": np.array([5]),
        "iou": np.array([0.4], np.float32),
        "least": np.array([0.3], np.float32),
        "one": np.array(1),
        "two": np.array(2),
        "first": np.array([0]),
        "hundred": np.array(100, np.float32),
    }
    outputs: Declared = [
        ("y", TensorProto.FLOAT, None),
        ("class", TensorProto.INT64, None),
        ("percent", TensorProto.FLOAT, None),
    ]
    count = 24
    inputs: Declared = [
        ("boxes", TensorProto.FLOAT, [1, count, 4]),
        ("scores", TensorProto.FLOAT, [1, 3, count]),
    ]

    def drawn(share: float, rng: np.random.Generator) -> Inputs:
        low = rng.random((1, count, 2), np.float32)
        return {
            "boxes": np.concatenate([low, low + rng.random(low.shape, np.float32)], axis=2),
            "scores": (rng.random((1, 3, count)) * share).astype(np.float32),
        }

    return DataSizes(model_of(nodes, inputs, outputs, constants), drawn)


MODELS: Mapping[str, DataSizes] = {
    "NonZero of a vector": nonzero(37),
    "NonZero of a matrix": nonzero(5, 7),
    "NonZero of many": nonzero(3, 20, 9),
    "Compress of elements": compress(None),
    "Compress along an axis": compress(1),
    "TopK": top(1),
    "TopK of the smallest": top(0, largest=0),
    "Unique, sorted": unique((6, 7), 4, 1, "float32"),
    "Unique, as they come": unique((41,), 4, 0, "int64"),
    "Unique, values alone": unique((41,), 1, 1, "int8"),
    "Unique, rows": unique((9, 2), 4, 1, "float32", axis=0),
    "Unique, slices as they come": unique((1, 7, 3), 4, 0, "int64", axis=-2),
    "NonMaxSuppression": suppression(12),
    "NonMaxSuppression of few": suppression(5, 1, 9, threshold=False),
    "NonMaxSuppression of many": suppression(2100),
    "NonMaxSuppression with a limit from data": suppression(11, 3, None, centers=1),
    "detection head": detection_head(),
    "Range of floats": ranged("float32"),
    "Range of integers": ranged("int64"),
    "Compress of halves": halves(),
    "Loop that carries what is found": carrying(),
    "Loop that collects until data end it": collecting(counted=False),
    "Loop that collects as often as data say": collecting(counted=True),
}
