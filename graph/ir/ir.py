"""The model execution graph: named values and the nodes that compute them.

A `Graph` is a value. `nodes` stand in an order in which every value is defined before it is read; a
value is defined once, by an input, a constant or a node. Values keep the names that the model gave
them, so that every message speaks the model's language. Nodes have no effects, so a node whose
results nobody reads may go, and equal nodes are one.

A branch or a loop is a node, too, whose operator holds graphs, its regions: they read what the node
gives them, and nothing else.
"""

from __future__ import annotations

import html
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import ClassVar

from ...tir.dim import Dim
from ...tir.errors import InternalError
from ...tir.sizes import Size, SizeError, dims_in
from ...tir.te.te import Tensor
from ..errors import ModelError
from ..extensions.operators import blame
from ..ops.base import Operator, OperatorRole
from ..ops.data_size import DataSize
from ..types import Array, Constant, Splat, TensorType, type_of


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One operation: `outputs` are the values that `op` computes from the values `inputs`, all of
    them together, whether somebody reads them or not.

    name: what the model calls it, for messages; may be empty.
    """

    op: Operator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str = ""

    @property
    def title(self) -> str:
        """How messages call the node."""
        return f"node '{self.name or self.outputs[0]}' ({self.op.title})"

    def infer(self, types: Mapping[str, TensorType]) -> tuple[TensorType, ...]:
        """The types of the outputs. Raises: ModelError, which names the node and its inputs."""
        given = tuple(types[value] for value in self.inputs)
        try:
            made = self.op.infer(given)
            if len(made) != len(self.outputs):
                raise ModelError(
                    f"graph: {self.title} defines {len(self.outputs)} of {len(made)} outputs; "
                    "expected a value for each, read or not.",
                    code="graph-outputs",
                    hints=(
                        "GraphBuilder.add_node(GraphNode(op, inputs, outputs)) names them all.",
                    ),
                )
            return made
        except SizeError as error:
            raise ModelError(
                f"{self.op.title}: {error.message}",
                code="op-open-size",
                where=self._where(given),
                hints=("compile(model, shapes={...}) gives a size that is a number.",),
            ) from error
        except ModelError as error:
            error.where = self._where(given)
            raise
        except Exception as error:
            blame(self.op, "infer", error)
            raise

    def _where(self, given: tuple[TensorType, ...]) -> str:
        pairs = zip(self.inputs, given, strict=True)
        lines = [f"  '{value}': {type_}" for value, type_ in pairs]
        return "\n".join([f"in {self.title}:", *lines])


Evaluate = Callable[["Graph", Sequence[Array]], Sequence[Array]]


@dataclass(frozen=True, slots=True)
class RegionOperator(Operator):
    """An operator that runs graphs, as its inputs say. A plan makes steps of it, and no kernel."""

    role: ClassVar[OperatorRole] = OperatorRole.GENERAL

    @property
    @abstractmethod
    def regions(self) -> tuple[Graph, ...]:
        """The graphs."""

    @property
    @abstractmethod
    def region_names(self) -> tuple[str, ...]:
        """What each of them is called: "then", "body"."""

    @property
    @abstractmethod
    def first_captured(self) -> int:
        """The number of the first input that all regions take as it is, as their last inputs, with
        those behind it.
        """

    @property
    def is_open(self) -> bool:
        """Whether data decide how long it goes on."""
        return False

    @abstractmethod
    def with_regions(self, regions: tuple[Graph, ...]) -> RegionOperator:
        """The operator with other graphs of the same inputs and outputs."""

    @abstractmethod
    def run(self, arrays: Sequence[Array], evaluate: Evaluate) -> tuple[Array, ...]:
        """The outputs. evaluate: gives the outputs of a region on its inputs."""

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        """Raises: InternalError: `run` has it, which is told how to evaluate a region."""
        raise self._no_kernel("reference")

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """Raises: InternalError: there is no kernel."""
        raise self._no_kernel("express")

    def _no_kernel(self, asked: str) -> InternalError:
        return InternalError(
            f"operators: '{asked}' of {self.title} was asked for, which runs graphs; expected a "
            "plan, or `run`, to take them one by one.",
            code="operator-regions",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A model.

    inputs, outputs: values in the order of a call; types: the type of every value.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[GraphNode, ...]
    constants: Mapping[str, Constant]
    types: Mapping[str, TensorType]

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The sizes that a run decides: those of the inputs, in their order."""
        return dims_in(size for name in self.inputs for size in self.types[name].shape)

    @property
    def producers(self) -> dict[str, GraphNode]:
        """The node that computes each value."""
        return {value: node for node in self.nodes for value in node.outputs}

    @property
    def consumers(self) -> dict[str, list[GraphNode]]:
        """The nodes that read each value; one that reads it twice stands there twice."""
        readers: dict[str, list[GraphNode]] = {value: [] for value in self.types}
        for node in self.nodes:
            for value in node.inputs:
                readers[value].append(node)
        return readers

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants that are stored; splats are not."""
        return sum(
            value.nbytes for value in self.constants.values() if not isinstance(value, Splat)
        )


def make_graph(
    name: str,
    inputs: Mapping[str, TensorType],
    outputs: Iterable[str],
    nodes: Iterable[GraphNode],
    constants: Mapping[str, Constant],
) -> Graph:
    """A Graph whose types are inferred.

    Raises: ModelError when a node does not fit its inputs or reads what is not defined.
    """
    types = dict(inputs)
    types.update((value, type_of(constant)) for value, constant in constants.items())
    listed = tuple(nodes)
    for node in listed:
        if isinstance(node.op, RegionOperator):
            _check_makes_no_size(node)
        for value in node.inputs:
            if value not in types:
                raise ModelError(
                    f"graph: {node.title} reads '{value}', which nothing before it defines.",
                    code="graph-undefined",
                )
        types.update(zip(node.outputs, node.infer(types), strict=True))
    return Graph(name, tuple(inputs), tuple(outputs), listed, dict(constants), types)


def open_attributes(op: Operator) -> dict[str, tuple[Dim, ...]]:
    """The attributes of an operator that a run decides, sizes or graphs, with the dims of each."""
    found = {item.name: _dims_of(getattr(op, item.name)) for item in fields(op)}
    return {name: dims for name, dims in found.items() if dims}


def dims_of_graph(graph: Graph) -> tuple[Dim, ...]:
    """The sizes that a run decides: those of the inputs, then those that only types of other values
    and attributes name: what data decide, and in a region what something outside of it decides.
    """
    found = dict.fromkeys(graph.dims)
    for type_ in graph.types.values():
        found |= dict.fromkeys(dims_in(type_.shape))
    for node in graph.nodes:
        for dims in open_attributes(node.op).values():
            found |= dict.fromkeys(dims)
    return tuple(found)


def _dims_of(value: object) -> tuple[Dim, ...]:
    """The dims of an attribute: of a size, of some, or of a graph."""
    if isinstance(value, Graph):
        return dims_of_graph(value)
    listed = value if isinstance(value, tuple) else (value,)
    return dims_in(one for one in listed if isinstance(one, Size))


def _check_makes_no_size(node: GraphNode) -> None:
    """Refuse a branch or a loop in which data decide a size. Raises: ModelError."""
    assert isinstance(node.op, RegionOperator)
    inner = (one.op for region in node.op.regions for one in region.nodes)
    made = dims_in(op.size for op in inner if isinstance(op, DataSize))
    if made:
        raise ModelError(
            f"graph: {node.title} is a branch or a loop, in which data decide the size "
            f"'{made[0].name}'; expected one that is known in front of it.",
            code="region-data-size",
            hints=("what data decide may be computed in front of it, or behind it.",),
        )


def has_regions(graph: Graph) -> bool:
    """Whether there are branches or loops."""
    return any(isinstance(node.op, RegionOperator) for node in graph.nodes)


def all_nodes(graph: Graph) -> Iterator[GraphNode]:
    """The nodes of a graph and of all graphs within it."""
    for node in graph.nodes:
        yield node
        if isinstance(node.op, RegionOperator):
            for region in node.op.regions:
                yield from all_nodes(region)


def rebuilt(graph: Graph, nodes: Iterable[GraphNode], constants: Mapping[str, Constant]) -> Graph:
    """`graph` with other nodes and constants; `graph` itself when they are the ones that it has."""
    listed = tuple(nodes)
    same = len(constants) == len(graph.constants) and all(
        graph.constants.get(name) is constant for name, constant in constants.items()
    )
    if same and listed == graph.nodes:
        return graph
    inputs = {name: graph.types[name] for name in graph.inputs}
    return make_graph(graph.name, inputs, graph.outputs, listed, constants)


def attributes(op: Operator) -> str:
    """The fields of an operator that differ from their defaults: "strides=(2, 2), groups=4"."""
    shown = []
    for item in fields(op):
        value = getattr(op, item.name)
        if isinstance(value, Graph):
            continue
        if item.default is MISSING or value != item.default:
            shown.append(f"{item.name}={value!r}")
    return ", ".join(shown)


def quoted(name: str) -> str:
    """A value's name as printed: as it is when it is plain, else as a Python string."""
    return name if re.fullmatch(r"[\w./:+-]+", name, re.ASCII) else repr(name)


def megabytes(count: int) -> str:
    """A number of bytes for people."""
    return (
        f"{count} B"
        if count < 1024
        else f"{count / 2**10:.1f} KiB"
        if count < 2**20
        else f"{count / 2**20:.1f} MiB"
    )


def _lines(graph: Graph) -> Iterable[str]:
    arguments = ", ".join(f"{quoted(name)}: {graph.types[name]}" for name in graph.inputs)
    yield f"graph {quoted(graph.name)}({arguments}):"
    splats = sum(isinstance(value, Splat) for value in graph.constants.values())
    yield (
        f"    # {len(graph.nodes)} nodes; {len(graph.constants)} constants: {splats} splats, "
        f"{megabytes(graph.constant_bytes)} in the others"
    )
    for node in graph.nodes:
        results = ", ".join(map(quoted, node.outputs))
        values = ", ".join(_operand(graph, value) for value in node.inputs)
        settings = attributes(node.op)
        call = f"{node.op.title}[{settings}]" if settings else node.op.title
        types = ", ".join(str(graph.types[value]) for value in node.outputs)
        yield f"    {results} = {call}({values})  # {types}"
        if isinstance(node.op, RegionOperator):
            for name, region in zip(node.op.region_names, node.op.regions, strict=True):
                yield f"        {name}:"
                yield from (f"        {line}" for line in _lines(region))
    yield f"    return {', '.join(map(quoted, graph.outputs))}"


def _operand(graph: Graph, value: str) -> str:
    constant = graph.constants.get(value)
    return f"{constant}" if isinstance(constant, Splat) else quoted(value)
