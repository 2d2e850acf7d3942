"""Operators of ai.onnx.ml, at one row and at a thousand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from onnx import NodeProto, helper

from .subject import Draw, Subject, integers, normal

_ML = "ai.onnx.ml"
_FEATURES = 30


def _forest(operator: str, trees: int, depth: int) -> Sequence[NodeProto]:
    """Whole trees: node n has the successors 2n + 1 and 2n + 2."""
    rng, inner, whole = np.random.default_rng(0), 2**depth - 1, 2 ** (depth + 1) - 1
    numbers, leaves = np.arange(whole), np.arange(inner, whole)
    branches = numbers < inner
    kind = "class" if operator.endswith("Classifier") else "target"
    attributes = {
        "nodes_treeids": np.repeat(np.arange(trees), whole),
        "nodes_nodeids": np.tile(numbers, trees),
        "nodes_featureids": rng.integers(0, _FEATURES, trees * whole) * np.tile(branches, trees),
        "nodes_values": rng.standard_normal(trees * whole).astype(np.float32),
        "nodes_modes": ["BRANCH_LEQ" if b else "LEAF" for b in branches] * trees,
        "nodes_truenodeids": np.tile(np.where(branches, 2 * numbers + 1, 0), trees),
        "nodes_falsenodeids": np.tile(np.where(branches, 2 * numbers + 2, 0), trees),
        f"{kind}_treeids": np.repeat(np.arange(trees), len(leaves)),
        f"{kind}_nodeids": np.tile(leaves, trees),
        f"{kind}_ids": rng.integers(0, 3 if kind == "class" else 1, trees * len(leaves)),
        f"{kind}_weights": rng.random(trees * len(leaves)).astype(np.float32),
        **({"classlabels_int64s": [0, 1, 2]} if kind == "class" else {"n_targets": 1}),
    }
    outputs = ["label", "y"] if kind == "class" else ["y"]
    return [helper.make_node(operator, ["x"], outputs, domain=_ML, **_lists(attributes))]


def _lists(attributes: dict[str, object]) -> dict[str, object]:
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in attributes.items()}


def _made(
    operator: str, rows: int, inputs: int, outputs: tuple[str, ...] = ("y",), **attributes: object
) -> Subject:
    def nodes() -> Sequence[NodeProto]:
        return [helper.make_node(operator, ["x"], outputs, domain=_ML, **_lists(attributes))]

    name, x = f"{operator} {rows}x{inputs}", normal(rows, inputs)
    return Subject(name, nodes, {"x": x}, outputs=outputs)


def _forests(rows: int) -> tuple[Subject, ...]:
    x: dict[str, Draw] = {"x": normal(rows, _FEATURES)}
    return tuple(
        Subject(
            f"{operator} {trees} trees of depth {depth}, {rows} rows",
            partial(_forest, operator, trees, depth),
            x,
            outputs=("label", "y") if operator.endswith("Classifier") else ("y",),
        )
        for operator, trees, depth in (
            ("TreeEnsembleClassifier", 100, 8),
            ("TreeEnsembleRegressor", 100, 6),
        )
    )


_RNG = np.random.default_rng(0)
_BOTH = ("label", "y")
LEARNED = (
    *_forests(1),
    *_forests(1000),
    *(
        _made(
            "LinearClassifier",
            rows,
            _FEATURES,
            _BOTH,
            coefficients=_RNG.standard_normal(3 * _FEATURES),
            intercepts=[0.1, 0.2, 0.3],
            classlabels_ints=[0, 1, 2],
            post_transform="SOFTMAX",
        )
        for rows in (1, 1000)
    ),
    _made(
        "LinearRegressor",
        1000,
        _FEATURES,
        coefficients=_RNG.standard_normal(_FEATURES),
        intercepts=[0.1],
    ),
    _made(
        "SVMRegressor",
        1000,
        _FEATURES,
        kernel_type="RBF",
        kernel_params=[0.1, 0.0, 3.0],
        n_supports=200,
        support_vectors=_RNG.standard_normal(200 * _FEATURES),
        coefficients=_RNG.standard_normal(200),
        rho=[0.1],
    ),
    _made(
        "SVMClassifier",
        1000,
        _FEATURES,
        _BOTH,
        kernel_type="RBF",
        kernel_params=[0.1, 0.0, 3.0],
        vectors_per_class=[100, 100],
        support_vectors=_RNG.standard_normal(200 * _FEATURES),
        coefficients=_RNG.standard_normal(200),
        rho=[0.1],
        classlabels_ints=[0, 1],
    ),
    _made(
        "Scaler",
        1000,
        _FEATURES,
        offset=_RNG.standard_normal(_FEATURES),
        scale=_RNG.random(_FEATURES),
    ),
    _made("Normalizer", 1000, _FEATURES, norm="L2"),
    _made(
        "Imputer", 1000, _FEATURES, imputed_value_floats=[0.5], replaced_value_float=float("nan")
    ),
    _made("Binarizer", 1000, _FEATURES, threshold=0.5),
    Subject(
        "OneHotEncoder 1000 of 20",
        lambda: [
            helper.make_node("OneHotEncoder", ["x"], ["y"], domain=_ML, cats_int64s=list(range(20)))
        ],
        {"x": integers(0, 25, 1000)},
    ),
    Subject(
        "LabelEncoder 1000 of 100",
        lambda: [
            helper.make_node(
                "LabelEncoder",
                ["x"],
                ["y"],
                domain=_ML,
                keys_int64s=list(range(100)),
                values_int64s=list(range(100, 0, -1)),
            )
        ],
        {"x": integers(0, 120, 1000)},
    ),
)
