"""What a rule writes the meaning of an equation with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ....tir.sizes import AnySize, closed_shape, is_closed
from ...ir.ir import Graph, GraphNode, RegionOperator
from ...types import Constant, Splat, TensorType
from ..onnx.graph_reader import GraphReader
from ..onnx.tensors import TensorReader
from ..tensor_writer import TensorWriter, WrittenTensor
from .program import Jaxpr

JaxValue = WrittenTensor


@dataclass(frozen=True, slots=True)
class Called:
    """An equation that runs jaxprs, as they see it: where it stands."""

    name: str
    module: str
    line: str


class JaxprReader(Protocol):
    """What reads the jaxprs that an equation runs."""

    def inline(self, jaxpr: Jaxpr, given: Sequence[JaxValue], called: Called) -> list[JaxValue]:
        """Its equations from here on; its outputs. Raises: LostRegion, ModelError."""

    def region(self, jaxpr: Jaxpr, given: Sequence[TensorType | Constant], called: Called) -> Graph:
        """A graph of its own, whose inputs are what is given as a type.

        Raises: LostRegion, ModelError.
        """


class JaxWriter(TensorWriter):
    """Writes the nodes that one equation is into a builder. types: of what it defines; repeated:
    values that only repeat the elements of others, and these.
    """

    def __init__(
        self,
        called: Called,
        primitive: str,
        reader: GraphReader,
        tensors: TensorReader,
        jaxprs: JaxprReader,
        types: Sequence[TensorType],
        repeated: dict[str, JaxValue],
    ) -> None:
        super().__init__(called.name, primitive, reader, tensors)
        self.types = tuple(types)
        self._jaxprs, self._called, self._repeated = jaxprs, called, repeated

    def narrow(self, x: JaxValue) -> JaxValue:
        """What a value repeats, whose axes of one element broadcast to its own; else itself."""
        return self._repeated.get(x.value, x)

    def repeat(self, x: JaxValue, shape: Sequence[AnySize]) -> JaxValue:
        """A tensor repeated along axes of size 1; elementwise equations read it as it is."""
        known, wanted = self.builder.constants.get(x.value), tuple(shape)
        if isinstance(known, Splat) and is_closed(wanted):
            made = self.full(known.value, known.dtype, closed_shape(wanted))
        else:
            made = self.expand(x, wanted)
        if made.shape != x.shape:
            self._repeated[made.value] = x
        return made

    def inline(self, jaxpr: Jaxpr, given: Sequence[JaxValue]) -> list[JaxValue]:
        """The outputs of a jaxpr, whose equations are written here."""
        return self._jaxprs.inline(jaxpr, given, self._called)

    def region(self, jaxpr: Jaxpr, given: Sequence[TensorType | Constant]) -> Graph:
        """A jaxpr as a graph of its own. given: what each of its inputs is."""
        return self._jaxprs.region(jaxpr, given, self._called)

    def held(self, x: JaxValue) -> TensorType | Constant:
        """A constant itself, of another value its type: what a region is given of it."""
        return self.builder.constants.get(x.value, x.type)

    def run(self, op: RegionOperator, inputs: Sequence[JaxValue], count: int) -> list[JaxValue]:
        """A node of an operator that runs graphs, with so many outputs."""
        name = self._called.name
        outputs = tuple(self.builder.fresh(f"{name}.output{n}") for n in range(count))
        self.builder.add_node(GraphNode(op, tuple(one.value for one in inputs), outputs, name))
        return [self.tensor(value) for value in outputs]
