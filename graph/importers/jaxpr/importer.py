"""Import a program of JAX's primitives into a Graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ....tir.sizes import AnySize, dims_in
from ...assumed_sizes import telling_assumed
from ...errors import ModelError, in_numbers, unsupported
from ...ir.build import GraphBuilder
from ...ir.ir import Graph
from ...types import Shape, SymbolicSize, type_of
from ..given import given_constants
from ..limits import ImportLimits, UnsupportedType, checked_type
from ..onnx.graph_reader import TITLE
from ..recorded_sizes import note_symbols, outside_recorded, with_recorded
from ..size_texts import UnknownSize
from ..symbols import Declared, Shapes, resolve
from ..tensor_writer import started_reader
from .extents import symbol_of
from .program import Extent, JaxProgram
from .scope import JaxprReading, Scope, count_equations, drop_unread, unknown_equations
from .writer import Called, JaxValue


def import_jaxpr(
    program: JaxProgram,
    *,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    limits: ImportLimits | None = None,
) -> Graph:
    """The Graph of a program.

    shapes: sizes that it leaves open, by input {"x": (1, 224, 224, 3)} or by JAX's symbol
    {"b": (1, 8, 64)}; else the bounds that JAX knows, and assumed ones where it knows none.
    constants: the values of inputs, which are none from then on.
    Raises: UnsupportedOperator with every equation that we cannot import, ModelError for everything
    else that is wrong.
    """
    return _Importer(program, limits or ImportLimits()).run(shapes, constants)


@dataclass
class _Importer:
    """One program on its way into a builder."""

    program: JaxProgram
    limits: ImportLimits
    symbols: dict[str, AnySize] = field(default_factory=dict)

    def run(self, shapes: Shapes | None, constants: Mapping[str, object] | None) -> Graph:
        """The whole program."""
        total = count_equations(self.program.jaxpr)
        if total > self.limits.nodes:
            raise ModelError(
                f"model: {total} equations; expected at most {self.limits.nodes}.",
                code="jax-equations",
            )
        builder = GraphBuilder(self.program.name[:TITLE])
        self.reading = JaxprReading(self.limits, self.symbols)
        self.reading.failures += unknown_equations(self.program.jaxpr)
        reserved = frozenset((*self.program.inputs, *self.program.outputs))
        reader = started_reader(self.reading.tensors, builder, reserved)
        declared = self._declared()
        known = given_constants(declared, constants)
        for item in declared:
            if item.name in known:
                note_symbols(item, known[item.name].shape, self.symbols)
        free = [item for item in declared if item.name not in known]
        resolved = resolve(free, with_recorded(free, shapes, self.program.ranges))
        with telling_assumed(dims_in(size for shape in resolved.values() for size in shape)):
            given = list[JaxValue | None]()
            for item in declared:
                if item.name in known:
                    value = builder.constant(item.name, known[item.name])
                    given.append(JaxValue(value, type_of(known[item.name])))
                else:
                    given.append(self._input(item, resolved[item.name], builder))
            self._check_ranges()
            scope = Scope(self.reading, builder, reader)
            made = scope.read(self.program.jaxpr, given, Called("", "", ""))
            return self._finished(builder, made)

    def _declared(self) -> list[Declared]:
        found = list[Declared]()
        jaxpr = self.program.jaxpr
        for name, variable in zip(self.program.inputs, jaxpr.inputs, strict=True):
            type_ = jaxpr.types[variable]
            dims = tuple(self._declared_dim(name, n, one) for n, one in enumerate(type_.shape))
            found.append(Declared(name, type_.dtype, dims))
        return found

    def _declared_dim(self, name: str, axis: int, extent: Extent) -> int | SymbolicSize:
        if isinstance(extent, int):
            return extent
        try:
            symbol = symbol_of(extent.text)
        except UnknownSize:
            symbol = ""
        if not symbol:
            raise ModelError(
                f"model: axis {axis} of input '{name}' is '{extent.text}', computed from other "
                "sizes; expected a number, or a size of its own.",
                code="jax-derived-axis",
                hints=("jax.export.symbolic_shape('b, n') gives sizes of their own.",),
            )
        return SymbolicSize(symbol)

    def _input(self, item: Declared, shape: Shape, builder: GraphBuilder) -> JaxValue | None:
        note_symbols(item, shape, self.symbols)
        try:
            type_ = checked_type(f"input '{item.name}'", item.dtype, shape, self.limits)
        except UnsupportedType as error:
            self.reading.lose("input", item.name, error)
            return None
        return JaxValue(builder.input(item.name, type_), type_)

    def _check_ranges(self) -> None:
        """A program says for which sizes it holds."""
        for problem in outside_recorded(self.symbols, self.program.ranges):
            raise ModelError(
                f"shapes: {problem}.",
                code="jax-range",
                hints=("jax.export.symbolic_shape('b', constraints=['b <= 64']) says so.",),
            )

    def _finished(self, builder: GraphBuilder, made: list[JaxValue | None]) -> Graph:
        failures, parts = self.reading.failures, self.reading.parts
        if failures or parts:
            count = len(failures)
            told = f"{count} equation{'s' if count > 1 else ''}" if count else ""
            what = f"{in_numbers(parts, told)} of '{self.program.name}'"
            raise unsupported(what, failures, parts, code="jax-unsupported")
        pairs = zip(self.program.outputs, made, strict=True)
        outputs = {name: one.value for name, one in pairs if one is not None}
        drop_unread(builder, outputs.values())
        return builder.finish(outputs)
