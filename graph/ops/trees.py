"""Forest: what the leaves of decision trees hold, all trees together, for each row of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import closed, largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, TensorType
from .base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    listed,
    refuse,
    shape_of,
    tensor_type,
)

Total = Literal["sum", "min", "max"]
_REDUCE = {"sum": te.sum, "min": te.min, "max": te.max}
_ADD = {"sum": np.add, "min": np.minimum, "max": np.maximum}


@dataclass(frozen=True, slots=True)
class Forest(Operator):
    """y[n, c] = the total over the trees t of values[leaf of tree t for the row x[n], c], in the
    order of the trees.

    Inputs: x of [N, F]; features, thresholds and children of [R], a record for each node of a tree,
    the roots of the trees first; values of [L, C]. From record r a row goes on to the record
    children[r] + 1 where x[n, features[r]] <= thresholds[r], else to children[r]: the two stand
    side by side, so that a step has no branch. A leaf has the threshold NaN, to which nothing
    compares, and itself as its child, so that rows wait there until the deepest ones have taken
    `depth` steps; its feature is a row of the values. Indices outside are moved inside.

    All trees of a row take each step together: they wait for memory at the same time, not one after
    the other (N. Asadi, J. Lin and A. de Vries, "Runtime Optimizations for Tree-Based Machine
    Learning Models", 2014, whose predicated walk this is).
    """

    depth: int
    trees: int
    total: Total = "sum"

    role = OperatorRole.GENERAL
    operand_names = ("x", "features", "thresholds", "children", "values")
    decides = True

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 5, 5)
        x, features, thresholds, children, values = types
        places = TensorType("int32", (*thresholds.shape,))
        fitting = x.rank == 2 and thresholds.rank == 1 and features == places == children
        same = x.dtype == thresholds.dtype == values.dtype and x.dtype in ("float32", "float64")
        if not (fitting and same and values.rank == 2):
            problem = (
                "expected [N, F], int32 of [R], [R], int32 of [R] and [L, C] in float32 or "
                f"float64, got {listed(types)}"
            )
            refuse(self, problem, code="forest-types")
        some = 1 <= self.trees <= closed(thresholds.shape[0]) and closed(x.shape[1]) > 0
        if not some or self.depth < 0 or closed(values.shape[0]) == 0:
            problem = f"expected trees, features and leaves, got {self} of {listed(types)}"
            refuse(self, problem, code="forest-sizes")
        return (TensorType(x.dtype, (x.shape[0], values.shape[1])),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        base = Operator.work(self, types)
        visits = largest(types[0].shape[0]) * self.trees
        steps = visits * (4 * self.depth + largest(types[4].shape[1]))
        return ReferenceWork(base.held + 6 * visits, base.steps + steps)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, features, thresholds, children, values = arrays
        rows = np.arange(x.shape[0])[:, None]
        record = np.broadcast_to(np.arange(self.trees), (x.shape[0], self.trees))
        for _ in range(self.depth):
            feature = np.clip(features[record], 0, x.shape[1] - 1)
            goes = x[rows, feature] <= thresholds[record]
            record = np.clip(children[record] + goes, 0, thresholds.size - 1)
        leaf = np.clip(features[record], 0, values.shape[0] - 1)
        total = values[leaf[:, 0]]
        with np.errstate(all="ignore"):
            for tree in range(1, self.trees):
                total = cast(Array, _ADD[self.total](total, values[leaf[:, tree]]))
        return (total,)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """Each step is a stage of two tensors, which no reader repeats."""
        x, features, thresholds, children, values = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        records, width = closed(shape_of(thresholds)[0]), closed(shape_of(x)[1])
        leaves = closed(shape_of(values)[0])
        shape = (shape_of(x)[0], self.trees)
        zero, one = te.const(0, "int32"), te.const(1, "int32")
        found: tuple[Tensor, ...] = ()

        def record(n: Expr, t: Expr, before: tuple[Tensor, ...]) -> Expr:
            at = before[0][n, t] + before[1][n, t] if before else te.cast(t, "int32")
            return te.clamp_index(at, records)

        for number in range(self.depth):

            def step(n: Expr, t: Expr, before: tuple[Tensor, ...] = found) -> tuple[Expr, Expr]:
                r = record(n, t, before)
                goes = x[n, te.clamp_index(features[r], width)] <= thresholds[r]
                return children[r], te.select(goes, one, zero)

            names = f"{name}_pair{number}", f"{name}_side{number}"
            found = te.compute(shape, step, name=names)
        leaf = te.compute(shape, lambda n, t: features[record(n, t, found)], name=f"{name}_leaf")
        tree = te.reduce_axis(self.trees, name="tree")

        def total(n: Expr, c: Expr) -> Expr:
            return _REDUCE[self.total](values[te.clamp_index(leaf[n, tree], leaves), c], axis=tree)

        return (te.compute(result.shape, total, name=name),)
