"""Read jaxprs into a builder: rules write what each equation is, and what they infer is compared
with what JAX recorded.

What is called is written where it is called: `jit`, `custom_jvp_call`, `remat`. Branches and bodies
of loops are graphs of their own. Equations that no output needs are left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from ....tir.errors import TilewrightError
from ....tir.sizes import AnySize, SizeError, same
from ...errors import ModelError, UnsupportedNode, UnsupportedPart
from ...ir.build import GraphBuilder
from ...ir.ir import Graph, GraphNode, make_graph
from ...types import Array, Constant, Shape, Splat, TensorType
from ..limits import ImportLimits, UnsupportedType, checked_type
from ..onnx.graph_reader import GraphReader
from ..onnx.node import LostRegion, NotSupported
from ..onnx.tensors import TensorReader
from ..size_texts import UnknownSize
from ..tensor_writer import started_reader
from .extents import extent_from
from .keys import physical
from .program import (
    Atom,
    Equation,
    Extent,
    ForeignObject,
    Jaxpr,
    JaxType,
    OpenExtent,
    Parameter,
    Variable,
)
from .rule import NO_VALUES, Rule
from .rules.elementwise import RULES as ELEMENTWISE
from .rules.table import RULES
from .writer import Called, JaxValue, JaxWriter

_OTHERS = "CONTRIBUTING.md says how tilewright gets another primitive."
_EFFECT = "an engine computes its outputs and does nothing else: leave it out."
_REPORT = "if jax.make_jaxpr recorded it, this is a defect of tilewright: please report it."
# what a rule raises on parameters that the primitive does not have
_WRONG = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
_DEEPEST = 64  # of jaxprs within each other


class _Lost(Exception):
    """An equation reads what could not be imported."""


class JaxprReading:
    """What all jaxprs of a program have in common. symbols: the sizes that calls decide.

    failures: equations that could not be imported; parts: what else could not.
    """

    def __init__(self, limits: ImportLimits, symbols: Mapping[str, AnySize]) -> None:
        self.limits, self.symbols = limits, symbols
        self.tensors = TensorReader(None, limits)
        self.failures = list[UnsupportedNode]()
        self.parts = list[UnsupportedPart]()
        self._checked = dict[int, TensorType]()

    def lose(self, kind: str, name: str, error: UnsupportedType) -> None:
        """Note what cannot be imported."""
        self.parts.append(UnsupportedPart(kind, name, f"it {error.reason}", error.hint))

    def fail(self, called: Called, primitive: str, reason: str, hint: str = "") -> None:
        """Note an equation that cannot be imported."""
        self.failures.append(_failure(called, primitive, reason, hint))

    def type(self, type_: JaxType) -> TensorType:
        """What JAX recorded of a value. Raises: UnknownSize, SizeError."""
        return TensorType(type_.dtype, tuple(map(self.size, type_.shape)))

    def size(self, extent: Extent) -> AnySize:
        """Raises: UnknownSize, SizeError."""
        return extent if isinstance(extent, int) else extent_from(extent.text, self.symbols)

    def checked(self, array: Array) -> TensorType:
        """The type of a constant, counted once. Raises: UnsupportedType, ModelError."""
        if id(array) not in self._checked:
            type_ = checked_type("a constant", array.dtype.name, array.shape, self.limits)
            self.tensors.account.store("a constant", type_)
            self._checked[id(array)] = type_
        return self._checked[id(array)]


def count_equations(jaxpr: Jaxpr) -> int:
    """How many equations are read, each as often as it is called. Raises: ModelError."""
    counted = dict[int, int]()

    def count(one: Jaxpr, depth: int) -> int:
        if depth > _DEEPEST:
            raise ModelError(
                f"model: jaxprs lie within each other more than {_DEEPEST} deep; expected fewer "
                "calls, branches and loops around an equation.",
                code="jax-depth",
            )
        if id(one) not in counted:
            inner = (part for item in one.equations for part in _jaxprs(item))
            counted[id(one)] = len(one.equations) + sum(count(part, depth + 1) for part in inner)
        return counted[id(one)]

    return count(jaxpr, 0)


def unknown_equations(jaxpr: Jaxpr, called: Called | None = None) -> Iterator[UnsupportedNode]:
    """The equations, of all jaxprs within each other, that have no rule or an effect."""
    for item in _needed(jaxpr):
        place = _placed(item, called or Called("", "", ""))
        if item.effect:
            reason = f"it does more than compute its outputs ({item.effect})"
            yield _failure(place, item.primitive, reason, _EFFECT)
        elif item.primitive not in RULES:
            yield _failure(place, item.primitive, "there is no rule for it", _OTHERS)
        for inner in _jaxprs(item):
            yield from unknown_equations(inner, place)


def _failure(called: Called, primitive: str, reason: str, hint: str) -> UnsupportedNode:
    return UnsupportedNode(called.name, primitive, "jax", None, reason, hint, called.line)


def _jaxprs(item: Equation) -> Iterator[Jaxpr]:
    left: list[Parameter] = [one for name, one in item.parameters.items() if name not in NO_VALUES]
    while left:
        one = left.pop(0)
        if isinstance(one, Jaxpr):
            yield one
        elif isinstance(one, tuple):
            left = [*one, *left]


def _needed(jaxpr: Jaxpr) -> list[Equation]:
    """The equations that outputs need, or that have an effect."""
    read = {one.name for one in jaxpr.outputs if isinstance(one, Variable)}
    found = list[Equation]()
    for item in reversed(jaxpr.equations):
        if item.effect or read.intersection(item.outputs):
            found.append(item)
            read.update(one.name for one in item.operands if isinstance(one, Variable))
    return found[::-1]


def _placed(item: Equation, called: Called) -> Called:
    """Where an equation stands: one that has no line of its own, where it is called."""
    module = "/".join(filter(None, (called.module, item.module)))
    return Called(
        "/".join(filter(None, (module, item.primitive))), module, item.line or called.line
    )


@dataclass(slots=True)
class Scope:
    """What reads jaxprs into one builder. arrays: what its constants are called; repeated: values
    that only repeat the elements of others.
    """

    reading: JaxprReading
    builder: GraphBuilder
    reader: GraphReader
    arrays: dict[int, JaxValue] = field(default_factory=dict)
    repeated: dict[str, JaxValue] = field(default_factory=dict)

    def read(
        self, jaxpr: Jaxpr, given: Sequence[JaxValue | None], called: Called
    ) -> list[JaxValue | None]:
        """The outputs of a jaxpr on inputs; None for what could not be imported."""
        values = dict(zip(jaxpr.inputs, given, strict=True))
        types = dict(jaxpr.types)
        for name, array in jaxpr.constants.items():
            values[name] = self._held(array)
        for item in _needed(jaxpr):
            types |= {n: t for n, t in zip(item.outputs, item.types, strict=True) if n}
            made = self._equation(item, values, types, _placed(item, called))
            values |= {n: one for n, one in zip(item.outputs, made, strict=True) if n}
        return [self._atom(one, values) for one in jaxpr.outputs]

    def inline(self, jaxpr: Jaxpr, given: Sequence[JaxValue], called: Called) -> list[JaxValue]:
        """As JaxprReader says."""
        return _whole(self.read(jaxpr, given, called))

    def region(self, jaxpr: Jaxpr, given: Sequence[TensorType | Constant], called: Called) -> Graph:
        """As JaxprReader says."""
        builder = GraphBuilder(called.name)
        reader = started_reader(self.reading.tensors, builder, frozenset())
        inputs = list[JaxValue]()
        for number, one in enumerate(given):
            name = builder.fresh(f"in{number}")
            if isinstance(one, TensorType):
                value = builder.input(name, one)
            else:
                value = builder.constant(name, one)
            inputs.append(JaxValue(value, builder.types[value]))
        made = _whole(Scope(self.reading, builder, reader).read(jaxpr, inputs, called))
        outputs = [one.value for one in made]
        drop_unread(builder, outputs)
        return make_graph(builder.name, builder.inputs, outputs, builder.nodes, builder.constants)

    def _held(self, array: Array) -> JaxValue | None:
        """A constant, one for all that are the same array."""
        if id(array) not in self.arrays:
            try:
                type_ = self.reading.checked(array)
            except UnsupportedType as error:
                self.reading.lose("constant", "", error)
                return None
            small = not array.ndim
            held = Splat(array.item(), type_.dtype, ()) if small else array
            name = self.builder.fresh("number" if small else "weight")
            self.arrays[id(array)] = JaxValue(self.builder.constant(name, held), type_)
        return self.arrays[id(array)]

    def _atom(self, atom: Atom, values: Mapping[str, JaxValue | None]) -> JaxValue | None:
        return values[atom.name] if isinstance(atom, Variable) else self._held(atom)

    def _equation(
        self,
        item: Equation,
        values: Mapping[str, JaxValue | None],
        types: Mapping[str, JaxType],
        called: Called,
    ) -> Sequence[JaxValue | None]:
        """What the outputs of an equation are."""
        fail = self.reading.fail
        try:
            return self._made(item, values, types, called)
        except _Lost:
            pass
        except NotSupported as problem:
            fail(called, item.primitive, str(problem), problem.hint)
        except SizeError as error:
            fail(called, item.primitive, error.message.removeprefix("sizes: ").rstrip("."))
        except (UnsupportedType, UnknownSize) as error:
            fail(called, item.primitive, str(error))
        except LostRegion:
            for one in self.reader.model.failures:
                fail(called, item.primitive, f"{one.operator}: {one.reason}", one.hint)
            self.reader.model.failures.clear()
        except ModelError as error:
            error.where = error.where or f"in {_title(item, called)}"
            raise
        return [None] * len(item.outputs)

    def _made(
        self,
        item: Equation,
        values: Mapping[str, JaxValue | None],
        types: Mapping[str, JaxType],
        called: Called,
    ) -> Sequence[JaxValue]:
        rule = RULES.get(item.primitive)
        given = [self._atom(one, values) for one in item.operands]
        operands = [one for one in given if one is not None]
        if rule is None or item.effect or len(operands) < len(given):
            raise _Lost
        parameters = {
            name: self._parameter(one)
            for name, one in item.parameters.items()
            if name not in NO_VALUES
        }
        keys = [isinstance(one, Variable) and types[one.name].key for one in item.operands]
        if any(keys):
            parameters = physical(item.primitive, parameters, operands)
        _check_parameters(rule, parameters)
        recorded = list(map(self.reading.type, item.types))
        writer = JaxWriter(
            called,
            item.primitive,
            self.reader,
            self.reading.tensors,
            self,
            recorded,
            self.repeated,
        )
        try:
            if item.primitive in ELEMENTWISE:
                result = _elementwise(writer, rule, operands, parameters)
            else:
                result = rule(writer, *operands, **parameters)
        except TilewrightError:
            raise
        except _WRONG as error:
            raise ModelError(
                f"model: the rule of {_title(item, called)} failed on its parameters: "
                f"{type(error).__name__}: {error}.",
                code="jax-rule",
                hints=(_REPORT,),
            ) from error
        made: list[JaxValue] = result if isinstance(result, list) else [result]
        _check_types(item, called, made, recorded)
        return made

    def _parameter(self, value: Parameter) -> object:
        """A parameter with the sizes that calls decide."""
        match value:
            case OpenExtent():
                return self.reading.size(value)
            case tuple():
                return tuple(map(self._parameter, value))
            case Mapping():
                return {name: self._parameter(one) for name, one in value.items()}
            case ForeignObject():
                raise NotSupported(f"a parameter is {value.text}, which only JAX understands")
            case _:
                return value


def drop_unread(builder: GraphBuilder, outputs: Iterable[str]) -> None:
    """Remove the nodes and the constants that no output needs."""
    read, kept = set(outputs), list[GraphNode]()
    for node in reversed(builder.nodes):
        if read.intersection(node.outputs):
            read.update(node.inputs)
            kept.append(node)
    builder.nodes = kept[::-1]
    builder.constants = {name: one for name, one in builder.constants.items() if name in read}


def _elementwise(
    writer: JaxWriter,
    rule: Rule,
    operands: Sequence[JaxValue],
    parameters: Mapping[str, object],
) -> JaxValue | list[JaxValue]:
    """What repeats the elements of others is computed once, and repeated then."""
    narrow = [writer.narrow(one) for one in operands]
    result: JaxValue | list[JaxValue] = rule(writer, *narrow, **parameters)
    if not isinstance(result, list) and operands and result.shape == _joint_shape(narrow):
        return writer.repeat(result, _joint_shape(operands))
    return result


def _joint_shape(operands: Sequence[JaxValue]) -> Shape:
    """The shape to which tensors broadcast."""
    rank = max(one.rank for one in operands)
    sizes = [[one.shape[n] for one in operands if one.rank >= -n] for n in range(-rank, 0)]
    return tuple(next((size for size in listed if size != 1), 1) for listed in sizes)


def _whole(made: Sequence[JaxValue | None]) -> list[JaxValue]:
    """Raises: LostRegion where one could not be imported."""
    found = [one for one in made if one is not None]
    if len(found) < len(made):
        raise LostRegion
    return found


def _check_parameters(rule: Rule, parameters: Mapping[str, object]) -> None:
    """A parameter that a rule does not know may change what the primitive means."""
    for name, value in parameters.items():
        if name not in _known_parameters(rule) and value is not None:
            raise NotSupported(f"its parameter '{name}' is not known", _REPORT)


@cache
def _known_parameters(rule: Rule) -> frozenset[str]:
    return frozenset(inspect.signature(rule).parameters)


def _check_types(
    item: Equation, called: Called, made: Sequence[JaxValue], recorded: Sequence[TensorType]
) -> None:
    """What a rule infers is what JAX recorded; sizes may be written in another way."""
    if len(made) != len(recorded):
        raise ModelError(
            f"model: {_title(item, called)} defines {len(recorded)} values; its rule gives "
            f"{len(made)}.",
            code="jax-outputs",
            hints=(_REPORT,),
        )
    for own, wanted in zip(made, recorded, strict=True):
        fits = own.dtype == wanted.dtype and own.rank == wanted.rank
        if fits:
            pairs = zip(own.shape, wanted.shape, strict=True)
            fits = all(same(a, b) is not False for a, b in pairs)
        if not fits:
            raise ModelError(
                f"model: {_title(item, called)} is {own.type}; JAX recorded {wanted}.",
                code="jax-type",
                hints=(_REPORT,),
            )


def _title(item: Equation, called: Called) -> str:
    return f"equation '{called.name}' ({item.primitive})"
