"""Rules of LinearClassifier and LinearRegressor."""

from __future__ import annotations

import numpy as np

from ......tir.sizes import closed
from .....errors import ModelError
from .....ops import arithmetic, logic
from .....ops.matmul import MatMul
from .....ops.movement import Concat, Identity
from ...node import NodeReader, NotSupported
from ..rule import ImportRule, Result, Several
from .scores import (
    best_label,
    class_count,
    label_where,
    labels_of,
    matrix,
    probit,
    row_of,
    scalar,
    transform_of,
    transformed,
)


def _scores(node: NodeReader, targets: int) -> str:
    """What each target has: x times its coefficients, and its intercept."""
    x = matrix(node)
    width = closed(node.builder.types[x].shape[1])
    coefficients = np.array(node.reals("coefficients"), np.float32)
    intercepts = np.array(_intercepts(node), np.float32)
    if coefficients.size != targets * width or intercepts.size not in (0, targets):
        raise ModelError(
            f"model: {node.title} has {coefficients.size} coefficients and {intercepts.size} "
            f"intercepts; expected {targets * width} and {targets} for {width} features and "
            f"{targets} targets.",
            code="onnx-linear-size",
        )
    weights = node.table("coefficients", coefficients.reshape(targets, width).T)
    found = node.emit(MatMul(), x, weights)
    if not intercepts.any():
        return found
    return node.emit(arithmetic.Add(), found, node.table("intercepts", intercepts.reshape(1, -1)))


def _intercepts(node: NodeReader) -> tuple[float, ...]:
    return node.reals("intercepts") if node.given("intercepts") else ()


def _regressor(node: NodeReader) -> Result:
    targets, transform = node.integer("targets", 1), transform_of(node)
    if targets < 1:
        raise ModelError(f"model: {node.title} has {targets} targets.", code="onnx-linear-targets")
    found = _scores(node, targets)
    if targets > 1:
        return Identity(), (transformed(node, found, transform),)
    if transform not in ("NONE", "PROBIT"):
        raise NotSupported(f"post_transform is '{transform}' of one target")
    return Identity(), (probit(node, found) if transform == "PROBIT" else found,)


def _classifier(node: NodeReader) -> Result:
    """The label of the first of the largest scores before the transform; of one score s of two
    labels, the second one where it is above 0, and the scores 1 - s and s.
    """
    labels, transform = labels_of(node, "classlabels_ints"), transform_of(node)
    count = class_count(node, labels)
    targets = len(_intercepts(node)) or count
    found = _scores(node, targets)
    if targets > 1:
        if targets > count:
            raise ModelError(
                f"model: {node.title} has {count} labels for {targets} scores.",
                code="onnx-linear-labels",
            )
        label = best_label(node, labels, found)
        return Several((label, (Identity(), (transformed(node, found, transform),))))
    if count != 2 or transform != "NONE":
        raise NotSupported(f"it has one score, {count} labels and post_transform '{transform}'")
    above = row_of(node, node.emit(logic.Less(), scalar(node, 0.0, found), found))
    label = label_where(node, labels, above)
    other = node.emit(arithmetic.Sub(), scalar(node, 1.0, found), found)
    return Several((label, (Concat(1), (other, found))))


RULES: dict[str, ImportRule] = {
    "ai.onnx.ml.LinearClassifier": ImportRule(
        (1,),
        (
            "classlabels_ints",
            "classlabels_strings",
            "coefficients",
            "intercepts",
            "multi_class",
            "post_transform",
        ),
        _classifier,
        outputs=2,
    ),
    "ai.onnx.ml.LinearRegressor": ImportRule(
        (1,), ("coefficients", "intercepts", "post_transform", "targets"), _regressor
    ),
}
