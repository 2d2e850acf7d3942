"""Probabilities of classes from those of pairs of them, for SVMClassifier."""

from __future__ import annotations

import numpy as np

from ......tir.sizes import closed
from .....ir.build import GraphBuilder
from .....ir.ir import Graph, GraphNode
from .....ops import arithmetic, functions, logic
from .....ops.base import Operator
from .....ops.gathering import Gather
from .....ops.movement import Concat, Reshape
from .....ops.reduction import ReduceMax, ReduceSum
from .....ops.slicing import Slice
from .....regions.loop import ITERATION, Loop
from .....types import Splat, TensorType, frozen
from ...node import NodeReader
from .scores import scalar

_MOST = 100  # iterations
_CLOSE = 0.005  # over the number of classes: the error at which a row is done


def coupled(node: NodeReader, likely: str, count: int) -> str:
    """The probabilities p of the classes that minimise the sum over i and j of (r[j, i] p[i] -
    r[i, j] p[j])**2 for the probabilities r of pairs, each row until its error is small: method 2
    of T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability Estimates for Multi-class Classification by
    Pairwise Coupling" (2004), which libsvm and onnxruntime follow.

    likely: of the first class of each pair.
    """
    matrix = _matrix(node, likely, count)
    rows = node.builder.types[likely].shape[0]
    flat = TensorType("float32", (rows, count))
    zero = node.emit(arithmetic.Mul(), _first_column(node, likely), scalar(node, 0.0, likely))
    start = node.table("shares", Splat(1 / count, "float32", (1, count)))
    start = node.emit(arithmetic.Add(), zero, start)
    running = node.emit(logic.Equal(), zero, zero)
    body = _body(flat, node.builder.types[matrix])
    op = Loop(body, 2, _MOST, conditional=True)
    begins = node.table("begins", Splat(True, "bool", ()))
    names = tuple(node.builder.fresh(f"{likely}.coupled{n}") for n in range(2))
    node.define(GraphNode(op, (begins, start, running, matrix), names, node.proto.name))
    return names[0]


def _first_column(node: NodeReader, value: str) -> str:
    rows = node.builder.types[value].shape[0]
    return node.emit(Slice((0, 0), (rows, 1), (1, 1)), value)


def _matrix(node: NodeReader, likely: str, count: int) -> str:
    """Q[n, i, i], the sum over j of r[j, i]**2, and Q[n, i, j] = -r[j, i] r[i, j]."""
    pairs = count * (count - 1) // 2
    other = node.emit(arithmetic.Sub(), scalar(node, 1.0, likely), likely)
    zero = node.emit(arithmetic.Mul(), _first_column(node, likely), scalar(node, 0.0, likely))
    listed = node.emit(Concat(1), likely, other, zero)
    places = np.full((count, count), 2 * pairs, np.int64)
    first, second = np.triu_indices(count, 1)
    places[first, second] = np.arange(pairs)
    places[second, first] = pairs + np.arange(pairs)
    ahead = node.emit(Gather(1), listed, node.table("pairs", places))
    behind = node.emit(Gather(1), listed, node.table("pairs", places.T))
    squares = node.emit(ReduceSum((2,)), node.emit(arithmetic.Mul(), behind, behind))
    product = node.emit(arithmetic.Mul(), behind, ahead)
    product = node.emit(arithmetic.Mul(), product, scalar(node, -1.0, product))
    diagonal = node.table("diagonal", np.eye(count, dtype=bool)[None])
    return node.emit(logic.Where(), diagonal, squares, product)


def _body(shares: TensorType, matrix: TensorType) -> Graph:
    """One iteration: each class in turn takes the share that is best while the others keep theirs
    in proportion. It gives whether a row is left, the shares, and which rows are left.
    """
    builder = GraphBuilder("coupling")
    rows, count = shares.shape[0], closed(shares.shape[1])
    builder.input("iteration", ITERATION)
    p = before = builder.input("p", shares)
    running = builder.input("running", TensorType("bool", (rows, 1)))
    q = builder.input("q", matrix)

    def emit(op: Operator, *values: str) -> str:
        return builder.add(op, *values)

    def number(value: float) -> str:
        name = builder.fresh("number")
        return builder.constant(name, Splat(float(np.float32(value)), "float32", ()))

    def column(value: str, place: int) -> str:
        return emit(Slice((0, place), (rows, 1), (1, 1)), value)

    spread = emit(Reshape((rows, 1, count)), p)
    qp = emit(ReduceSum((2,), False), emit(arithmetic.Mul(), q, spread))
    pqp = emit(ReduceSum((1,)), emit(arithmetic.Mul(), p, qp))
    apart = emit(functions.Abs(), emit(arithmetic.Sub(), qp, pqp))
    error = emit(ReduceMax((1,)), apart)
    left = emit(logic.LessOrEqual(), number(_CLOSE / count), error)
    left = emit(logic.And(), left, running)
    one, two = number(1.0), number(2.0)
    for place in range(count):
        line = emit(Slice((0, place, 0), (rows, 1, count), (1, 1, 1)), q)
        line = emit(Reshape((rows, count)), line)
        own, at = column(line, place), column(qp, place)
        step = emit(arithmetic.Div(), emit(arithmetic.Sub(), pqp, at), own)
        scale = emit(arithmetic.Add(), step, one)
        unit = builder.constant(f"unit{place}", frozen(np.eye(count, dtype=np.float32)[[place]]))
        p = emit(arithmetic.Add(), p, emit(arithmetic.Mul(), step, unit))
        p = emit(arithmetic.Div(), p, scale)
        more = emit(arithmetic.Mul(), step, own)
        more = emit(arithmetic.Add(), more, emit(arithmetic.Mul(), at, two))
        pqp = emit(arithmetic.Add(), pqp, emit(arithmetic.Mul(), step, more))
        pqp = emit(arithmetic.Div(), emit(arithmetic.Div(), pqp, scale), scale)
        qp = emit(arithmetic.Add(), qp, emit(arithmetic.Mul(), step, line))
        qp = emit(arithmetic.Div(), qp, scale)
    p = emit(logic.Where(), left, p, before)
    some = emit(ReduceMax((0, 1), False), emit(functions.Cast("float32"), left))
    return builder.finish((emit(functions.Cast("bool"), some), p, left))
