"""One ONNX node as an import rule sees it: typed attributes, input types, constant inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper

from ....tir.dtype import dtype as as_dtype
from ....tir.number import integer_range
from ....tir.sizes import AnySize, closed_shape, largest
from ...errors import ModelError
from ...ir.at_sizes import has_sizes
from ...ir.build import GraphBuilder
from ...ir.ir import Graph, GraphNode, RegionOperator
from ...ops.base import Operator
from ...ops.size_values import SizeValues
from ...reference.reference import apply
from ...types import (
    Array,
    Constant,
    Shape,
    Splat,
    TensorType,
    array_of,
    frozen,
    numpy_type,
    owned,
)
from ..limits import checked_type
from ..symbols import Range
from .index_walks import IndexWalk, note_walk
from .size_arithmetic import SizeArray, sizes_of
from .structures import TensorSequence, Value, structures_of
from .tensors import TensorReader

SHAPE_ELEMENTS = 1024  # of a constant that is computed while the model is read; one of floats
OPERAND_ELEMENTS = 1 << 20  # of all that it is computed from
LIST_ELEMENTS = 1 << 10  # of a list of sizes, axes or pads
SPELLED = 26  # the opset in which rules write what a node is in operators of ONNX's own
Attribute = int | float | str | Sequence[int] | Sequence[str]
KINDS = {
    "integer": AttributeProto.INT,
    "integers": AttributeProto.INTS,
    "real": AttributeProto.FLOAT,
    "reals": AttributeProto.FLOATS,
    "text": AttributeProto.STRING,
    "texts": AttributeProto.STRINGS,
    "tensor": AttributeProto.TENSOR,
    "graph": AttributeProto.GRAPH,
}


class NotSupported(Exception):
    """A node is valid ONNX, but no core operator says what it means; all are collected. hint: what
    would help. unknown: values of the builder that would have to be known when the model is read.
    """

    def __init__(self, reason: str, hint: str = "", *, unknown: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.hint = hint
        self.unknown = tuple(unknown)


class NoRule(NotSupported):
    """No rule says what a node is; a function may."""


class LostRegion(Exception):
    """A node within a graph of this one is not supported, and has been collected."""


@dataclass(frozen=True, slots=True)
class Region:
    """A graph within a node. captured: what it takes from the graph around the node, after the
    inputs that the node gives it. values: what its outputs are; the graph has their tensors.
    """

    graph: Graph
    captured: tuple[str, ...]
    values: tuple[Value, ...]


class RegionReader(Protocol):
    """What reads graphs within a node."""

    def region(self, proto: GraphProto, given: Sequence[TensorType | Constant]) -> Region:
        """A graph of its own. given: what each of its inputs is. Raises: LostRegion, ModelError."""

    def inline(self, proto: GraphProto, given: Sequence[Value] = ()) -> tuple[Value, ...]:
        """Its nodes as nodes of the graph around it; its outputs. Raises: as `region`."""

    def spell(self, proto: NodeProto) -> tuple[str, ...]:
        """What a node of ONNX's own is, as nodes of the graph around it; its outputs.

        Raises: as `region`.
        """

    def reads_structures(self, proto: GraphProto) -> bool:
        """Whether it reads values around it that are no tensors."""


@dataclass(frozen=True, slots=True)
class NodeReader:
    """A node to import: `inputs` are values of the builder, "" where the model leaves one out.

    walks: those of the values so far that are one. bounds: what the caller says of the sizes of
    values that data decide. given_values: what its inputs are, some of which may be no tensors.
    """

    proto: NodeProto
    version: int
    builder: GraphBuilder
    tensors: TensorReader
    regions: RegionReader
    walks: dict[str, IndexWalk]
    bounds: Mapping[str, Range] = field(default_factory=dict)
    given_values: tuple[Value, ...] = ()

    @property
    def title(self) -> str:
        """How messages call the node."""
        return f"node '{node_name(self.proto)}' ({self.proto.op_type})"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The input values without trailing omissions."""
        names = list(self.proto.input)
        while names and not names[-1]:
            names.pop()
        return tuple(names)

    def outputs(self, count: int) -> tuple[str, ...]:
        """So many output values: the node's own, and made-up names for those that it leaves out."""
        names = [*self.proto.output[:count], *[""] * (count - len(self.proto.output))]
        return tuple(
            name or self.builder.fresh(f"{node_name(self.proto)}.output{n}")
            for n, name in enumerate(names)
        )

    def has(self, position: int) -> bool:
        """Whether the optional input at `position` is given."""
        return position < len(self.inputs) and bool(self.inputs[position])

    def value(self, position: int) -> str:
        """The name of the input at `position`. Raises: ModelError when it is missing."""
        if self.has(position):
            return self.inputs[position]
        raise ModelError(
            f"model: {self.title} lacks its input {position}.", code="onnx-input-missing"
        )

    def optional(self, position: int) -> str:
        """The name of the input at `position`; "" where it is left out."""
        return self.inputs[position] if self.has(position) else ""

    def structured(self, position: int) -> Value:
        """What the input at `position` is. Raises: ModelError when it is missing."""
        self.value(position)
        return self.given_values[position]

    def sequence(self, position: int) -> TensorSequence:
        """An input that is a sequence. Raises: ModelError when it is none."""
        found = self.structured(position)
        if isinstance(found, TensorSequence):
            return found
        raise ModelError(
            f"model: input {position} of {self.title} is {structures_of((found,))[0]}; expected a "
            "sequence.",
            code="onnx-sequence",
        )

    def check_present(self, inputs: tuple[str, ...]) -> None:
        """Refuse inputs of which the model leaves one out."""
        if "" in inputs:
            self.value(self.inputs.index(""))

    def type(self, position: int) -> TensorType:
        """The type of the input at `position`."""
        return self.builder.types[self.value(position)]

    def emit(self, op: Operator, *inputs: str) -> str:
        """Add a node of the graph on the way to this one's result; its value's name is made up.

        Raises: ModelError where an input that it needs is left out.
        """
        return self.emit_all(op, *inputs)[0]

    def emit_all(self, op: Operator, *inputs: str) -> tuple[str, ...]:
        """As `emit`, with the values of all outputs."""
        self.check_present(inputs)
        base = f"{node_name(self.proto)}.{op.title.lower()}"
        names = tuple(self.builder.fresh(f"{base}{n or ''}") for n in range(op.output_count))
        self.define(GraphNode(op, inputs, names, self.proto.name))
        return names

    def spell(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """Read a node of an operator of ONNX's own, as opset `SPELLED` has it, on the way to this
        one's result; its only output. inputs: values, "" for one that is left out.

        Raises: as `RegionReader.spell`.
        """
        return self.spell_all(operator, 1, *inputs, **attributes)[0]

    def spell_all(
        self, operator: str, count: int, *inputs: str, **attributes: Attribute
    ) -> tuple[str, ...]:
        """As `spell`, with the first `count` outputs."""
        name, fresh = node_name(self.proto), self.builder.fresh
        outputs = [fresh(f"{name}.{operator}{n or ''}") for n in range(count)]
        made = helper.make_node(operator, inputs, outputs, name)
        for title, value in attributes.items():
            kind = None if isinstance(value, int | float | str) else _kind_of(value)
            made.attribute.append(helper.make_attribute(title, value, attr_type=kind))
        return self.regions.spell(made)

    def define(self, node: GraphNode) -> None:
        """Add a node, or the constants that it is where the model computes with shapes."""
        types = node.infer(self.builder.types)
        for output, type_ in zip(node.outputs, types, strict=True):
            checked_type(f"value '{output}'", type_.dtype, type_.shape, self.tensors.limits)
        known = self.builder.constants
        values = sizes_of(node, self.builder)
        if values is not None:
            self.define_sizes(node.outputs[0], values, types[0].dtype)
            return
        operands = [array_of(known[value]) for value in node.inputs if value in known]
        small = all(largest(t.elements) <= (1 if t.is_float else SHAPE_ELEMENTS) for t in types)
        few = sum(array.size for array in operands) <= OPERAND_ELEMENTS
        plain = not isinstance(node.op, RegionOperator) and not has_sizes(node.op)
        if plain and small and few and operands and len(operands) == len(node.inputs):
            for output, array in zip(node.outputs, apply(node.op, *operands), strict=True):
                self.builder.constant(output, owned(array))
        else:
            self.builder.add_node(node)
            note_walk(node, self.builder, self.walks)

    def define_sizes(self, name: str, values: SizeArray, dtype: str = "int64") -> None:
        """Add integers that the model computes with, of which a run may decide some."""
        listed = values.reshape(-1).tolist()
        if all(isinstance(value, int) for value in listed):
            self.builder.constant(name, owned(values.astype(dtype)))
        else:
            op = SizeValues(tuple(listed), values.shape)
            node = self.builder.size_values(op, name, dtype, self.proto.name)
            note_walk(node, self.builder, self.walks)

    def constant(self, position: int, most: int = 1 << 20) -> Array:
        """The elements of a constant input, at most `most`.

        Raises: NotSupported when the model computes it.
        """
        name = self.value(position)
        constant = self.builder.constants.get(name)
        if constant is None:
            raise NotSupported(f"input '{name}' is not a constant", unknown=(name,))
        if largest(self.builder.types[name].elements) > most:
            raise ModelError(
                f"model: input '{name}' of {self.title} has {self.builder.types[name].elements} "
                "elements; "
                f"expected at most {most}.",
                code="onnx-input-size",
            )
        return constant.array() if isinstance(constant, Splat) else constant

    def whole(self, position: int) -> int:
        """A constant input that is one integer. Raises: ModelError when it is not."""
        array = self.constant(position, 1)
        if array.size != 1 or not np.issubdtype(array.dtype, np.integer):
            raise ModelError(
                f"model: input '{self.value(position)}' of {self.title} is {self.type(position)}; "
                "expected one integer.",
                code="onnx-input-whole",
            )
        return int(array.item())

    def sizes(self, position: int, most: int = LIST_ELEMENTS) -> tuple[int, ...]:
        """A constant input that is a list of at most `most` integers.

        Raises: ModelError when it is not; SizeError where calls decide one.
        """
        return closed_shape(self.open_sizes(position, most))

    def open_sizes(self, position: int, most: int = LIST_ELEMENTS) -> Shape:
        """A known input that is a list of at most `most` integers, some of which calls decide.

        Raises: ModelError when it is not.
        """
        known = self.builder.sizes.get(self.value(position))
        if known is not None and len(known.shape) == 1 and known.shape[0] <= most:
            return known.values
        array = self.constant(position, most)
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise ModelError(
                f"model: input '{self.value(position)}' of {self.title} is {self.type(position)}; "
                "expected a list of integers.",
                code="onnx-input-list",
            )
        return tuple(int(size) for size in array)

    def size(self, position: int) -> AnySize:
        """A known input that is one integer, which a run may decide.

        Raises: ModelError when it is not.
        """
        known = self.builder.sizes.get(self.value(position))
        return known.values[0] if known is not None else self.whole(position)

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        found = self._find(name, "integer", default is None)
        return int(found.i) if found is not None else default if default is not None else 0

    def flag(self, name: str) -> bool:
        """An integer attribute that means yes when it is not 0."""
        return self.integer(name, 0) != 0

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        found = self._find(name, "integers", default is None)
        return tuple(found.ints) if found is not None else default or ()

    def as_many(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """An attribute that is a list of as many integers as `default`."""
        found = self.integers(name, default)
        if len(found) != len(default):
            raise ModelError(
                f"model: attribute '{name}' of {self.title} is {list(found)}; expected "
                f"{len(default)} integers.",
                code="onnx-attribute-count",
            )
        return found

    def real(self, name: str, default: float) -> float:
        """A floating-point attribute."""
        found = self._find(name, "real", False)
        return float(found.f) if found is not None else default

    def reals(self, name: str) -> tuple[float, ...]:
        """An attribute that is a list of floating-point numbers."""
        found = self._find(name, "reals", True)
        return tuple(found.floats) if found is not None else ()

    def text(self, name: str, default: str) -> str:
        """An attribute that is a string."""
        found = self._find(name, "text", False)
        return found.s.decode("utf-8", "replace") if found is not None else default

    def texts(self, name: str) -> tuple[str, ...]:
        """An attribute that is a list of strings, empty where the node has none."""
        found = self._find(name, "texts", False)
        return tuple(s.decode("utf-8", "replace") for s in found.strings) if found else ()

    def tensor(self, name: str) -> Array:
        """An attribute that is a tensor."""
        found = self._find(name, "tensor", True)
        return self.tensors.read(
            found.t if found is not None else TensorProto(), f"attribute '{name}' of {self.title}"
        )

    def region(self, name: str, given: Sequence[TensorType | Constant]) -> Region:
        """An attribute that is a graph. given: what each of its inputs is."""
        return self.regions.region(self._graph(name), given)

    def inline(self, name: str, given: Sequence[Value] = ()) -> tuple[Value, ...]:
        """The nodes of an attribute that is a graph, from here on; its outputs. given: what its
        inputs are.
        """
        return self.regions.inline(self._graph(name), given)

    def reads_structures(self, name: str) -> bool:
        """Whether the node, or an attribute of it that is a graph, reads what is no tensor."""
        own = (value for value in self.given_values if not isinstance(value, str))
        return any(True for _ in own) or self.regions.reads_structures(self._graph(name))

    def _graph(self, name: str) -> GraphProto:
        found = self._find(name, "graph", True)
        return found.g if found is not None else GraphProto()

    def table(self, what: str, value: Constant) -> str:
        """A constant that the node brings along; `what` ends its name."""
        kept = value if isinstance(value, Splat) else frozen(value)
        return self.builder.constant(self.builder.fresh(f"{node_name(self.proto)}.{what}"), kept)

    def number(self, value: float, position: int = 0) -> str:
        """A constant without axes that has the element type of the input at `position`.

        Raises: ModelError where that type has no such number.
        """
        type_ = self.type(position)
        if not type_.is_float and not _holds(type_.dtype, value):
            raise ModelError(
                f"model: {self.title} computes with {value:g}; expected floating-point inputs, "
                f"got {type_}.",
                code="onnx-number",
            )
        with np.errstate(over="ignore"):  # what a float16 cannot hold is infinite
            rounded = np.asarray(value).astype(numpy_type(type_.dtype)).item()
        return self.table("constant", Splat(rounded, type_.dtype, ()))

    def given(self, name: str) -> bool:
        """Whether the node has attribute `name`."""
        return any(attribute.name == name for attribute in self.proto.attribute)

    def _find(self, name: str, kind: str, required: bool) -> AttributeProto | None:
        attribute: AttributeProto
        for attribute in self.proto.attribute:
            if attribute.name == name:
                if attribute.type != KINDS[kind]:
                    got = AttributeProto.AttributeType.Name(attribute.type).lower()
                    raise ModelError(
                        f"model: attribute '{name}' of {self.title} is of kind {got}; expected "
                        f"{kind}.",
                        code="onnx-attribute-kind",
                    )
                return attribute
        if required:
            raise ModelError(
                f"model: {self.title} lacks attribute '{name}'.", code="onnx-attribute-missing"
            )
        return None


def _kind_of(values: Sequence[int] | Sequence[str]) -> AttributeProto.AttributeType:
    """Of an attribute that is a list, which may be empty."""
    return KINDS["texts" if values and isinstance(values[0], str) else "integers"]


def _holds(dtype: str, value: float) -> bool:
    """Whether an integer type has the number `value`."""
    whole = math.isfinite(value) and value == int(value)
    if not whole or not as_dtype(dtype).is_integer:
        return False
    low, high = integer_range(as_dtype(dtype))
    return low <= value <= high


def schema_of(proto: NodeProto, opset: int) -> onnx.defs.OpSchema | None:
    """ONNX's schema of a node's operator; None where the opset has no such operator."""
    if not 0 <= opset < 1 << 31:
        return None
    try:
        return onnx.defs.get_schema(proto.op_type, opset, proto.domain)
    except onnx.defs.SchemaError:
        return None


def node_name(proto: NodeProto) -> str:
    """A node's name, or that of its first output."""
    return proto.name or next(iter(proto.output), "") or proto.op_type


def attribute_names(proto: NodeProto) -> Mapping[str, AttributeProto]:
    """The attributes of a node by name."""
    return {attribute.name: attribute for attribute in proto.attribute}
