"""Which nodes may share a kernel: an anchor, the elementwise operators behind it, and those before
it where it works row by row.

Every node that is no view begins a group as its anchor, unless it is elementwise and may run on the
elements that other groups are about to store. Then the values in between are never stored. It takes
in every group that works on elements of its shape, is no output of the model, and is read by the
node itself or by what it takes in, and by nobody else: x * sigmoid(x) is one kernel with what
computes x. What they read besides may be any tensor. Nobody outside sees their values, so groups
never wait for each other: `ordered` makes sure. Of several groups with an anchor, an operator that
is not elementwise, a node takes the one computed last, since the others are there by then.

A softmax or a normalisation reads its rows several times, but keeps one at a time: elementwise
operators whose only reader it is, and that run behind no anchor of their own, are computed in its
kernel.

A node with several outputs is a group of its own, which stores them all, read or not: a group
stores what its last node computes, so no reader of one output can take the node in.

Each pair of kernels that could have been one is a `MissedFusion`, with what prevents it and the
edit that would allow it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import networkx as nx

from ...tir.analysis.expr_size import MOST_HEIGHT
from ...tir.errors import InternalError
from ..ir.ir import Graph, GraphNode
from ..ir.views import is_view, storage
from ..kernels.groups import FusionGroup
from ..ops.base import InlineCost, OperatorRole
from ..ops.functions import Cast
from ..types import TensorType

_BYTES = ("int8", "uint8")
MOST_NODES = 64
MOST_READS = 64  # of an element, by operators that read theirs several times
MOST_COPIES = 4  # of an expression within another: x*x of x*x of x*x would hold eight


@dataclass(frozen=True, slots=True)
class MissedFusion:
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

    groups: tuple[FusionGroup, ...]
    misses: tuple[MissedFusion, ...]


def fuse(
    graph: Graph, most_nodes: int = MOST_NODES, outputs: tuple[str, ...] | None = None
) -> Fusion:
    """Group the nodes of a graph; `most_nodes` bounds a group. outputs: of the model, where the
    graph gives more: what branches and loops need in memory.
    """
    return _Fuser(graph, most_nodes, graph.outputs if outputs is None else outputs).run()


def ordered(graph: Graph, groups: tuple[FusionGroup, ...]) -> tuple[FusionGroup, ...]:
    """The groups so that each stands behind those that it reads, else in the order of their last
    nodes.

    Raises: InternalError when groups wait for each other.
    """
    roots = storage(graph)
    position = {value: n for n, node in enumerate(graph.nodes) for value in node.outputs}
    maker = {value: group for group in groups for node in group.nodes for value in node.outputs}
    flow: nx.DiGraph[FusionGroup] = nx.DiGraph()
    flow.add_nodes_from(groups)
    for group in groups:
        for value in group.inputs:
            if roots[value] in maker:
                flow.add_edge(maker[roots[value]], group)
    if not nx.is_directed_acyclic_graph(flow):
        names = ", ".join(group.outputs[0] for group, _ in nx.find_cycle(flow))
        raise InternalError(
            f"fusion: the groups of {names} wait for each other; expected an order.",
            code="fusion-cycle",
        )
    return tuple(
        nx.lexicographical_topological_sort(flow, lambda group: position[group.outputs[0]])
    )


class _Fuser:
    def __init__(self, graph: Graph, most_nodes: int, outputs: tuple[str, ...]) -> None:
        self.graph = graph
        self.outputs = frozenset(outputs)
        self.most_nodes = most_nodes
        several = (v for node in graph.nodes if len(node.outputs) > 1 for v in node.outputs)
        # values that are stored, whoever reads them
        self.stored = frozenset(graph.outputs).union(several)
        self.consumers = graph.consumers
        self.producers = graph.producers
        self.order = {value: n for n, node in enumerate(graph.nodes) for value in node.outputs}
        # first value that a group stores -> its nodes
        self.members: dict[str, tuple[GraphNode, ...]] = {}
        self.misses: dict[tuple[str, str], MissedFusion] = {}  # of the two nodes' values

    def run(self) -> Fusion:
        """Walk the nodes once."""
        for node in self.graph.nodes:
            if not is_view(node, self.graph.types):
                self._place(node)
        self._store_narrow()
        groups = tuple(FusionGroup(nodes) for nodes in self.members.values())
        home = {value: group for group in groups for node in group.nodes for value in node.outputs}
        misses = [miss for (a, b), miss in self.misses.items() if home.get(a) is not home[b]]
        return Fusion(ordered(self.graph, groups), tuple(misses))

    def _store_narrow(self) -> None:
        """Let groups store bytes in place of the floats that they make of them at last, where one
        other group alone reads these: it makes them itself.
        """
        homes = {m.outputs[0]: value for value, nodes in self.members.items() for m in nodes}
        for value in list(self.members):
            tail, readers = self._widened(value), self.consumers[value]
            shape = self.graph.types[value].shape
            targets = {homes.get(reader.outputs[0]) for reader in readers}
            inline = all(
                reader.op.role is OperatorRole.ELEMENTWISE
                and self.graph.types[reader.outputs[0]].shape == shape
                for reader in readers
            )
            target = targets.pop() if len(targets) == 1 else None
            if not tail or target is None or value in self.stored or not inline:
                continue
            nodes = self._arranged([*tail, *self.members[target]])
            if len(nodes) > self.most_nodes or self._copies(nodes) > MOST_COPIES:
                continue
            if self._levels(nodes) > MOST_HEIGHT or self._reads(nodes) > MOST_READS:
                continue
            rest = self.members.pop(value)[: -len(tail)]
            self.members[rest[-1].outputs[0]] = rest
            self.members[target] = nodes
            homes |= {member.outputs[0]: target for member in tail}
            homes |= {member.outputs[0]: rest[-1].outputs[0] for member in rest}

    def _widened(self, value: str) -> tuple[GraphNode, ...]:
        """The last nodes of a group that make other numbers of bytes that it computes, and read
        nothing else but constants; none where there are no such.
        """
        nodes, types = self.members[value], self.graph.types
        for n in range(len(nodes) - 1, 0, -1):
            member = nodes[n]
            computed = [v for v in member.inputs if v not in self.graph.constants]
            plain = member.op.role is OperatorRole.ELEMENTWISE
            if not plain or computed != [nodes[n - 1].outputs[0]]:
                return ()
            if isinstance(member.op, Cast) and types[computed[0]].dtype in _BYTES:
                return nodes[n:]
        return ()

    def _place(self, node: GraphNode) -> None:
        result = node.outputs[0]
        computed = [v for v in dict.fromkeys(node.inputs) if v in self.producers]
        if node.op.role is not OperatorRole.ELEMENTWISE:
            before = tuple(filter(lambda value: self._is_prologue(node, value), computed))
            self._miss_prologues(node, [value for value in computed if value not in before])
            nodes = self._merged(node, before)
            for value in before:
                del self.members[value]
            self.members[result] = nodes
            return
        taken = self._taken(node, computed)
        nodes = self._merged(node, taken)
        for value in computed:
            if value in taken:
                continue
            reason = self._obstacle(node, value)
            if reason is None:
                self.misses[value, result] = self._miss_second(node, value, taken)
            elif not taken:
                self.misses[value, result] = reason
        for value in taken:
            del self.members[value]
        self.members[result] = nodes

    def _taken(self, node: GraphNode, computed: list[str]) -> tuple[str, ...]:
        """What the groups store that `node` takes in, in order."""
        types, shape = self.graph.types, self.graph.types[node.outputs[0]].shape

        def open_(value: str) -> bool:
            inner = value in self.members and value not in self.stored
            return inner and types[value].shape == shape

        found = self._feeding(node, [value for value in computed if open_(value)], open_)
        found = self._closed(node, found)
        if self._fits(node, found):
            return tuple(found)
        free = [value for value in computed if self._obstacle(node, value) is None]
        return (max(free, key=self.order.__getitem__),) if free else ()

    def _feeding(
        self, node: GraphNode, computed: list[str], open_: Callable[[str], bool]
    ) -> list[str]:
        """What the groups store that feed `node` and nobody but it and each other, last ones first;
        cut short where they are more than fit. A reader stands behind what it reads, so that it is
        known whether it is among them.
        """
        inside, seen, found = {node.outputs[0]}, set[str](), list[str]()
        waiting = [(-self.order[value], value) for value in computed]
        heapify(waiting)
        count = 0
        while waiting and count <= 2 * self.most_nodes:
            _, value = heappop(waiting)
            alone = all(reader.outputs[0] in inside for reader in self.consumers[value])
            if value in seen or not alone:
                continue
            seen.add(value)
            found.append(value)
            members = self.members[value]
            count += len(members)
            inside.update(m.outputs[0] for m in members if m.op.role is OperatorRole.ELEMENTWISE)
            for inner in {v for member in members for v in member.inputs if open_(v)}:
                heappush(waiting, (-self.order[inner], inner))
        return found

    def _closed(self, node: GraphNode, found: list[str]) -> list[str]:
        """Without what others read, an anchor among them, and with one anchor."""
        while True:
            members = [node, *(member for value in found for member in self.members[value])]
            inside = {m.outputs[0] for m in members if m.op.role is OperatorRole.ELEMENTWISE}
            kept = [v for v in found if all(r.outputs[0] in inside for r in self.consumers[v])]
            if len(kept) == len(found):
                anchors = [v for v in found if not self._is_elementwise(v)]
                if len(anchors) < 2:
                    return sorted(found, key=self.order.__getitem__)
                kept.remove(min(anchors, key=self.order.__getitem__))
            found = kept

    def _is_prologue(self, node: GraphNode, value: str) -> bool:
        """Whether `node` computes row by row what it reads as `value`."""
        open_ = value in self.members and value not in self.stored
        rows = node.op.role is OperatorRole.ROWWISE
        if not open_ or not rows or not self._is_elementwise(value):
            return False
        alone = len(self.consumers[value]) == 1 and node.inputs.index(value) == 0
        same = self.graph.types[value].shape == self.graph.types[node.outputs[0]].shape
        return alone and same and self._fits(node, (value,))

    def _is_elementwise(self, value: str) -> bool:
        """Whether the group that stores `value` has no anchor."""
        return all(member.op.role is OperatorRole.ELEMENTWISE for member in self.members[value])

    def _merged(self, node: GraphNode, taken: Iterable[str]) -> tuple[GraphNode, ...]:
        """What the anchor reads, the anchor, then the others in the graph's order, `node` last."""
        nodes = [member for value in taken for member in self.members[value]]
        return (*self._arranged(nodes), node)

    def _arranged(self, nodes: list[GraphNode]) -> tuple[GraphNode, ...]:
        """What the anchor reads, the anchor, then the others in the graph's order."""
        makers = {member.outputs[0]: member for member in nodes}
        first = [member for member in nodes if member.op.role is not OperatorRole.ELEMENTWISE]
        for member in first:  # grows: what feeds these
            first += [makers[v] for v in member.inputs if v in makers and makers[v] not in first]
        nodes.sort(key=lambda member: (member not in first, self.order[member.outputs[0]]))
        return tuple(nodes)

    def _fits(self, node: GraphNode, taken: Iterable[str]) -> bool:
        """Whether the kernel is small enough."""
        nodes = self._merged(node, taken)
        if len(nodes) > self.most_nodes or self._copies(nodes) > MOST_COPIES:
            return False
        return self._levels(nodes) <= MOST_HEIGHT and self._reads(nodes) <= MOST_READS

    def _copies(self, nodes: tuple[GraphNode, ...]) -> int:
        """How often, at most, the expression of one node stands in that of the last."""
        copies = Counter(nodes[-1].outputs)
        for member in reversed(nodes):
            for value in member.inputs:
                copies[value] += copies[member.outputs[0]]
        return max(copies[member.outputs[0]] for member in nodes)

    def _cost(self, member: GraphNode) -> InlineCost:
        """What a node adds to the expression of the one that reads it."""
        return member.op.inline_cost(tuple(self.graph.types[v].dtype for v in member.inputs))

    def _levels(self, nodes: tuple[GraphNode, ...]) -> int:
        """How high the expression of the last node is with those of the others in it."""
        levels: dict[str, int] = {}
        for member in nodes:
            below = max((levels.get(value, 0) for value in member.inputs), default=0)
            levels[member.outputs[0]] = below + self._cost(member).levels
        return levels[nodes[-1].outputs[0]]

    def _reads(self, nodes: tuple[GraphNode, ...]) -> int:
        """How often, at most, one element of a node stands in the expression of the last."""
        reads = Counter(nodes[-1].outputs)
        for member in reversed(nodes):
            for value, count in zip(member.inputs, self._cost(member).reads, strict=True):
                reads[value] += reads[member.outputs[0]] * count
        return max(reads[member.outputs[0]] for member in nodes)

    def _obstacle(self, node: GraphNode, value: str) -> MissedFusion | None:
        """Why `node` cannot run in the kernel that computes `value`; None when it can."""
        producer, types = self.producers[value], self.graph.types
        readers = [reader for reader in self.consumers[value] if reader is not node]

        def miss(condition: str, edit: str) -> MissedFusion:
            return MissedFusion(producer.title, node.title, condition, edit)

        if is_view(producer, types):
            return miss(
                "the value is read under another shape",
                f"apply {node.op.title} before {producer.op.title}",
            )
        if len(producer.outputs) > 1:
            return miss(
                f"{producer.op.title} computes {len(producer.outputs)} values and stores them all",
                f"let {node.op.title} read what one with a single output computes",
            )
        if value in self.stored - self.outputs:
            return miss(
                f"'{value}' is read within a branch or a loop, or given by one, and must be stored",
                f"let {node.op.title} stand where {producer.op.title} does",
            )
        if value in self.stored:
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
        nodes = self._merged(node, [value])
        copies = self._copies(nodes)
        if copies > MOST_COPIES or (copies := self._reads(nodes)) > MOST_READS:
            return miss(
                f"a part of '{value}' would stand {copies} times in one expression",
                f"let {node.op.title} read it once",
            )
        levels = self._levels(nodes)
        if levels > MOST_HEIGHT:
            return miss(
                f"the expression would be {levels} levels high, and a kernel takes {MOST_HEIGHT}",
                f"let {node.op.title} read less",
            )
        return None

    def _miss_second(self, node: GraphNode, value: str, taken: tuple[str, ...]) -> MissedFusion:
        other = self.producers[taken[-1]]
        return MissedFusion(
            self.producers[value].title,
            node.title,
            f"it runs in the kernel of {other.title}, and a kernel has one anchor",
            f"combine the inputs of {other.title} and of {self.producers[value].title} "
            "in one operator",
        )

    def _miss_prologues(self, node: GraphNode, computed: list[str]) -> None:
        """An elementwise producer whose only reader is `node`, which is no elementwise operator, or
        whose rows it could compute.
        """
        for value in computed:
            producer = self.producers[value]
            rows = node.op.role is OperatorRole.ROWWISE and value == node.inputs[0]
            open_ = rows and value in self.members and self._is_elementwise(value)
            reason = self._obstacle(node, value) if open_ else None
            if reason is not None:
                self.misses[value, node.outputs[0]] = reason
                continue
            alone = len(self.consumers[value]) == 1 and value not in self.stored
            inline = producer.op.role is OperatorRole.ELEMENTWISE and alone
            if inline and len(self.members[value]) == 1:
                self.misses[value, node.outputs[0]] = MissedFusion(
                    producer.title,
                    node.title,
                    _why_no_prologue(node, self.graph.types[node.outputs[0]]),
                    f"move {producer.op.title} behind what computes '{producer.inputs[0]}'",
                )


def _why_no_prologue(node: GraphNode, result: TensorType) -> str:
    return (
        f"{node.op.title} reads each element more than once or elsewhere for its {result}, "
        "and what stands before an anchor is not computed inside it"
    )
