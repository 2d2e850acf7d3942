"""tw.with_weights: a model whose products multiply with weights of few bits that a file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from ...block_weights import BlockWeights
from ...errors import ModelError
from ...given_model import imported_graph
from ...importers.symbols import Shapes
from ...importers.traced_model import traced_model
from ...ir.build import GraphBuilder
from ...ir.ir import Graph, rebuilt
from ...ops.arithmetic import Add, Sub
from ...ops.base import Operator
from ...ops.block_matmul import WORD_BITS, BlockMatMul
from ...ops.gathering import Gather
from ...ops.matmul import MatMul
from ...ops.movement import Reshape
from ...ops.reduction import ReduceSum
from ...passes.dead_code import DeadCode
from ...types import Array, Floats, owned
from .weights import WeightedProduct, check_data_type, data_of, weighted_products


class StoredWeightsError(ModelError):
    """Weights that a file holds are none of a model's."""


def with_weights(
    model: object,
    weights: Mapping[str, BlockWeights],
    *,
    args: Sequence[object] | None = None,
    kwargs: Mapping[str, object] | None = None,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    data_type: str = "float",
) -> Graph:
    """Replace the constant weights of products by weights of few bits, as `tw.read_gguf` and
    `tw.read_safetensors` give them. The result is a Graph for tw.compile.

    model, args, kwargs, shapes, constants: as tw.compile has them. weights: by the name of a MatMul
    or a Gemm, of its result, or of its constant; each has the shape (K, N) of what it replaces.
    Weights of an order gather the data first; offsets are multiplied with the sums of blocks.
    data_type: as tw.quantize_weights has it; weights with offsets multiply floats.
    Raises: StoredWeightsError for names that are no such product, and for other shapes; ModelError;
    QuantizeError for a data_type that is none.
    """
    check_data_type("with_weights", data_type)
    traced = traced_model(model, args, kwargs, shapes)
    graph = imported_graph(traced, shapes, constants)
    chosen: dict[str, tuple[WeightedProduct, BlockWeights]] = {}
    products = list(weighted_products(graph))
    for name, stored in weights.items():
        found = [one for one in products if name in one.names]
        for product in found:
            _check(name, product, stored)
            chosen[product.node.outputs[0]] = product, stored
        if not found:
            listed = ", ".join(sorted({f"'{p.node.name or p.node.outputs[0]}'" for p in products}))
            raise StoredWeightsError(
                f"with_weights: '{name}' is no product with constant weights, nor the weights of "
                f"one; expected one of: {listed or 'none'}.",
                code="stored-weights-name",
            )
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        if node.outputs[0] in chosen:
            _Writer(builder, *chosen[node.outputs[0]], data_of(data_type)).write()
        else:
            builder.add_node(node)
    made = builder.finish(graph.outputs)
    return DeadCode()(rebuilt(graph, made.nodes, made.constants))


def _check(name: str, product: WeightedProduct, stored: BlockWeights) -> None:
    """Refuse weights that a product cannot multiply with. Raises: StoredWeightsError."""
    problem = product.reason
    if product.matrix is not None and product.matrix.shape != stored.shape:
        problem = f"it multiplies with {list(product.matrix.shape)}"
    if stored.group * stored.bits % WORD_BITS:
        problem = f"a block is no number of whole words of {WORD_BITS} bits"
    if stored.offsets is not None and stored.shape[0] % stored.group:
        problem = "blocks with offsets do not divide the sum"
    if problem:
        raise StoredWeightsError(
            f"with_weights: '{name}' cannot multiply with {stored!r}: {problem}.",
            code="stored-weights-fit",
            hints=("`dequantized()` gives the matrix in float32.",),
        )


class _Writer:
    def __init__(
        self, builder: GraphBuilder, product: WeightedProduct, stored: BlockWeights, data: str
    ) -> None:
        self.builder, self.product, self.stored, self.data = builder, product, stored, data
        self.kind = builder.types[product.node.inputs[0]].dtype

    def write(self) -> None:
        """The product, what is subtracted from it, and its bias."""
        stored, node = self.stored, self.product.node
        data = node.inputs[0]
        axis = self.builder.types[data].rank - 1
        if stored.order is not None:
            order = self.table("order", np.asarray(stored.order, np.int64))
            data = self.emit(Gather(axis), data, order)
        words = np.ascontiguousarray(stored.levels.reshape(stored.shape[1], -1))
        tables = [
            self.table("levels", np.ascontiguousarray(words.view("<i4").T)),
            self.numbers("scales", stored.scales),
        ]
        if stored.offsets is not None:
            tables.append(self.numbers("zeros", np.zeros_like(stored.scales)))
        elif stored.zeros is not None:
            tables.append(self.numbers("zeros", stored.zeros))
        permitted = self.data if stored.offsets is None else ""  # offsets meet the data as they are
        op = BlockMatMul(stored.bits, stored.group, permitted)
        steps: list[tuple[Operator, tuple[str, ...]]] = [(op, (data, *tables))]
        if stored.offsets is not None:
            steps.append((Sub(), (self._of_offsets(data, axis),)))
        if self.product.rest:
            steps.append((Add(), self.product.rest))
        value = ""
        for number, (step, operands) in enumerate(steps):
            inputs = operands if number == 0 else (value, *operands)
            is_last = number == len(steps) - 1
            value = self.emit(step, *inputs, output=node.outputs[0] if is_last else "")

    def _of_offsets(self, data: str, axis: int) -> str:
        """The sum of each block of the data, times its offsets."""
        outer, (steps, _) = self.builder.types[data].shape[:-1], self.stored.shape
        blocks = (*outer, steps // self.stored.group, self.stored.group)
        sums = self.emit(ReduceSum((axis + 1,), False), self.emit(Reshape(blocks), data))
        return self.emit(MatMul(), sums, self.numbers("offsets", cast(Array, self.stored.offsets)))

    def numbers(self, what: str, array: Array) -> str:
        """[N, blocks] as a constant [blocks, N] in the type of the data; bytes stay bytes."""
        kind = array.dtype if array.dtype == np.uint8 else np.dtype(self.kind)
        return self.table(what, np.ascontiguousarray(cast(Floats, array).T.astype(kind)))

    def table(self, what: str, array: Array) -> str:
        name = self.builder.fresh(f"{self.product.value}.{what}")
        return self.builder.constant(name, owned(array))

    def emit(self, op: Operator, *inputs: str, output: str = "") -> str:
        name = self.product.node.name
        value = output or self.builder.fresh(f"{self.product.node.outputs[0]}.{op.title.lower()}")
        return self.builder.add(op, *inputs, output=value, name=name)
