"""Rules of support vector machines: SVMClassifier and SVMRegressor."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ......tir.sizes import closed
from .....errors import ModelError
from .....ops import arithmetic, functions, logic
from .....ops.activation import Sigmoid
from .....ops.matmul import MatMul
from .....ops.movement import Concat, Identity, Reshape
from .....ops.reduction import ReduceSum
from .....types import Array
from ...node import NodeReader, NotSupported
from ..rule import ImportRule, Result, Several
from .coupling import coupled
from .scores import (
    best_label,
    class_count,
    labels_of,
    matrix,
    scalar,
    transform_of,
    transformed,
)

_LEAST = 1e-7  # what the probability of a class of a pair, or of the other, has at least
_ROUNDED = 16.0  # gamma times the largest squared length of a vector from their mean
_KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def _kernel(node: NodeReader, x: str, vectors: NDArray[np.float32], kind: str) -> str:
    """What each row has in common with each of the vectors."""
    if kind not in _KERNELS:
        raise NotSupported(f"kernel_type is '{kind}'; known are {', '.join(_KERNELS)}")
    gamma, start, degree = (*(node.reals("kernel_params") if kind != "LINEAR" else ()), 0, 0, 0)[:3]
    if kind == "RBF":
        distance = _distances(node, x, vectors, gamma)
        exponent = node.emit(arithmetic.Mul(), distance, scalar(node, -gamma, x))
        return node.emit(functions.Exp(), exponent)
    found = node.emit(MatMul(), x, node.table("vectors", vectors.T))
    if kind == "LINEAR":
        return found
    found = node.emit(arithmetic.Mul(), found, scalar(node, gamma, x))
    found = node.emit(arithmetic.Add(), found, scalar(node, start, x))
    if kind == "SIGMOID":
        return node.emit(functions.Tanh(), found)
    return node.emit(arithmetic.Pow(), found, scalar(node, degree, x))


def _distances(node: NodeReader, x: str, vectors: NDArray[np.float32], gamma: float) -> str:
    """The squared distances of each row from each vector: |x|^2 + |v|^2 - 2 x v around the mean of
    the vectors, a product of matrices, where its rounding changes gamma times a distance by less
    than 1e-5, else sums of squared differences.
    """
    center = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    around = vectors - center
    squares = np.square(around.astype(np.float64)).sum(axis=1)
    rows, width = node.builder.types[x].shape
    if abs(gamma) * squares.max(initial=0) > _ROUNDED:
        spread = node.emit(Reshape((rows, 1, width)), x)
        apart = node.emit(arithmetic.Sub(), spread, node.table("vectors", vectors[None]))
        return node.emit(ReduceSum((2,), False), node.emit(arithmetic.Mul(), apart, apart))
    x = node.emit(arithmetic.Sub(), x, node.table("center", center[None]))
    own = node.emit(ReduceSum((1,)), node.emit(arithmetic.Mul(), x, x))
    common = node.emit(MatMul(), x, node.table("vectors", -2 * around.T))
    lengths = node.table("squares", squares.astype(np.float32)[None])
    found = node.emit(arithmetic.Add(), common, node.emit(arithmetic.Add(), own, lengths))
    return node.emit(arithmetic.Max(), found, scalar(node, 0.0, found))


def _attribute(node: NodeReader, name: str) -> NDArray[np.float32]:
    return np.array(node.reals(name) if node.given(name) else (), np.float32)


def _check(node: NodeReader, name: str, got: int, least: int) -> None:
    if got < least:
        raise ModelError(
            f"model: attribute '{name}' of {node.title} has {got} elements; expected {least}.",
            code="onnx-vectors-size",
        )


def _weighed(node: NodeReader, found: str, weights: Array, rho: Array) -> str:
    """Sums of what `found` has, with the weights of a column each."""
    total = node.emit(MatMul(), found, node.table("coefficients", weights))
    return node.emit(arithmetic.Add(), total, node.table("rho", rho.reshape(1, -1)))


def _regressor(node: NodeReader) -> Result:
    """The sum over the vectors; without any, of the features. post_transform counts for nothing in
    onnxruntime.
    """
    if transform_of(node) != "NONE":
        raise NotSupported(f"post_transform is '{transform_of(node)}' of one target")
    x, count = matrix(node), node.integer("n_supports", 0)
    width = closed(node.builder.types[x].shape[1])
    rho, coefficients = _attribute(node, "rho")[:1], _attribute(node, "coefficients")
    _check(node, "rho", rho.size, 1)
    _check(node, "coefficients", coefficients.size, count or width)
    if count:
        vectors = _attribute(node, "support_vectors")
        _check(node, "support_vectors", vectors.size, count * width)
        vectors = vectors[: count * width].reshape(count, width)
        x = _kernel(node, x, vectors, node.text("kernel_type", "LINEAR"))
    weights = coefficients[: count or width].reshape(-1, 1)
    found = _weighed(node, x, weights, rho)
    if not node.flag("one_class"):
        return Identity(), (found,)
    above = node.emit(logic.Less(), scalar(node, 0.0, found), found)
    return logic.Where(), (above, scalar(node, 1.0, found), scalar(node, -1.0, found))


def _classifier(node: NodeReader) -> Result:
    """Each pair of classes has a score; the class with the most pairs is it, the first of several.

    Without vectors each class has a score of its own, which is linear.
    """
    labels, transform = labels_of(node, "classlabels_ints"), transform_of(node)
    count, x = class_count(node, labels), matrix(node)
    if count < 2:
        raise NotSupported("it has one label")
    groups = node.integers("vectors_per_class", ())
    if not sum(groups):
        return _linear(node, x, labels, count)
    scores = _pair_scores(node, x, groups, count)
    above = node.emit(logic.Less(), scalar(node, 0.0, scores), scores)
    pairs = list(combinations(range(count), 2))
    votes = np.zeros((len(pairs), count), np.float32)
    for number, (first, second) in enumerate(pairs):
        votes[number, [first, second]] = 1, -1
    lost = np.arange(count, dtype=np.float32)  # pairs of which a class is the second
    won = _weighed(node, node.emit(functions.Cast("float32"), above), votes, lost)
    label = best_label(node, labels, won)
    if node.given("prob_a"):
        found = transformed(node, _probabilities(node, scores, count), transform)
        return Several((label, (Identity(), (found,))))
    if count > 2:
        return Several((label, (Identity(), (transformed(node, scores, transform),))))
    if transform != "NONE":
        raise NotSupported(f"post_transform is '{transform}' of the one score of two classes")
    other = node.emit(arithmetic.Mul(), scores, scalar(node, -1.0, scores))
    return Several((label, (Concat(1), (other, scores))))


def _linear(node: NodeReader, x: str, labels: Array | None, count: int) -> Result:
    """A score for each class, of the features; two classes would need more to be said of them."""
    if count == 2 or transform_of(node) != "NONE":
        raise NotSupported(f"it has {count} classes, no vectors and '{transform_of(node)}'")
    width = closed(node.builder.types[x].shape[1])
    rho, coefficients = _attribute(node, "rho")[:1], _attribute(node, "coefficients")
    _check(node, "rho", rho.size, 1)
    _check(node, "coefficients", coefficients.size, count * width)
    weights = coefficients[: count * width].reshape(count, width).T
    scores = _weighed(node, x, weights, np.repeat(rho, count))
    return Several((best_label(node, labels, scores), (Identity(), (scores,))))


def _pair_scores(node: NodeReader, x: str, groups: tuple[int, ...], count: int) -> str:
    """The score of each pair of classes, from the vectors of both. Row r of the coefficients has
    those of a class with the r-th of the others.
    """
    width, total = closed(node.builder.types[x].shape[1]), sum(groups)
    if len(groups) != count or min(groups) < 0:
        raise ModelError(
            f"model: {node.title} has vectors for {len(groups)} of {count} classes.",
            code="onnx-vectors-groups",
        )
    pairs = list(combinations(range(count), 2))
    vectors, rho = _attribute(node, "support_vectors"), _attribute(node, "rho")
    coefficients = _attribute(node, "coefficients")
    _check(node, "support_vectors", vectors.size, total * width)
    _check(node, "coefficients", coefficients.size, (count - 1) * total)
    _check(node, "rho", rho.size, len(pairs))
    rows = coefficients[: (count - 1) * total].reshape(count - 1, total)
    ends = np.concatenate([[0], np.cumsum(groups)])
    weights = np.zeros((total, len(pairs)), np.float32)
    for number, (first, second) in enumerate(pairs):
        own, other = (slice(ends[c], ends[c + 1]) for c in (first, second))
        weights[own, number] = rows[second - 1, own]
        weights[other, number] = rows[first, other]
    vectors = vectors[: total * width].reshape(total, width)
    found = _kernel(node, x, vectors, node.text("kernel_type", "LINEAR"))
    return _weighed(node, found, weights, rho[: len(pairs)])


def _probabilities(node: NodeReader, scores: str, count: int) -> str:
    """Those of the classes, from those of the first class of each pair, which are logistic."""
    pairs = count * (count - 1) // 2
    slopes, starts = _attribute(node, "prob_a"), _attribute(node, "prob_b")
    _check(node, "prob_a", slopes.size, pairs)
    _check(node, "prob_b", starts.size, pairs)
    slope, start = (-1 * values[:pairs].reshape(1, -1) for values in (slopes, starts))
    score = node.emit(arithmetic.Mul(), scores, node.table("slopes", slope))
    score = node.emit(arithmetic.Add(), score, node.table("starts", start))
    likely = node.emit(Sigmoid(), score)
    likely = node.emit(arithmetic.Max(), likely, scalar(node, _LEAST, likely))
    likely = node.emit(arithmetic.Min(), likely, scalar(node, 1 - _LEAST, likely))
    return coupled(node, likely, count)


_KERNEL = ("coefficients", "kernel_params", "kernel_type", "post_transform", "rho")

RULES: dict[str, ImportRule] = {
    "ai.onnx.ml.SVMClassifier": ImportRule(
        (1,),
        (
            *_KERNEL,
            "classlabels_ints",
            "classlabels_strings",
            "prob_a",
            "prob_b",
            "support_vectors",
            "vectors_per_class",
        ),
        _classifier,
        outputs=2,
    ),
    "ai.onnx.ml.SVMRegressor": ImportRule(
        (1,), (*_KERNEL, "n_supports", "one_class", "support_vectors"), _regressor
    ),
}
