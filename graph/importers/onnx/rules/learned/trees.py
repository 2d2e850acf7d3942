"""Rules of ensembles of decision trees: TreeEnsemble, TreeEnsembleRegressor and
TreeEnsembleClassifier.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ......tir.sizes import closed
from .....errors import ModelError
from .....ops import arithmetic, logic
from .....ops.activation import Sigmoid
from .....ops.movement import Concat, Identity
from .....ops.trees import Forest, Total
from .....types import Array
from ...node import NodeReader, NotSupported
from ..conversions import converted
from ..rule import ImportRule, Result, Several
from .forests import FeatureForm, Mode, Reals, Records, TreeNodes, Whole, records
from .scores import (
    TRANSFORMS,
    best_label,
    class_count,
    column,
    label_where,
    labels_of,
    matrix,
    probit,
    row_of,
    scalar,
    transform_of,
    transformed,
)

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")  # as TreeEnsemble counts


@dataclass(frozen=True, slots=True)
class Weights:
    """What leaves add to which target or class."""

    leaves: Whole
    targets: Whole
    weights: Reals

    def table(self, leaves: int, targets: int, total: Total) -> Reals:
        """A row for each leaf, a column for each target."""
        if self.targets.size and not 0 <= self.targets.min() <= self.targets.max() < targets:
            wrong = self.targets[(self.targets < 0) | (self.targets >= targets)][0]
            raise ModelError(
                f"model: a leaf has a weight for target {wrong}; expected 0 to {targets - 1}.",
                code="onnx-tree-target",
            )
        start = {"sum": 0.0, "min": np.inf, "max": -np.inf}[total]
        made: Reals = np.full((max(leaves, 1), targets), start, self.weights.dtype)
        add = {"sum": np.add, "min": np.minimum, "max": np.maximum}[total]
        add.at(made, (self.leaves, self.targets), self.weights)
        return made


def _listed(node: NodeReader, name: str) -> Whole:
    return np.array(node.integers(name, ()), np.int64)


def _reals(node: NodeReader, name: str) -> Reals:
    """An attribute that is a list of floats, or one of the same name that is a tensor."""
    if node.given(f"{name}_as_tensor"):
        array = node.tensor(f"{name}_as_tensor").reshape(-1)
        return array.astype(np.float64) if array.dtype == np.float64 else array.astype(np.float32)
    return np.array(node.reals(name) if node.given(name) else (), np.float32)


def _check_sizes(node: NodeReader, what: str, *arrays: Array) -> None:
    if len({array.size for array in arrays}) > 1:
        raise ModelError(
            f"model: {node.title} has lists of {[array.size for array in arrays]} {what}; "
            "expected one number of them.",
            code="onnx-tree-lists",
        )


def _places(keys: tuple[Whole, Whole], wanted: tuple[Whole, Whole], node: NodeReader) -> Whole:
    """Where the node of each pair of a tree and a node stands in the lists."""
    base = max((int(ids.max(initial=0)) for ids in (keys[1], wanted[1])), default=0) + 1
    known, asked = (trees * base + ids for trees, ids in (keys, wanted))
    order = np.argsort(known, kind="stable")
    found = np.searchsorted(known[order], asked)
    places = order[np.minimum(found, max(known.size - 1, 0))] if known.size else found
    wrong = np.flatnonzero(known[places] != asked) if known.size else np.arange(asked.size)
    if wrong.size:
        tree, own = wanted[0][wrong[0]], wanted[1][wrong[0]]
        raise ModelError(
            f"model: {node.title} has no node {own} in tree {tree}.", code="onnx-tree-node"
        )
    return places.astype(np.int64)


def _old_nodes(node: NodeReader, kind: str) -> tuple[TreeNodes, Weights]:
    """The nodes of version 1 and 3: lists with an element for each node. kind: what the lists of
    weights begin with.
    """
    trees, ids = _listed(node, "nodes_treeids"), _listed(node, "nodes_nodeids")
    modes = np.array([_mode(name) for name in node.texts("nodes_modes")], np.int64)
    yes, no = _listed(node, "nodes_truenodeids"), _listed(node, "nodes_falsenodeids")
    features, values = _listed(node, "nodes_featureids"), _reals(node, "nodes_values")
    _check_sizes(node, "nodes", trees, ids, modes, yes, no, features, values)
    if not trees.size:
        raise ModelError(f"model: {node.title} has no nodes.", code="onnx-tree-none")
    filled = _listed(node, "nodes_missing_value_tracks_true")
    filled = filled if filled.size == trees.size else np.zeros(trees.size, np.int64)
    inner = np.flatnonzero(modes != Mode.LEAF)
    for successors in (yes, no):
        successors[inner] = _places((trees, ids), (trees[inner], successors[inner]), node)
    leaves = np.full(trees.size, -1, np.int64)
    leaves[modes == Mode.LEAF] = np.arange(np.count_nonzero(modes == Mode.LEAF))
    roots = np.sort(np.unique(trees, return_index=True)[1])
    targets, weights = _listed(node, f"{kind}_ids"), _reals(node, f"{kind}_weights")
    wanted = _listed(node, f"{kind}_treeids"), _listed(node, f"{kind}_nodeids")
    _check_sizes(node, "weights", targets, weights, *wanted)
    at = leaves[_places((trees, ids), wanted, node)]
    held = at >= 0  # a weight of what is no leaf counts for nothing
    nodes = TreeNodes(features, values, modes, yes, no, leaves, filled != 0, roots, {})
    return nodes, Weights(at[held], targets[held], weights[held])


def _mode(name: str) -> Mode:
    if name not in Mode.__members__:
        raise NotSupported(f"a node has the mode '{name}'; known are {', '.join(Mode.__members__)}")
    return Mode[name]


def _new_nodes(node: NodeReader) -> tuple[TreeNodes, Weights]:
    """The nodes of TreeEnsemble: successors are numbers of nodes or of leaves."""
    features, splits = _listed(node, "nodes_featureids"), node.tensor("nodes_splits").reshape(-1)
    modes = node.tensor("nodes_modes").reshape(-1).astype(np.int64)
    targets, weights = _listed(node, "leaf_targetids"), node.tensor("leaf_weights").reshape(-1)
    count, roots = features.size, _listed(node, "tree_roots")
    dtype = np.float64 if "float64" in (splits.dtype.name, weights.dtype.name) else np.float32
    sides = []
    for side in ("true", "false"):
        ends, at = _listed(node, f"nodes_{side}leafs"), _listed(node, f"nodes_{side}nodeids")
        _check_sizes(node, "nodes", features, splits, modes, ends, at)
        limit = np.where(ends != 0, targets.size, count)
        if (
            np.any((at < 0) | (at >= limit))
            or not roots.size
            or np.any((roots < 0) | (roots >= count))
        ):
            raise ModelError(
                f"model: {node.title} names nodes or leaves that it does not have.",
                code="onnx-tree-successor",
            )
        sides.append(np.where(ends != 0, at + count, at))
    _check_sizes(node, "leaves", targets, weights)
    if np.any((modes < 0) | (modes >= Mode.LEAF)):
        raise NotSupported(f"a node has a mode that is none of 0 to {Mode.LEAF - 1}")
    filled = _listed(node, "nodes_missing_value_tracks_true")
    filled = filled if filled.size == count else np.zeros(count, np.int64)
    none = np.zeros(targets.size, np.int64)
    nodes = TreeNodes(
        np.concatenate([features, none]),
        np.concatenate([splits.astype(dtype), none.astype(dtype)]),
        np.concatenate([modes, none + Mode.LEAF]),
        np.concatenate([sides[0], none]),
        np.concatenate([sides[1], none]),
        np.concatenate([np.full(count, -1), np.arange(targets.size)]),
        np.concatenate([filled, none]) != 0,
        roots,
        _members(node, modes, dtype),
    )
    return nodes, Weights(np.arange(targets.size), targets, weights.astype(dtype))


def _members(node: NodeReader, modes: Whole, dtype: type) -> dict[int, Reals]:
    """The sets of the nodes that ask for one, each of which ends with a NaN in the list of all."""
    asking = np.flatnonzero(modes == Mode.BRANCH_MEMBER)
    given = node.given("membership_values")
    values = node.tensor("membership_values").reshape(-1).astype(dtype) if given else np.zeros(0)
    ends = np.flatnonzero(np.isnan(values))
    if ends.size != asking.size:
        raise ModelError(
            f"model: {node.title} has {ends.size} sets for {asking.size} nodes that ask for one.",
            code="onnx-tree-members",
        )
    sets = np.split(values, ends + 1)[: ends.size]
    return {int(number): own[:-1] for number, own in zip(asking, sets, strict=True)}


def _total(aggregate: str) -> Total:
    if aggregate in ("AVERAGE", "SUM"):
        return "sum"
    return "min" if aggregate == "MIN" else "max"


def _totals(
    node: NodeReader, nodes: TreeNodes, weights: Weights, targets: int, aggregate: str
) -> tuple[str, Reals]:
    """The totals of all trees in floats as wide as they are computed in; the weights as a table."""
    x = matrix(node, ("float32", "float64"))
    wide = "float64" in (
        node.builder.types[x].dtype,
        nodes.thresholds.dtype.name,
        weights.weights.dtype.name,
    )
    dtype = "float64" if wide else "float32"
    x = converted(node, x, dtype)
    members = {number: own.astype(dtype) for number, own in nodes.members.items()}
    nodes = replace(nodes, thresholds=nodes.thresholds.astype(dtype), members=members)
    made = records(nodes, closed(node.builder.types[x].shape[1]))
    total = _total(aggregate)
    count = int(nodes.leaves.max(initial=0)) + 1
    table = weights.table(count, targets, total).astype(dtype)
    op = Forest(made.depth, nodes.roots.size, total)
    operands = (made.features, made.thresholds, made.children, table)
    names = ("features", "thresholds", "children", "leaves")
    tables = (node.table(name, array) for name, array in zip(names, operands, strict=True))
    found = node.emit(op, _in_variants(node, x, made), *tables)
    if aggregate == "AVERAGE":
        found = node.emit(arithmetic.Div(), found, scalar(node, nodes.roots.size, found))
    if total != "sum" and not np.isfinite(table).all():
        empty = node.emit(logic.IsInf(total == "min", total == "max"), found)
        found = node.emit(logic.Where(), empty, scalar(node, 0.0, found), found)
    return found, table


def _in_variants(node: NodeReader, x: str, made: Records) -> str:
    """The features in every form that a node reads, side by side."""
    forms = {FeatureForm.PLAIN: x}
    if set(made.variants) & {FeatureForm.FILLED, FeatureForm.NEGATED_FILLED}:
        missing = node.emit(logic.IsNaN(), x)
        forms[FeatureForm.FILLED] = _filled(node, missing, x)
    if set(made.variants) & {FeatureForm.NEGATED, FeatureForm.NEGATED_FILLED}:
        forms[FeatureForm.NEGATED] = node.emit(arithmetic.Mul(), x, scalar(node, -1.0, x))
    if FeatureForm.NEGATED_FILLED in made.variants:
        forms[FeatureForm.NEGATED_FILLED] = _filled(node, missing, forms[FeatureForm.NEGATED])
    read = [forms[variant] for variant in made.variants]
    return read[0] if len(read) == 1 else node.emit(Concat(1), *read)


def _filled(node: NodeReader, missing: str, value: str) -> str:
    return node.emit(logic.Where(), missing, scalar(node, -np.inf, value), value)


def _with_base(node: NodeReader, found: str, base: Reals) -> str:
    """Totals with the base value of each target."""
    if not base.size or not base.any():
        return found
    row = base.astype(node.builder.types[found].dtype).reshape(1, -1)
    return node.emit(arithmetic.Add(), found, node.table("base", row))


def _behind(node: NodeReader, scores: str, targets: int, transform: str) -> str:
    """The scores of targets behind their transform."""
    if targets > 1:
        return transformed(node, scores, transform)
    if transform == "PROBIT":
        return probit(node, scores)
    if transform != "NONE":
        raise NotSupported(f"post_transform is '{transform}' of one target")
    return scores


def _regressor(node: NodeReader) -> Result:
    aggregate = node.text("aggregate_function", "SUM")
    if aggregate not in AGGREGATES:
        raise NotSupported(
            f"aggregate_function is '{aggregate}'; known are {', '.join(AGGREGATES)}"
        )
    targets, base = node.integer("n_targets"), _reals(node, "base_values")
    if targets < 1 or base.size not in (0, targets):
        raise ModelError(
            f"model: {node.title} has {targets} targets and {base.size} base values; expected "
            "one or none for each target.",
            code="onnx-tree-base",
        )
    nodes, weights = _old_nodes(node, "target")
    found, _ = _totals(node, nodes, weights, targets, aggregate)
    scores = _behind(node, _with_base(node, found, base), targets, transform_of(node))
    return Identity(), (converted(node, scores, "float32"),)


def _ensemble(node: NodeReader) -> Result:
    aggregate, transform = node.integer("aggregate_function", 1), node.integer("post_transform", 0)
    if not 0 <= aggregate < len(AGGREGATES) or not 0 <= transform < len(TRANSFORMS):
        raise NotSupported(
            f"aggregate_function is {aggregate} and post_transform {transform}; known are 0 to "
            f"{len(AGGREGATES) - 1} and 0 to {len(TRANSFORMS) - 1}"
        )
    targets = node.integer("n_targets")
    if targets < 1:
        raise ModelError(f"model: {node.title} has {targets} targets.", code="onnx-tree-targets")
    nodes, weights = _new_nodes(node)
    found, _ = _totals(node, nodes, weights, targets, AGGREGATES[aggregate])
    scores = _behind(node, found, targets, TRANSFORMS[transform])
    return Identity(), (converted(node, scores, node.type(0).dtype),)


def _classifier(node: NodeReader) -> Result:
    """The label of the first of the largest scores before the transform. A class without weights in
    the leaves of a row has the score 0.

    Of two classes of which one alone has weights, the second one is it where the score exceeds 1/2,
    or 0 where weights are negative. Where the first one has them, its score s is the second one's,
    and the first one's is 1 - s, or -s: as onnxruntime reads what converters write.
    """
    labels, transform = labels_of(node, "classlabels_int64s"), transform_of(node)
    count, base = class_count(node, labels), _reals(node, "base_values")
    nodes, weights = _old_nodes(node, "class")
    sides = np.unique(weights.targets)
    if count < 2:
        raise NotSupported("it has one label")
    one = count == 2 and sides.size == 1
    first = one and not sides[0]
    if base.size not in ((0, 1) if first else (0,) if one else (0, count)):
        raise NotSupported(f"it has {base.size} base values for {sides.size} of {count} classes")
    found, _ = _totals(node, nodes, weights, 1 if first else count, "SUM")
    scores = _with_base(node, found, base)
    label = None if one else best_label(node, labels, scores)
    if label is None:
        negative = bool((weights.weights < 0).any())
        own = scores if first else column(node, scores, 1)
        limit = scalar(node, 0.0 if negative else 0.5, own)
        label = label_where(node, labels, row_of(node, node.emit(logic.Less(), limit, own)))
        if first:
            made = _two_scores(node, scores, transform, negative)
            return Several((label, (Identity(), (converted(node, made, "float32"),))))
    made = transformed(node, scores, transform)
    return Several((label, (Identity(), (converted(node, made, "float32"),))))


def _two_scores(node: NodeReader, score: str, transform: str, negative: bool) -> str:
    """The scores of two classes from the one that there is."""
    if transform == "PROBIT":
        raise NotSupported("post_transform is 'PROBIT' of one class of two")
    if transform == "LOGISTIC" or negative:
        other = node.emit(arithmetic.Mul(), score, scalar(node, -1.0, score))
    else:
        other = node.emit(arithmetic.Sub(), scalar(node, 1.0, score), score)
    both = node.emit(Concat(1), other, score)
    return node.emit(Sigmoid(), both) if transform == "LOGISTIC" else both


_OLD_NODES = (
    "nodes_falsenodeids",
    "nodes_featureids",
    "nodes_hitrates",
    "nodes_hitrates_as_tensor",
    "nodes_missing_value_tracks_true",
    "nodes_modes",
    "nodes_nodeids",
    "nodes_treeids",
    "nodes_truenodeids",
    "nodes_values",
    "nodes_values_as_tensor",
    "base_values",
    "base_values_as_tensor",
    "post_transform",
)
_WEIGHTS = ("ids", "nodeids", "treeids", "weights", "weights_as_tensor")
_LABELS = ("classlabels_int64s", "classlabels_strings")
_NODES = (
    "aggregate_function",
    "leaf_targetids",
    "leaf_weights",
    "membership_values",
    "n_targets",
    "nodes_falseleafs",
    "nodes_falsenodeids",
    "nodes_featureids",
    "nodes_hitrates",
    "nodes_missing_value_tracks_true",
    "nodes_modes",
    "nodes_splits",
    "nodes_trueleafs",
    "nodes_truenodeids",
    "post_transform",
    "tree_roots",
)

RULES: dict[str, ImportRule] = {
    "ai.onnx.ml.TreeEnsemble": ImportRule((5,), _NODES, _ensemble),
    "ai.onnx.ml.TreeEnsembleClassifier": ImportRule(
        (1, 3, 5),
        (*_OLD_NODES, *_LABELS, *(f"class_{name}" for name in _WEIGHTS)),
        _classifier,
        outputs=2,
    ),
    "ai.onnx.ml.TreeEnsembleRegressor": ImportRule(
        (1, 3, 5),
        (
            *_OLD_NODES,
            "aggregate_function",
            "n_targets",
            *(f"target_{name}" for name in _WEIGHTS),
        ),
        _regressor,
    ),
}
