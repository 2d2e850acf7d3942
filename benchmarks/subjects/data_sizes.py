"""Models of one operator whose results are as large as data say, or that sorts, with inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tilewright.runtime.arrays import Array

Inputs = dict[str, Array]
Subject = tuple[ModelProto, Inputs]
_OBJECTS = 40  # in an image, each of which several boxes see
_SEEN = 12


def _model(
    operator: str, given: Sequence[str], inputs: Inputs, made: int, constants: Inputs
) -> ModelProto:
    """A node with `made` outputs, the first of which is a float where there are several."""
    names = [f"y{number}" for number in range(made)]
    kinds = [TensorProto.FLOAT] * (made - 1) + [TensorProto.INT64]
    graph = helper.make_graph(
        [helper.make_node(operator, given, names)],
        operator.lower(),
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in inputs.items()
        ],
        [
            helper.make_tensor_value_info(name, kind, None)
            for name, kind in zip(names, kinds, strict=True)
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def suppression(
    shape: tuple[int, int, int], most: int, least: float | None, *, image: bool = False
) -> Subject:
    """Boxes of (batch, classes, n). image: most scores are next to none, and some boxes around each
    object have higher ones, as detectors of objects give; else all are random.
    """
    batch, classes, count = shape
    rng = np.random.default_rng(0)
    corners = rng.random((batch, count, 2), np.float32) * 4
    sizes = rng.random((batch, count, 2), np.float32) * 3
    scores = rng.random((batch, classes, count), np.float32)
    boxes = np.concatenate([corners, corners + sizes], axis=2)
    if image:
        scores *= 0.02
        for number in range(_OBJECTS):
            at = rng.choice(count, _SEEN, replace=False)
            middle = rng.random(4, np.float32) * 600 + rng.normal(0, 4, (_SEEN, 4))
            boxes[:, at] = middle + np.array([-40, -40, 40, 40])
            scores[:, number % classes, at] = rng.random(_SEEN, np.float32)
    inputs: Inputs = {"boxes": boxes.astype(np.float32), "scores": scores}
    constants: Inputs = {"most": np.array([most]), "share": np.array([0.45], np.float32)}
    if least is not None:
        constants["least"] = np.array([least], np.float32)
    given = [*inputs, *constants]
    return _model("NonMaxSuppression", given, inputs, 1, constants), inputs


def nonzero(shape: tuple[int, ...], share: float, kind: str) -> Subject:
    """An array of which such a share is not 0."""
    rng = np.random.default_rng(0)
    chosen = rng.random(shape) < share
    inputs: Inputs = {"x": chosen.astype(kind)}
    return _model("NonZero", ["x"], inputs, 1, {}), inputs


def top(rows: int, count: int, many: int) -> Subject:
    """The `many` largest of each row."""
    x = np.random.default_rng(0).standard_normal((rows, count), np.float32)
    return _model("TopK", ["x", "k"], {"x": x}, 2, {"k": np.array([many])}), {"x": x}


def _found(shape: tuple[int, ...], share: float, kind: str) -> Callable[[], Subject]:
    return lambda: nonzero(shape, share, kind)


def _ranked(rows: int, count: int, many: int) -> Callable[[], Subject]:
    return lambda: top(rows, count, many)


SUBJECTS: Mapping[str, Callable[[], Subject]] = {
    "nms_80x8400_from_0.25": lambda: suppression((1, 80, 8400), 100, 0.25, image=True),
    "nms_80x8400_from_0.5": lambda: suppression((1, 80, 8400), 100, 0.5, image=True),
    "nms_1x1000_all": lambda: suppression((1, 1, 1000), 100, None),
    "nms_1x1000_from_0.5": lambda: suppression((1, 1, 1000), 100, 0.5),
    "nms_2x4x200_all": lambda: suppression((2, 4, 200), 10, None),
    "nms_2x4x200_from_0.5": lambda: suppression((2, 4, 200), 10, 0.5),
    **{
        f"nonzero_{'x'.join(map(str, shape))}_{kind}_{share}": _found(shape, share, kind)
        for shape in ((10**4,), (10**6,), (100, 100, 100))
        for kind in ("float32", "bool")
        for share in (0.01, 0.5, 1.0)
    },
    **{
        f"top_{many}_of_{rows}x{count}": _ranked(rows, count, many)
        for rows in (1, 64)
        for count, many in ((1000, 5), (8400, 5), (8400, 100), (1000, 1000))
    },
}
