"""tw.quantize_weights: the constant weights of products become levels of few bits; the data stay
as they are, or may be rounded to bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ...errors import ModelError
from ...given_model import imported_graph
from ...importers.symbols import Shapes
from ...importers.traced_model import traced_model
from ...ir.build import GraphBuilder
from ...ir.ir import Graph, GraphNode, RegionOperator, rebuilt
from ...ops.arithmetic import Add
from ...ops.block_matmul import WORD_BITS, BlockMatMul, packed_words
from ...ops.matmul import Gemm, MatMul
from ...ops.movement import Transpose
from ...options import check_constants
from ...passes.constant_folding import ConstantFolding
from ...passes.dead_code import DeadCode
from ...reference.reference import evaluate
from ...types import Array, Floats, Shape, Splat
from ..channels.channel_factors import readers_of, rescaled
from .awq import DataMoments, awq_factors, round_in_ranges
from .block_rounding import RoundedBlocks, round_to_nearest
from .gptq import round_for_data

METHODS = ("rtn", "gptq", "awq")
BITS = (2, 4, 8)
DATA_TYPES = ("float", "int8")


class QuantizeError(ModelError):
    """Weights cannot be quantised in the way that was asked for."""


@dataclass(frozen=True, slots=True)
class WeightReport:
    """What became of the weights of a product.

    node: its name in the model; value: the name of the weights; bits: of a level, 0 where they stay
    as they are, and `reason` says why. error: the root mean square of what rounding changed, over
    that of the weights. bytes: of levels, scales and zeros, or of the weights that stay.
    """

    node: str
    value: str
    shape: Shape
    bits: int
    error: float
    bytes: int
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"'{self.node}' stays as it is: {self.reason}"
        return f"'{self.node}': {self.bits} bits, error {self.error:.2%}, {self.bytes:,} bytes"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class QuantizedGraph(Graph):
    """A Graph, with what became of the weights of each of its products, in the order of the
    nodes.
    """

    weights: tuple[WeightReport, ...] = ()

    __repr__ = Graph.__str__

    @property
    def report(self) -> str:
        """What became of the weights, a line for each product."""
        return "\n".join(map(str, self.weights))


def quantize_weights(
    model: object,
    *,
    bits: int = 4,
    group: int = 32,
    method: str = "rtn",
    symmetric: bool = True,
    only: Collection[str] | None = None,
    args: Sequence[object] | None = None,
    kwargs: Mapping[str, object] | None = None,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    data: Iterable[Mapping[str, Array]] | None = None,
    data_type: str = "float",
) -> QuantizedGraph:
    """Replace the constant weights of MatMul and Gemm by levels of few bits, of which each block of
    `group` steps of a sum has a scale and, where it is not symmetric, a zero. The result is a Graph
    for tw.compile; what stays as it is, and why, stands in its `weights` and its `report`.

    model, args, kwargs, shapes, constants: as tw.compile has them. bits: 2, 4 or 8; group: steps of
    a block, a number of whole words of 32 bits. method: "rtn" rounds to the nearest level, bit for
    bit as onnxruntime's quantiser of MatMulNBits; "gptq" (Frantar et al., 2023) lets the steps of a
    sum make up for the rounding of those before them; "awq" (Lin et al., 2023) gives the channels
    of large data more of the levels, by factors that what makes the data is divided by, or a
    product in front, and searches the ranges of blocks. data, for the last two: inputs of runs,
    each a dict of arrays by name, on which NumPy runs the model as it was. only: names of nodes or
    of weights, of which alone the weights are quantised. Weights of float32 and float16 are; data,
    sums and bias keep their type. data_type: "int8" permits builds that are not strict to round the
    data of these products to levels of 8 bits, `group` numbers with a scale, as accuracy level 4 of
    MatMulNBits does (`graph/ops/rounded_blocks.py`); "float" does not. A Graph is refused
    constants, and shapes have no effect on one.
    Raises: QuantizeError, ModelError.
    """
    _check(bits, group, method)
    check_data_type("quantize_weights", data_type)
    _check_data(method, data)
    check_constants(constants)
    traced = traced_model(model, args, kwargs, shapes)
    graph = imported_graph(traced, shapes, constants)
    if method == "awq":
        graph = ConstantFolding()(graph)  # factors are those of constants
    found = list(weighted_products(graph))
    chosen = None if only is None else _chosen(found, only)
    taken = [
        replace(product, reason=product.reason or "it is not among `only`")
        if chosen is not None and product.node.outputs[0] not in chosen
        else product
        for product in found
    ]
    moments = {} if data is None else _moments(graph, taken, data)
    if method == "awq":
        graph, taken, moments = _with_factors(graph, taken, moments, bits, group, symmetric)
    by_key = _by_key(taken, moments)
    op = BlockMatMul(bits, group, data_of(data_type))
    writer = _Writer(graph, op, symmetric, method, by_key)
    for product in taken:
        writer.take(product)
    return writer.finish()


def _check(bits: int, group: int, method: str) -> None:
    if bits not in BITS or isinstance(bits, bool):
        raise QuantizeError(
            f"quantize_weights: bits={bits!r}; expected {', '.join(map(str, BITS))}.",
            code="quantize-bits",
        )
    if isinstance(group, bool) or group < 1 or group * bits % WORD_BITS:
        raise QuantizeError(
            f"quantize_weights: group={group!r} of {bits} bits is no number of whole words; "
            f"expected a multiple of {WORD_BITS // bits}.",
            code="quantize-group",
        )
    if method not in METHODS:
        listed = " or ".join(map(repr, METHODS))
        raise QuantizeError(
            f"quantize_weights: method={method!r} has no meaning; expected {listed}.",
            code="quantize-method",
        )


def check_data_type(function: str, data_type: str) -> None:
    """Refuse what is no type of data, in the name of a function. Raises: QuantizeError."""
    if data_type not in DATA_TYPES:
        raise QuantizeError(
            f"{function}: data_type={data_type!r}; expected {' or '.join(map(repr, DATA_TYPES))}.",
            code="quantize-data-type",
        )


def data_of(data_type: str) -> str:
    """What a BlockMatMul permits for a type of data."""
    return "" if data_type == "float" else data_type


def _check_data(method: str, data: object) -> None:
    if isinstance(data, Mapping):
        raise QuantizeError(
            "quantize_weights: data is a dict, the inputs of one run; expected an iterable of "
            "such.",
            code="quantize-runs",
            hints=("data=[item] has one run.",),
        )
    if (data is None) == (method == "rtn"):
        return
    problem = "takes no data" if method == "rtn" else "needs data"
    raise QuantizeError(
        f"quantize_weights: method={method!r} {problem}; expected data=None for 'rtn' and inputs "
        "of runs for 'gptq' and 'awq'.",
        code="quantize-data",
        hints=("data=[{'x': array}, ...] has a dict for each run.",),
    )


@dataclass(frozen=True, slots=True)
class WeightedProduct:
    """A node that multiplies with a constant. value: the constant; matrix: it as [K, N], None where
    `reason` says why it stays; rest: a bias that is added behind.
    """

    node: GraphNode
    value: str
    matrix: Array | None
    reason: str = ""
    rest: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, bool]:
        """What products with the same weights have in common."""
        return self.value, isinstance(self.node.op, Gemm) and self.node.op.trans_b

    @property
    def names(self) -> tuple[str, ...]:
        """By what `only` may call it."""
        return self.node.name, self.node.outputs[0], self.value


def weighted_products(graph: Graph) -> Iterator[WeightedProduct]:
    """The nodes whose weights are constants, and those that hold graphs."""
    makers = graph.producers
    for node in graph.nodes:
        if isinstance(node.op, RegionOperator):
            yield WeightedProduct(
                node, "", None, "the products of branches and loops are not looked at"
            )
        if not isinstance(node.op, MatMul | Gemm):
            continue
        left, right = (_constant(graph, makers, value) for value in node.inputs[:2])
        if right is not None:
            yield _weighted(graph, node, node.inputs[1], right)
        elif left is not None:
            yield WeightedProduct(node, node.inputs[0], None, "its weights are the first operand")


def _constant(graph: Graph, makers: Mapping[str, GraphNode], value: str) -> Array | Splat | None:
    """A constant, or the transpose of one."""
    if value in graph.constants:
        return graph.constants[value]
    maker = makers.get(value)
    if maker is None or not isinstance(maker.op, Transpose):
        return None
    source = graph.constants.get(maker.inputs[0])
    return source.transpose(maker.op.permutation) if isinstance(source, np.ndarray) else None


def _weighted(graph: Graph, node: GraphNode, value: str, weights: Array | Splat) -> WeightedProduct:
    """A product with constant weights."""
    op, type_ = node.op, graph.types[value]
    reason, rest = "", node.inputs[2:]
    if isinstance(weights, Splat):
        reason = "its weights are one number"
    elif type_.dtype not in ("float32", "float16"):
        reason = f"its weights are {type_.dtype}"
    elif type_.rank != 2:
        reason = f"its weights have {type_.rank} axes"
    elif not weights.size:
        reason = "its weights have no element"
    elif not np.isfinite(cast(Floats, weights)).all():
        reason = "its weights are not finite"
    elif isinstance(op, Gemm):
        unlike = op.alpha != 1.0 or op.trans_a or (rest and op.beta not in (0.0, 1.0))
        reason = "it scales or transposes its data" if unlike else ""
        rest = rest if op.beta else ()
    if reason or isinstance(weights, Splat):
        return WeightedProduct(node, value, None, reason)
    turned = isinstance(op, Gemm) and op.trans_b
    return WeightedProduct(node, value, weights.T if turned else weights, rest=rest)


def _chosen(found: Sequence[WeightedProduct], only: Collection[str]) -> set[str]:
    """The results of the products that were asked for. Raises: QuantizeError."""
    wanted = {only} if isinstance(only, str) else set(only)
    known = {name for product in found for name in product.names if name}
    if unknown := sorted(wanted - known):
        listed = ", ".join(sorted({p.node.name or p.node.outputs[0] for p in found})) or "none"
        raise QuantizeError(
            f"quantize_weights: only names '{unknown[0]}', which is no product with constant "
            f"weights, nor the weights of one; expected one of: {listed}.",
            code="quantize-only",
        )
    return {p.node.outputs[0] for p in found if wanted.intersection(p.names)}


def _moments(
    graph: Graph, products: Sequence[WeightedProduct], data: Iterable[Mapping[str, Array]]
) -> dict[str, DataMoments]:
    """Those of the values that products multiply, by name. Raises: QuantizeError where there are no
    data; ModelError for inputs that are not the model's.
    """
    values = tuple(dict.fromkeys(p.node.inputs[0] for p in products if not p.reason))
    found: dict[str, DataMoments] = {}
    for item in data:
        for value, array in evaluate(graph, item, dtype="float32", values=values).items():
            if not np.isfinite(cast(Floats, array)).all():
                raise QuantizeError(
                    f"quantize_weights: on a run of data '{value}' is not finite; expected numbers "
                    "that can be squared.",
                    code="quantize-finite",
                )
            rows = array.reshape(-1, array.shape[-1]).astype(np.float64)
            own = DataMoments(rows.T @ rows, np.abs(rows).sum(axis=0))
            found[value] = found[value] + own if value in found else own
    if values and not found:
        raise QuantizeError(
            "quantize_weights: data has no runs; expected at least one.", code="quantize-no-data"
        )
    return found


def _by_key(
    products: Sequence[WeightedProduct], moments: Mapping[str, DataMoments]
) -> dict[tuple[str, bool], DataMoments]:
    """Those of all rows that products with the same weights multiply."""
    found: dict[tuple[str, bool], DataMoments] = {}
    for product in products:
        if not product.reason and product.node.inputs[0] in moments:
            own, key = moments[product.node.inputs[0]], product.key
            found[key] = found[key] + own if key in found else own
    return found


def _with_factors(
    graph: Graph,
    products: Sequence[WeightedProduct],
    moments: Mapping[str, DataMoments],
    bits: int,
    group: int,
    symmetric: bool,
) -> tuple[Graph, list[WeightedProduct], dict[str, DataMoments]]:
    """The graph, its products and the moments of their data with the factors of AWQ. Weights that
    meet several values have none.
    """
    met: dict[str, set[str]] = {}
    for product in products:
        met.setdefault(product.value, set()).add(product.node.inputs[0])
    shared = {value for several in met.values() if len(several) > 1 for value in several}
    own = {value: one for value, one in moments.items() if value not in shared}
    weights = {p.node.outputs[0]: cast(Floats, p.matrix) for p in products if not p.reason}
    factors = awq_factors(graph, weights, own, bits, group, symmetric=symmetric)
    after = rescaled(graph, factors)
    kept = {product.node.outputs[0]: product for product in products}
    found, divided = [], dict[str, DataMoments]()
    for product in weighted_products(after):
        before = kept[product.node.outputs[0]]
        found.append(replace(product, reason=before.reason))
        value, read = product.node.inputs[0], before.node.inputs[0]
        if read in factors and (value != read or not readers_of(graph, read)[1]):
            divided[value] = moments[read].divided(factors[read].astype(np.float64))
        elif read in moments:
            divided[value] = moments[read]
    return after, found, divided


class _Writer:
    """Writes the graph with other products."""

    def __init__(
        self,
        graph: Graph,
        op: BlockMatMul,
        symmetric: bool,
        method: str,
        moments: Mapping[tuple[str, bool], DataMoments],
    ) -> None:
        """moments: of the data of products, by their keys; of none where they do not count."""
        self.method = method
        self.graph, self.op, self.symmetric = graph, op, symmetric
        self.moments = moments
        self.builder = GraphBuilder.like(graph)
        self.taken: dict[str, WeightedProduct] = {}
        self.reports: list[WeightReport] = []
        self.tables: dict[tuple[str, bool], tuple[tuple[str, ...], float, int]] = {}

    def take(self, product: WeightedProduct) -> None:
        """Replace a product, or report the reason why it stays."""
        node, value = product.node, product.value
        title = node.name or node.outputs[0]
        shape = self.graph.types[value].shape if value else ()
        if product.reason:
            size = self.graph.types[value].bytes if value else 0
            self.reports.append(WeightReport(title, value, shape, 0, 0.0, size, product.reason))
            return
        self.taken[node.outputs[0]] = product
        _, error, size = self._table(product)
        self.reports.append(WeightReport(title, value, shape, self.op.bits, error, size))

    def finish(self) -> QuantizedGraph:
        """The graph, without the weights that nobody reads any more."""
        for node in self.graph.nodes:
            product = self.taken.get(node.outputs[0])
            if product is None:
                self.builder.add_node(node)
            else:
                self._write(product)
        made = self.builder.finish(self.graph.outputs)
        after = DeadCode()(rebuilt(self.graph, made.nodes, made.constants))
        parts = (after.name, after.inputs, after.outputs, after.nodes, after.constants, after.types)
        return QuantizedGraph(*parts, weights=tuple(self.reports))

    def _write(self, product: WeightedProduct) -> None:
        node, builder = product.node, self.builder
        tables, _, _ = self._table(product)
        last = node.outputs[0]
        value = builder.fresh(f"{last}.product") if product.rest else last
        builder.add(self.op, node.inputs[0], *tables, output=value, name=node.name)
        if product.rest:
            builder.add(Add(), value, *product.rest, output=last, name=node.name)

    def _table(self, product: WeightedProduct) -> tuple[tuple[str, ...], float, int]:
        """The names of levels, scales and zeros, the error, and their bytes; of weights that
        several products share, once.
        """
        key = product.key
        if key not in self.tables:
            weights = cast(Floats, product.matrix)
            rounded = self._rounded(weights, key)
            arrays = [packed_words(rounded.levels, self.op.bits), rounded.scales]
            arrays += [] if self.symmetric else [rounded.zeros]
            kinds = ("levels", "scales", "zeros")
            names = tuple(
                self.builder.constant(self.builder.fresh(f"{product.value}.{kind}"), array)
                for kind, array in zip(kinds, arrays, strict=False)
            )
            size = sum(array.nbytes for array in arrays)
            self.tables[key] = names, _error(weights, rounded), size
        return self.tables[key]

    def _rounded(self, weights: Floats, key: tuple[str, bool]) -> RoundedBlocks:
        asked = (self.op.bits, self.op.group)
        if key not in self.moments:
            return round_to_nearest(weights, *asked, symmetric=self.symmetric)
        take = round_for_data if self.method == "gptq" else round_in_ranges
        return take(weights, self.moments[key].second, *asked, symmetric=self.symmetric)


def _error(weights: Floats, rounded: RoundedBlocks) -> float:
    """The root mean square of the change over that of the weights."""
    wide = weights.astype(np.float64)
    change = rounded.weights(len(weights)).astype(np.float64) - wide
    total = float(np.linalg.norm(wide))
    return float(np.linalg.norm(change)) / total if total else 0.0
