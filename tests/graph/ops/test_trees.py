"""Ensembles of decision trees against onnxruntime: every mode of a node, missing values, every
aggregate and transform, and what is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
import pytest

from tests.graph.learned_models import agrees, expected_of, learned_model, tensor
from tests.graph.ops.operators import TREES, numbers
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.trees import Forest
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
NODE_LISTS = tuple(
    f"nodes_{name}"
    for name in (
        *("treeids", "nodeids", "featureids", "values"),
        *("modes", "truenodeids", "falsenodeids"),
    )
)
WIDTH = 4


@dataclass
class RandomTrees:
    """Trees at random as the lists of ONNX's first versions; thresholds are whole numbers."""

    rng: np.random.Generator
    mode: str = ""
    targets: int = 1
    positive: bool = False
    deepest: int = 4
    nodes: dict[str, list[object]] = field(default_factory=dict)
    weights: dict[str, list[object]] = field(default_factory=dict)

    def lists(self, kind: str, trees: int = 4) -> dict[str, object]:
        """The attributes. kind: of the weights, target or class."""
        for tree in range(trees):
            self._grow(tree, [0], 0)
        weights = {f"{kind}_{name}": values for name, values in self.weights.items()}
        return {**{f"nodes_{name}": values for name, values in self.nodes.items()}, **weights}

    def _grow(self, tree: int, count: list[int], depth: int) -> int:
        own = count[0]
        count[0] += 1
        leaf = depth == self.deepest or (depth > 0 and self.rng.random() < 0.2)
        mode = "LEAF" if leaf else self.mode or str(self.rng.choice(MODES))
        node = {
            "treeids": tree,
            "nodeids": own,
            "featureids": int(self.rng.integers(WIDTH)),
            "values": float(self.rng.integers(-3, 4)),
            "modes": mode,
            "missing_value_tracks_true": int(self.rng.random() < 0.5),
            "truenodeids": 0,
            "falsenodeids": 0,
        }
        for name, value in node.items():
            self.nodes.setdefault(name, []).append(value)
        place = len(self.nodes["modes"]) - 1
        if not leaf:
            for side in ("truenodeids", "falsenodeids"):
                self.nodes[side][place] = self._grow(tree, count, depth + 1)
            return own
        for target in range(self.targets):
            weight = self.rng.random() if self.positive else self.rng.normal()
            own_weight = {"treeids": tree, "nodeids": own, "ids": target, "weights": float(weight)}
            for name, value in own_weight.items():
                self.weights.setdefault(name, []).append(value)
        return own


def rows(rng: np.random.Generator, dtype: str = "float32") -> Array:
    """Whole numbers, most of which are thresholds, others, infinities, and NaN."""
    x = rng.integers(-4, 5, (60, WIDTH)).astype(dtype)
    if dtype.startswith("float"):
        x += (rng.random(x.shape) < 0.3) * rng.normal(size=x.shape).astype(dtype)
        for share, value in ((0.1, np.nan), (0.03, np.inf), (0.03, -np.inf)):
            x[rng.random(x.shape) < share] = value
    return x


REGRESSORS: list[dict[str, object]] = [
    {"n_targets": 1},
    {"n_targets": 1, "aggregate_function": "MIN", "base_values": [0.5]},
    {"n_targets": 2, "aggregate_function": "MAX", "post_transform": "LOGISTIC"},
    {"n_targets": 3, "aggregate_function": "AVERAGE", "base_values": [1.0, 2.0, 3.0]},
    {"n_targets": 3, "post_transform": "SOFTMAX"},
    {"n_targets": 3, "post_transform": "SOFTMAX_ZERO"},
]


@pytest.mark.parametrize("mode", [*MODES, ""])
def test_every_mode_goes_where_onnxruntime_goes(mode: str) -> None:
    for number, attributes in enumerate(REGRESSORS):
        rng = np.random.default_rng(number)
        trees = RandomTrees(rng, mode, int(str(attributes["n_targets"])))
        lists = trees.lists("target")
        x = {"x": rows(rng)}
        agrees(learned_model("TreeEnsembleRegressor", {**attributes, **lists}, x), x)


@pytest.mark.parametrize("engine", [False, pytest.param(True, marks=pytest.mark.needs_cc)])
def test_floats_of_64_bits_are_compared_as_they_are(engine: bool) -> None:
    rng = np.random.default_rng(3)
    lists = RandomTrees(rng, targets=2, deepest=2 if engine else 5).lists("target", 3)
    for name in ("nodes_values", "target_weights"):
        lists[f"{name}_as_tensor"] = tensor(np.array(lists.pop(name)))
    x = {"x": rows(rng, "float64")}
    model = learned_model("TreeEnsembleRegressor", {"n_targets": 2, **lists}, x, version=3)
    agrees(model, x, engine=engine)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [3, 5])
def test_classifiers_agree_on_labels_and_scores(transform: str, classes: int) -> None:
    rng = np.random.default_rng(classes)
    lists = RandomTrees(rng, targets=classes).lists("class")
    attributes = {
        **lists,
        "classlabels_int64s": [10 * n + 3 for n in range(classes)],
        "post_transform": transform,
        "base_values": [0.1 * n for n in range(classes)],
    }
    for dtype in ("float32", "float64", "int64", "int32"):
        x = {"x": rows(rng, dtype)}
        agrees(learned_model("TreeEnsembleClassifier", attributes, x, ("label", "y")), x)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_one_class_of_two_stands_for_both(positive: bool, transform: str) -> None:
    rng = np.random.default_rng(1)
    lists = RandomTrees(rng, positive=positive).lists("class", 2)
    x = {"x": rows(rng)}
    for base, side in (([], 0), ([0.25], 0), ([], 1)):
        attributes = {
            **lists,
            "class_ids": [side] * np.size(lists["class_ids"]),
            "classlabels_int64s": [3, 7],
            "post_transform": transform,
        }
        if base:
            attributes["base_values"] = base
        agrees(learned_model("TreeEnsembleClassifier", attributes, x, ("label", "y")), x)


def test_two_classes_with_weights_have_the_label_of_the_larger_score() -> None:
    """onnxruntime gives the label 1 wherever the second score is above 0."""
    rng = np.random.default_rng(2)
    lists = RandomTrees(rng, targets=2, positive=True).lists("class")
    x = {"x": rows(rng)}
    attributes = {**lists, "classlabels_int64s": [3, 7]}
    model = learned_model("TreeEnsembleClassifier", attributes, x, ("label", "y"))
    found = evaluate(import_onnx(model, shapes={"n": 60}), x, dtype=None)
    scores = expected_of(model, x)["y"]
    np.testing.assert_allclose(found["y"], scores, rtol=2e-6)
    np.testing.assert_array_equal(found["label"], np.where(scores[:, 1] > scores[:, 0], 7, 3))


def ensemble(**changes: object) -> onnx.ModelProto:
    """A TreeEnsemble of two nodes, of which the second asks for a set."""
    attributes: dict[str, object] = {
        "n_targets": 1,
        "tree_roots": [0],
        "nodes_modes": tensor(np.array([0, 6], np.uint8)),
        "nodes_featureids": [0, 1],
        "nodes_splits": tensor(np.array([0.5, 0], np.float32)),
        "nodes_truenodeids": [0, 1],
        "nodes_trueleafs": [1, 1],
        "nodes_falsenodeids": [1, 2],
        "nodes_falseleafs": [0, 1],
        "membership_values": tensor(np.array([2, -1, 4, 4, np.nan], np.float32)),
        "leaf_targetids": [0, 0, 0],
        "leaf_weights": tensor(np.array([1, 10, 100], np.float32)),
    }
    x = {"x": np.zeros((1, 2), np.float32)}
    return learned_model("TreeEnsemble", {**attributes, **changes}, x, version=5)


@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
def test_a_set_of_members_is_searched(aggregate: int) -> None:
    x = np.array([[0, 9], [1, 2], [1, 3], [1, -1], [1, 4], [1, 5], [1, np.nan], [np.nan, 4]])
    model = ensemble(aggregate_function=aggregate)
    graph = import_onnx(model, shapes={"n": 8})
    found = evaluate(graph, {"x": x.astype(np.float32)}, dtype=None)["y"]
    np.testing.assert_array_equal(found[:, 0], [1, 10, 100, 10, 10, 100, 100, 10])


REFUSED = [
    (
        {"n_targets": 0},
        "model: node 'the_node' (TreeEnsemble) has 0 targets. [onnx-tree-targets]",
    ),
    (
        {"leaf_targetids": [0, 0, 1]},
        "model: a leaf has a weight for target 1; expected 0 to 0. [onnx-tree-target]",
    ),
    (
        {"nodes_featureids": [0, 2]},
        "model: a tree reads feature 2; expected 0 to 1. [onnx-tree-feature]",
    ),
    (
        {"nodes_featureids": [0]},
        "model: node 'the_node' (TreeEnsemble) has lists of [1, 2, 2, 2, 2] nodes; expected one "
        "number of them. [onnx-tree-lists]",
    ),
    (
        {"tree_roots": [2]},
        "model: node 'the_node' (TreeEnsemble) names nodes or leaves that it does not have. "
        "[onnx-tree-successor]",
    ),
    (
        {"nodes_modes": tensor(np.array([0, 0], np.uint8))},
        "model: node 'the_node' (TreeEnsemble) has 1 sets for 0 nodes that ask for one. "
        "[onnx-tree-members]",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_trees_that_do_not_hold_together_are_refused(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ModelError) as caught:
        import_onnx(ensemble(**changes), shapes={"n": 1})
    assert caught.value.message + f" [{caught.value.code}]" == message


def stump(**changes: object) -> onnx.ModelProto:
    lists = {
        "n_targets": 1,
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.0, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
    }
    given = {name: value for name, value in {**lists, **changes}.items() if value != []}
    x = {"x": np.zeros((1, 2), np.float32)}
    return learned_model("TreeEnsembleRegressor", given, x)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"nodes_falsenodeids": [7, 0, 0]},
            "model: node 'the_node' (TreeEnsembleRegressor) has no node 7 in tree 0. "
            "[onnx-tree-node]",
        ),
        (
            {"base_values": [1.0, 2.0]},
            "model: node 'the_node' (TreeEnsembleRegressor) has 1 targets and 2 base values; "
            "expected one or none for each target. [onnx-tree-base]",
        ),
        (
            {name: [] for name in NODE_LISTS},
            "model: node 'the_node' (TreeEnsembleRegressor) has no nodes. [onnx-tree-none]",
        ),
    ],
)
def test_lists_that_do_not_hold_together_are_refused(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ModelError) as caught:
        import_onnx(stump(**changes), shapes={"n": 1})
    assert caught.value.message + f" [{caught.value.code}]" == message


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"nodes_modes": ["BRANCH_OR", "LEAF", "LEAF"]}, "a node has the mode 'BRANCH_OR'"),
        ({"aggregate_function": "MEDIAN"}, "aggregate_function is 'MEDIAN'"),
        ({"post_transform": "SOFTMAX"}, "post_transform is 'SOFTMAX' of one target"),
        ({"nodes_falsenodeids": [0, 0, 0]}, "a tree is deeper than 256"),
    ],
)
def test_what_no_rule_knows_is_refused(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(UnsupportedOperator) as caught:
        import_onnx(stump(**changes), shapes={"n": 1})
    assert reason in str(caught.value)


def test_the_operator_refuses_what_does_not_fit() -> None:
    types = [TensorType("float32", (5, 3)), *(TensorType(a.dtype.name, a.shape) for a in TREES)]
    with pytest.raises(ModelError) as caught:
        Forest(2, 2).infer((*types, TensorType("float64", (4, 2))))
    assert str(caught.value) == (
        "ModelError: Forest: expected [N, F], int32 of [R], [R], int32 of [R] and [L, C] in "
        "float32 or float64, got float32[5, 3], int32[8], float32[8], int32[8], float64[4, 2]. "
        "[forest-types]"
    )
    with pytest.raises(ModelError) as caught:
        Forest(2, 9).infer((*types, TensorType("float32", (4, 2))))
    assert str(caught.value) == (
        "ModelError: Forest: expected trees, features and leaves, got Forest(depth=2, trees=9, "
        "total='sum') of float32[5, 3], int32[8], float32[8], int32[8], float32[4, 2]. "
        "[forest-sizes]"
    )


def test_no_rows_give_no_totals() -> None:
    (y,) = Forest(2, 2).reference(numbers(0, 3), *TREES, numbers(4, 2))
    assert y.shape == (0, 2)
