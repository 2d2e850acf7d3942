"""Copy a graph while its views wait: the frame of the passes that move Transposes and Reshapes.

No view is made until somebody needs one. While the nodes are copied in order, each value of the
model is known as a view of some value of the new graph. A pass says which operators work on what
lies behind the views of their operands, and what their result then is; the others, and the outputs,
get the old values back. Each view is made once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

from ...tir.sizes import closed_shape
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.base import Operator
from ..types import Array, Constant, Shape, Splat


@dataclass(frozen=True, slots=True)
class WaitingView(ABC):
    """A value of the old graph: value `base` of the new one, seen in another way.

    suffix: what is appended to the name of `base` where a view of it is made.
    """

    suffix: ClassVar[str]
    base: str

    @abstractmethod
    def is_plain(self, shape: Shape) -> bool:
        """Whether it is `base` itself, which has `shape`."""

    @abstractmethod
    def shape(self, shape: Shape) -> Shape:
        """Its shape, where `base` has `shape`."""

    @abstractmethod
    def operator(self, shape: Shape) -> Operator:
        """What computes it from `base`, which has `shape`."""

    @abstractmethod
    def array(self, array: Array) -> Array:
        """Its elements, read-only, where those of `base` are `array`."""


V = TypeVar("V", bound=WaitingView)


class ViewMotion(ABC, Generic[V]):
    """The new graph while it grows, and what the values of the old one are in it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder = GraphBuilder.like(graph)
        self.views: dict[str, V] = {}
        self.made: dict[V, str] = {}

    @abstractmethod
    def take(self, node: GraphNode) -> None:
        """Copy a node, as what its operator says of views."""

    @abstractmethod
    def itself(self, value: str) -> V:
        """A value that is in the new graph what it was in the old one."""

    def copy(self) -> Graph:
        """Take all nodes. Returns the new graph, whose outputs are what they were."""
        for node in self.graph.nodes:
            self.take(node)
        result = self.builder.finish({name: self.old(name) for name in self.graph.outputs})
        return rebuilt(self.graph, result.nodes, result.constants)

    def view(self, value: str) -> V:
        """What `value` of the old graph is in the new one."""
        return self.views.get(value) or self.itself(value)

    def old(self, value: str) -> str:
        """A value of the new graph that is `value` of the old one; if possible called that."""
        return self.plain(self.view(value), value)

    def plain(self, view: V, name: str = "") -> str:
        """A value of the new graph that is `view`, made once; if possible called `name`."""
        if view.is_plain(self.builder.types[view.base].shape):
            return view.base
        if view not in self.made:
            if not name or name in self.builder.types:
                name = self.builder.fresh(f"{view.base}.{view.suffix}")
            self.made[view] = self._make(view, name)
        return self.made[view]

    def fixed(self, node: GraphNode) -> None:
        """Copy a node that wants its inputs as they were; its outputs are what they were, too."""
        inputs = tuple(map(self.old, node.inputs))
        self.builder.add_node(GraphNode(node.op, inputs, node.outputs, node.name))

    def _make(self, view: V, name: str) -> str:
        shape = self.builder.types[view.base].shape
        constant = self.builder.constants.get(view.base)
        if constant is None:
            return self.builder.add(view.operator(shape), view.base, output=name)
        return self.builder.constant(name, seen(constant, view.shape(shape), view.array))


def seen(constant: Constant, shape: Shape, see: Callable[[Array], Array]) -> Constant:
    """A constant under a view that gives it `shape`: `see` of its elements; a splat stays one."""
    return (
        replace(constant, shape=closed_shape(shape))
        if isinstance(constant, Splat)
        else see(constant)
    )
