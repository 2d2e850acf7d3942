"""Which nodes may share a kernel: an anchor, and the elementwise operators behind it.

Every node that is no view begins a group as its anchor, unless it is elementwise and may run on the
elements that another group is about to store. Then the value in between is never stored. A node
joins when it is the only reader of that value, works element by element on its shape, and the value
is not an output of the model; what else it reads may be any tensor. It cannot depend on the group,
whose values nobody else reads, so groups never wait for each other: `ordered` makes sure. Of
several groups that a node could join it takes the one computed last, since the others are there by
then.

Each pair of kernels that could have been one is a `Miss`, with what stands in the way and the edit
that would remove it.
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx

from ..tir.errors import InternalError
from .form import ELEMENTWISE
from .groups import Group
from .ir import Graph, Node
from .types import TensorType
from .views import is_view, storage

MOST_NODES = 64
MOST_COPIES = 4  # of an expression within another: x*x of x*x of x*x would hold eight


@dataclass(frozen=True, slots=True)
class Miss:
    """Two nodes, one reading the other, in two kernels: why, and what to change in the model to
    have one.
    """

    producer: str
    consumer: str
    condition: str
    edit: str

    def __str__(self) -> str:
        pair = f"{self.consumer} behind {self.producer}"
        return f"not fused: {pair}: {self.condition}; to fuse: {self.edit}"


@dataclass(frozen=True, slots=True)
class Fusion:
    """The groups of a graph, as large as they may be, in an order of execution; the misses."""

    groups: tuple[Group, ...]
    misses: tuple[Miss, ...]


def fuse(graph: Graph, most_nodes: int = MOST_NODES) -> Fusion:
    """Group the nodes of a graph; `most_nodes` bounds a group."""
    return _Fuser(graph, most_nodes).run()


def ordered(graph: Graph, groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """The groups so that each stands behind those that it reads, else in the order of their last
    nodes.

    Raises: InternalError when groups wait for each other.
    """
    roots = storage(graph)
    position = {node.outputs[0]: n for n, node in enumerate(graph.nodes)}
    maker = {value: group for group in groups for node in group.nodes for value in node.outputs}
    flow: nx.DiGraph[Group] = nx.DiGraph()
    flow.add_nodes_from(groups)
    for group in groups:
        for value in group.inputs:
            if roots[value] in maker:
                flow.add_edge(maker[roots[value]], group)
    if not nx.is_directed_acyclic_graph(flow):
        names = ", ".join(group.output for group, _ in nx.find_cycle(flow))
        raise InternalError(
            f"fusion: the groups of {names} wait for each other; expected an order.",
            code="fusion-cycle",
        )
    return tuple(nx.lexicographical_topological_sort(flow, lambda group: position[group.output]))


class _Fuser:
    def __init__(self, graph: Graph, most_nodes: int) -> None:
        self.graph = graph
        self.most_nodes = most_nodes
        self.consumers = graph.consumers
        self.producers = graph.producers
        self.order = {node.outputs[0]: n for n, node in enumerate(graph.nodes)}
        self.members: dict[str, list[Node]] = {}  # value that a group stores -> its nodes
        self.copies: dict[str, int] = {}  # value that a group stores -> times its first runs in it
        self.misses: list[Miss] = []

    def run(self) -> Fusion:
        """Walk the nodes once."""
        for node in self.graph.nodes:
            if not is_view(node, self.graph.types):
                self._place(node)
        groups = tuple(Group(tuple(nodes)) for nodes in self.members.values())
        return Fusion(ordered(self.graph, groups), tuple(self.misses))

    def _place(self, node: Node) -> None:
        computed = [v for v in dict.fromkeys(node.inputs) if v in self.producers]
        if not isinstance(node.op, ELEMENTWISE):
            self._miss_prologues(node, computed)
            self.members[node.outputs[0]] = [node]
            return
        reasons = {value: self._obstacle(node, value) for value in computed}
        free = [value for value, reason in reasons.items() if reason is None]
        joined = max(free, key=self.order.__getitem__, default=None)
        if joined is None:
            self.misses += [reason for reason in reasons.values() if reason is not None]
            self.members[node.outputs[0]] = [node]
            return
        self.misses += [self._miss_second(node, v, joined) for v in free if v != joined]
        self.members[node.outputs[0]] = [*self.members.pop(joined), node]
        self.copies[node.outputs[0]] = self._copies(node, joined)

    def _copies(self, node: Node, value: str) -> int:
        """How often the expression of `value`'s first node stands in that of `node`."""
        return node.inputs.count(value) * self.copies.get(value, 1)

    def _obstacle(self, node: Node, value: str) -> Miss | None:
        """Why `node` cannot run in the kernel that computes `value`; None when it can."""
        producer, types = self.producers[value], self.graph.types
        readers = [reader for reader in self.consumers[value] if reader is not node]

        def miss(condition: str, edit: str) -> Miss:
            return Miss(producer.title, node.title, condition, edit)

        if is_view(producer, types):
            return miss(
                "the value is read under another shape",
                f"apply {node.op.title} before {producer.op.title}",
            )
        if value in self.graph.outputs:
            return miss(
                f"'{value}' is an output of the model and must be stored",
                f"drop '{value}' from the outputs",
            )
        if readers:
            return miss(
                f"'{value}' is also read by {readers[0].title} and must be stored",
                f"let {readers[0].title} read another value",
            )
        if types[node.outputs[0]].shape != types[value].shape:
            return miss(
                f"the result is {types[node.outputs[0]]}, larger than {types[value]}",
                f"broadcast behind {node.op.title}",
            )
        if len(self.members[value]) >= self.most_nodes:
            return miss(f"a group has at most {self.most_nodes} nodes", "raise the limit")
        if self._copies(node, value) > MOST_COPIES:
            return miss(
                f"'{value}' would stand {self._copies(node, value)} times in one expression",
                f"let {node.op.title} read it once",
            )
        return None

    def _miss_second(self, node: Node, value: str, joined: str) -> Miss:
        other = self.producers[joined]
        return Miss(
            self.producers[value].title,
            node.title,
            f"it runs in the kernel of {other.title}, and a kernel has one anchor",
            f"combine the inputs of {other.title} and of {self.producers[value].title} "
            "in one operator",
        )

    def _miss_prologues(self, node: Node, computed: list[str]) -> None:
        """An elementwise producer whose only reader is `node`, which is no elementwise operator."""
        for value in computed:
            producer = self.producers[value]
            alone = len(self.consumers[value]) == 1 and value not in self.graph.outputs
            if isinstance(producer.op, ELEMENTWISE) and alone and len(self.members[value]) == 1:
                self.misses.append(
                    Miss(
                        producer.title,
                        node.title,
                        _why_no_prologue(node, self.graph.types[node.outputs[0]]),
                        f"move {producer.op.title} behind what computes '{producer.inputs[0]}'",
                    )
                )


def _why_no_prologue(node: Node, result: TensorType) -> str:
    return (
        f"{node.op.title} reads each element more than once or elsewhere for its {result}, "
        "and what stands before an anchor is not computed inside it"
    )
