"""Products of floats of 16 bits where a caller asks for them: which products, how, and why not.

A product of float32 by constant weights (MatMul, Gemm, Conv of one group) is computed
- "weights": with weights that are rounded to 16 bits, half to even, when the model is compiled; a
  kernel reads half the bytes, converts them and computes in float32, which pays where a product
  waits for memory;
- "both": with data rounded to bfloat16 as well, where it is stored, for processors that multiply
  pairs of bfloat16 and add up in float32 (vdpbf16ps of AVX512-BF16).
What is clearly faster by its price is taken; else a product stays float32, unless the caller names
it. All else is computed in float32: sums, normalisations, softmax, activations. What reads rounded
data elementwise widens it again, so that it is stored once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ...runtime.model.precision_report import FLOATS, LayerPrecision, LayerTimes
from ...tir.errors import known_names
from ..errors import ModelError
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, make_graph, rebuilt
from ..ops.arithmetic import Add
from ..ops.base import Operator, OperatorRole
from ..ops.convolution import Conv
from ..ops.functions import Cast
from ..ops.half_products import HALVES, HalfConv, HalfMatMul
from ..ops.matmul import Gemm, MatMul
from ..passes.dead_code import DeadCode
from ..types import Array, Splat, TensorType, array_of, numpy_type, owned

Precision = str | Mapping[str, str]  # of all products, or of those that are named
Price = Callable[[Graph], float]  # seconds of the one node of a graph
Form = Literal["float32", "weights", "both"]
Product = MatMul | Gemm | Conv

WORTH = 0.9  # of the price in float32, and of that with float32 data
PAIRS = "avx512+bf16"  # the targets whose processors multiply pairs of bfloat16


class PrecisionError(ModelError):
    """Products for which a precision is asked are not in the model, or cannot have it."""


@dataclass(frozen=True, slots=True)
class ProductPrecision:
    """How a product is computed. kind: the type of 16 bits, or "float32". reason: in words. times:
    by the cost model, in the best form of 16 bits and in float32; None where only float32 can be.
    """

    node: GraphNode
    form: Form
    kind: str
    reason: str
    times: LayerTimes | None = None

    @property
    def layer(self) -> LayerPrecision:
        """The product as reports have it."""
        kind = FLOATS
        if self.form != "float32":
            kind = f"{'weights' if self.form == 'weights' else 'data and weights'} in {self.kind}"
        name = self.node.name or self.node.outputs[0]
        return LayerPrecision(name, kind, self.reason, times=self.times)


def choose_halves(
    imported: Graph, graph: Graph, precision: Precision, price: Price, *, pairs: bool
) -> tuple[ProductPrecision, ...]:
    """What is decided of each product of a graph, in order; of none where float32 is asked for.

    imported: the model before passes, whose names `precision` means. graph: after passes. price: of
    one operator on the target. pairs: whether the target multiplies pairs of bfloat16.
    Raises: PrecisionError for names that are no products, and products that must stay float32.
    """
    wanted = _by_label(imported, precision)
    products = [node for node in graph.nodes if isinstance(node.op, Product)]
    if isinstance(precision, Mapping):
        _check_found(wanted, products)
    chooser = _Chooser(graph, price, pairs)
    found = []
    for node in products:
        named = next((kind for label, kind in wanted.items() if _is_called(node, label)), None)
        kind = named or ("float32" if isinstance(precision, Mapping) else precision)
        if kind in HALVES:
            found.append(chooser.choose(node, kind, forced=named is not None))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class HalfProducts:
    """Replace products by ones of 16 bits, as was decided.

    y = x @ w   ->   y = HalfMatMul(x, w16)                    "weights"
                ->   x16 = Cast(x); y = HalfMatMul(x16, w16)   "both"
    """

    choices: tuple[ProductPrecision, ...]

    keeps_rounding: ClassVar[bool] = False

    def __call__(self, graph: Graph) -> Graph:
        found = {
            one.node.outputs[0]: one
            for one in self.choices
            if one.form != "float32" and one.node in graph.nodes
        }
        return DeadCode()(_Writer(graph, found).write()) if found else graph


def _by_label(imported: Graph, precision: Precision) -> dict[str, str]:
    """The type of each product that a caller names, by the name of its node, or of its result where
    that has none. Raises: PrecisionError.
    """
    if not isinstance(precision, Mapping):
        return {}
    products = [node for node in imported.nodes if isinstance(node.op, Product)]
    found = {}
    for name, kind in precision.items():
        # products first: all nodes that a linear layer of torch becomes have its name
        each = (n for n in (*products, *imported.nodes) if name in (n.name, *n.outputs))
        node = next(each, None)
        if node is None or not isinstance(node.op, Product):
            problem = "the model has no such node or value"
            if node is not None:
                problem = f"it is {node.title}, and a product was expected"
            known = known_names(name, (node.name or node.outputs[0] for node in products))
            raise PrecisionError(
                f"compile: precision names '{name}': {problem}; its products are {known}.",
                code="precision-name",
            )
        found[node.name or node.outputs[0]] = kind
    return found


def _check_found(wanted: Mapping[str, str], products: Sequence[GraphNode]) -> None:
    """Refuse names of products that passes made a part of others. Raises: PrecisionError."""
    for label, kind in wanted.items():
        if kind in HALVES and not any(_is_called(node, label) for node in products):
            raise PrecisionError(
                f"compile: precision names '{label}', which a pass made a part of another "
                "operator.",
                code="precision-merged",
                hints=(
                    "engine.explain() says what each pass did; "
                    "passes=tw.PASSES.without(...) leaves one out.",
                ),
            )


def _is_called(node: GraphNode, label: str) -> bool:
    """Whether a node is the one of a label; passes add to the names of values."""
    if node.name:
        return node.name == label
    return any(value == label or value.startswith(f"{label}.") for value in node.outputs)


class _Chooser:
    def __init__(self, graph: Graph, price: Price, pairs: bool) -> None:
        self.graph = graph
        self.price = price
        self.pairs = pairs
        self.readers = graph.consumers

    def choose(self, node: GraphNode, kind: str, *, forced: bool) -> ProductPrecision:
        """The form of the least price. Raises: PrecisionError where it is `forced` and has none."""
        why = _why_float32(self.graph, node, kind)
        if why:
            if forced:
                raise PrecisionError(
                    f"compile: precision asks for {node.title} in {kind}: {why}.",
                    code="precision-product",
                    hints=("leave it out of precision=...: it stays float32.",),
                )
            return ProductPrecision(node, "float32", "float32", why)
        prices = {"weights": self._priced(node, kind, "float32")}
        if kind == "bfloat16" and self.pairs:
            prices["both"] = self._priced(node, kind, kind) + self._rounding(node, kind)
        best = "weights"  # which rounds less, unless rounding data as well is clearly faster
        if prices.get("both", math.inf) < WORTH * prices[best]:
            best = "both"
        own = self._priced(node, "float32", "float32")
        times = LayerTimes(narrow=prices[best], floats=own, is_estimate=True)
        if forced:
            return ProductPrecision(node, _form(best), kind, "as asked", times)
        if prices[best] >= WORTH * own:  # of equal prices, that which rounds nothing
            why = f"not clearly faster in {kind}"
            return ProductPrecision(node, "float32", "float32", why, times)
        return ProductPrecision(node, _form(best), kind, "", times)

    def _priced(self, node: GraphNode, weights: str, data: str) -> float:
        """Seconds of the product alone with operands of these types."""
        x, w = self.graph.types[node.inputs[0]], _plain_weights(self.graph, node)
        op = _plain(node.op) if weights == "float32" else _half(node.op)
        alone = GraphNode(op, ("x", "w"), ("y",))
        types = {"x": TensorType(data, x.shape)}
        known = {"w": Splat(0.5, weights, w.shape)}
        return self.price(make_graph("product", types, ("y",), (alone,), known))

    def _rounding(self, node: GraphNode, kind: str) -> float:
        """Seconds of rounding its data, where no kernel that makes it does that."""
        value = node.inputs[0]
        if _rounds_in_place(self.graph, self.readers, value):
            return 0.0
        cast = GraphNode(Cast(kind), ("x",), ("y",))
        types = {"x": self.graph.types[value]}
        return self.price(make_graph("rounding", types, ("y",), (cast,), {}))


def _form(name: str) -> Form:
    return "both" if name == "both" else "weights"


def _why_float32(graph: Graph, node: GraphNode, kind: str) -> str:
    """Why a product must be computed in float32; empty where it need not."""
    types, op = graph.types, node.op
    if types[node.outputs[0]].dtype != "float32":
        return f"its numbers are {types[node.outputs[0]].dtype}"
    weights = graph.constants.get(node.inputs[1])
    if weights is None or isinstance(weights, Splat):
        return "its weights are no constant" if weights is None else "its weights are one number"
    match op:
        case Gemm() if op.trans_a or op.alpha != 1.0 or op.beta != 1.0:
            return "it scales or transposes its operands"
        case Conv() if op.groups > 1:
            return "it has groups"
        case Conv() if op.layout != "NHWC" or op.data is not None:
            return "it reads few channels where they lie"
    with np.errstate(over="ignore"):
        rounded = array_of(weights).astype(numpy_type(kind))
    if not np.isfinite(rounded).all():
        return f"its weights do not fit {kind}"
    return ""


def _plain(op: Operator) -> Operator:
    return MatMul() if isinstance(op, Gemm) else op


def _half(op: Operator) -> Operator:
    """The product of floats of 16 bits, without a bias."""
    if isinstance(op, Conv):
        return HalfConv(op.strides, op.pads, op.dilations, op.groups, op.layout)
    return HalfMatMul()


def _plain_weights(graph: Graph, node: GraphNode) -> Array:
    """The constant weights as rows of inputs by columns of outputs, where they are a matrix."""
    array = array_of(graph.constants[node.inputs[1]])
    return array.T if isinstance(node.op, Gemm) and node.op.trans_b else array


def _rounds_in_place(graph: Graph, readers: Mapping[str, list[GraphNode]], value: str) -> bool:
    """Whether the kernel that makes a value may store it rounded: it is no input or output, and who
    reads it is a product, or widens what it reads as it computes elementwise.
    """
    made = value not in graph.inputs and value not in graph.outputs
    return made and all(
        isinstance(node.op, Product) or node.op.role is OperatorRole.ELEMENTWISE
        for node in readers[value]
    )


class _Writer:
    """The graph with other products. halves: of values that are rounded, the rounded ones; wide:
    these as float32 again; weights: constants that are rounded.
    """

    def __init__(self, graph: Graph, found: Mapping[str, ProductPrecision]) -> None:
        self.graph = graph
        self.found = found
        self.builder = GraphBuilder.like(graph)
        self.readers = graph.consumers
        self.rounded = dict(self._rounded())
        self.halves: dict[str, str] = {}
        self.wide: dict[str, str] = {}
        self.weights: dict[tuple[str, str], str] = {}

    def write(self) -> Graph:
        """All nodes anew, each behind what it reads."""
        for value in self.graph.inputs:
            self._round(value)
        for node in self.graph.nodes:
            one = self.found.get(node.outputs[0])
            if one is not None:
                self._product(one)
            else:
                inputs = tuple(self.wide.get(value, value) for value in node.inputs)
                self.builder.add_node(GraphNode(node.op, inputs, node.outputs, node.name))
            for value in node.outputs:
                self._round(value)
        result = self.builder.finish(self.graph.outputs)
        return rebuilt(self.graph, result.nodes, result.constants)

    def _rounded(self) -> Iterator[tuple[str, str]]:
        """The values that products read rounded, with their types."""
        for one in self.found.values():
            if one.form == "both":
                yield one.node.inputs[0], one.kind

    def _round(self, value: str) -> None:
        """Behind what makes a value, what rounds it, and what widens that for other readers."""
        kind = self.rounded.get(value)
        if kind is None:
            return
        name = self.builder.fresh(f"{value}.half")
        self.halves[value] = self.builder.add(Cast(kind), value, output=name)
        others = [n for n in self.readers[value] if n.outputs[0] not in self.found]
        if others and _rounds_in_place(self.graph, self.readers, value):
            name = self.builder.fresh(f"{value}.wide")
            self.wide[value] = self.builder.add(Cast("float32"), self.halves[value], output=name)

    def _product(self, one: ProductPrecision) -> None:
        node, builder = one.node, self.builder
        x = node.inputs[0]
        data = self.halves[x] if one.form == "both" else self.wide.get(x, x)
        biased = len(node.inputs) == 3
        (result,) = node.outputs
        made = builder.fresh(f"{result}.product") if biased else result
        builder.add(_half(node.op), data, self._weights(one), output=made, name=node.name)
        if biased:
            bias = self.wide.get(node.inputs[2], node.inputs[2])
            builder.add(Add(), made, bias, output=result, name=node.name)

    def _weights(self, one: ProductPrecision) -> str:
        """The weights of a product in 16 bits."""
        value = one.node.inputs[1]
        array = _plain_weights(self.graph, one.node)
        key = (value, f"{one.kind} {array.shape}")
        if key not in self.weights:
            half = owned(np.ascontiguousarray(array.astype(numpy_type(one.kind))))
            self.weights[key] = self.builder.constant(self.builder.fresh(f"{value}.half"), half)
        return self.weights[key]
