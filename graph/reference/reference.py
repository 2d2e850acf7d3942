"""Evaluate a Graph with NumPy, node by node: the oracle, which shares no code with kernels. Regions
of branches and loops are evaluated as often as their data say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence

import numpy as np

from ...tir.dim import Dim
from ...tir.sizes import Size, dims_in
from ..errors import ModelError
from ..extensions.operators import blame
from ..ir.at_sizes import graph_at, operator_at
from ..ir.ir import Evaluate, Graph, GraphNode, RegionOperator
from ..ops.base import Operator, OperatorRole
from ..ops.data_size import DataSize
from ..types import Array, TensorType, array_of, numpy_type
from .effort import TooLarge, effort


class StepBudget:
    """How many steps regions may take together, and how many of them may run, since each takes some
    time however small it is: a loop goes on for as long as its data say.
    """

    def __init__(self, steps: int, runs: int) -> None:
        self._left = steps
        self._runs = runs
        self._costs: dict[Graph, int] = {}

    def spend(self, region: Graph) -> None:
        """A region is evaluated. Raises: TooLarge where that is too much."""
        if region not in self._costs:
            self._costs[region] = effort(region.nodes, region.types).steps
        self._left -= self._costs[region]
        self._runs -= 1
        if min(self._left, self._runs) < 0:
            raise TooLarge("has loops that go on for longer than a check may take")


def evaluate(
    graph: Graph,
    inputs: Mapping[str, Array],
    *,
    dtype: str | None = "float64",
    values: Iterable[str] | None = None,
    budget: StepBudget | None = None,
) -> dict[str, Array]:
    """The model's outputs, or the named `values`, as NumPy computes them.

    inputs: one array per input of the graph, of the shape that it declares.
    dtype: the precision of every floating-point value, "float64" or "float32"; None keeps each as
    the graph has it.
    values: names of any values of the graph. What is not asked for is dropped after its last use.
    budget: of branches and loops; None: as many steps as their data say.
    Raises: ModelError for inputs or values that are missing, unknown or of another shape; TooLarge.
    """
    wanted = tuple(graph.outputs if values is None else values)
    found = dict(computed(graph, inputs, wanted, dtype=dtype, budget=budget))
    return {name: found[name] for name in wanted}


def computed(
    graph: Graph,
    inputs: Mapping[str, Array],
    wanted: Iterable[str],
    *,
    dtype: str | None,
    budget: StepBudget | None = None,
) -> Generator[tuple[str, Array], Array | None, None]:
    """The wanted values with their names, each as soon as NumPy has computed it; for the rest like
    `evaluate`. What the reader drops and no node needs any more takes no memory. An array that is
    sent back stands for the value in all nodes behind.
    """
    wanted = tuple(dict.fromkeys(wanted))
    if unknown := [name for name in wanted if name not in graph.types]:
        raise ModelError(
            f"evaluate: graph '{graph.name}' has no value '{unknown[0]}'.", code="evaluate-value"
        )
    graph = graph_at(graph, _sizes(graph, inputs))
    _check_inputs(graph, inputs)
    known: dict[str, Array] = {}
    uses = Counter(value for node in graph.nodes for value in node.inputs)

    def read(name: str, moved: bool = False) -> Array:
        if name in known:
            return known[name]
        constant = graph.constants.get(name)
        array = inputs[name] if constant is None else array_of(constant)
        if moved and graph.types[name].is_float:
            return array
        array = _cast(array, graph.types[name], dtype)
        return array if constant is not None else known.setdefault(name, array)

    outputs = {value for node in graph.nodes for value in node.outputs}
    for name in wanted:
        if name not in outputs:
            yield name, read(name)
    sizes: dict[Dim, int] = {}  # those that the nodes compute
    for node in graph.nodes:
        op = operator_at(node.op, sizes)
        moved = _moves_given(op, node, graph)
        arrays = [read(value, moved) for value in node.inputs]
        results = _results(op, arrays, None if moved else dtype, budget)
        if moved:
            types = [graph.types[value] for value in node.outputs]
            results = [_cast(*part, dtype) for part in zip(results, types, strict=True)]
        if isinstance(op, DataSize):
            sizes.update((dim, int(arrays[0].item())) for dim in dims_in((op.size,)))
        del arrays
        known.update(zip(node.outputs, results, strict=True))
        del results
        ready = {name: known[name] for name in node.outputs if name in wanted}
        uses.subtract(node.inputs)
        for value in (*node.inputs, *node.outputs):
            if uses[value] <= 0:
                known.pop(value, None)
        for name in tuple(ready):
            sent = yield name, ready.pop(name)
            if sent is not None and name in known:
                known[name] = sent
            del sent


def _results(
    op: Operator, arrays: Sequence[Array], dtype: str | None, budget: StepBudget | None
) -> Sequence[Array]:
    """What an operator makes of arrays, at a precision."""
    if isinstance(op, RegionOperator):
        return op.run(arrays, _evaluating(dtype, budget))
    return apply(op if dtype is None else op.at_precision(dtype), *arrays)


def _moves_given(op: Operator, node: GraphNode, graph: Graph) -> bool:
    """Whether an operator takes elements of constants or inputs as they are: then those that it
    takes are converted, and not a whole table.
    """
    return op.role is OperatorRole.MOVEMENT and all(
        value in graph.constants or value in graph.inputs or not graph.types[value].is_float
        for value in node.inputs
    )


def _evaluating(dtype: str | None, budget: StepBudget | None) -> Evaluate:
    """What evaluates regions."""

    def run(region: Graph, arrays: Sequence[Array]) -> Sequence[Array]:
        if budget is not None:
            budget.spend(region)
        inputs = dict(zip(region.inputs, arrays, strict=True))
        found = evaluate(region, inputs, dtype=dtype, budget=budget)
        return [found[name] for name in region.outputs]

    return run


def apply(op: Operator, *arrays: Array) -> tuple[Array, ...]:
    """The outputs of one operator. What has no value, the root of -1, is NaN; nobody is warned."""
    try:
        with np.errstate(all="ignore"):
            return op.compute(*arrays)
    except Exception as error:
        blame(op, "reference", error)
        raise


def _sizes(graph: Graph, inputs: Mapping[str, Array]) -> dict[Dim, int]:
    """The sizes that the inputs tell; of what none tells the least one."""
    found = {dim: dim.low for dim in graph.dims}
    for name in reversed(graph.inputs):
        shape = inputs[name].shape if name in inputs else ()
        for size, number in zip(graph.types[name].shape, shape, strict=False):
            if isinstance(size, Size) and size.dim is not None:
                found[size.dim] = number
    return found


def _check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> None:
    if set(inputs) != set(graph.inputs):
        given, expected = ", ".join(sorted(inputs)), ", ".join(sorted(graph.inputs))
        raise ModelError(
            f"evaluate: graph '{graph.name}' takes inputs {expected}, got {given or 'none'}.",
            code="evaluate-inputs",
        )
    for name in graph.inputs:
        type_, array = graph.types[name], inputs[name]
        if array.shape != type_.shape:
            raise ModelError(
                f"evaluate: input '{name}' is {type_}, got an array of shape {array.shape}.",
                code="evaluate-shape",
            )


def _cast(array: Array, type_: TensorType, dtype: str | None) -> Array:
    kind = dtype if dtype is not None and type_.is_float else type_.dtype
    return array.astype(numpy_type(kind), copy=False)
