"""Graphs of FX whose nodes call operators of aten, as graphs that the rules of aten read.

Sizes that calls decide are SymInts there; their expressions are told as the text that an archive
has for them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..aten.places import line_of, module_path
from ..aten.program import (
    Argument,
    ExportedGraph,
    ExportedNode,
    Extent,
    Known,
    Named,
    Output,
    RecordedType,
    Subgraph,
)
from .tensors import ArrayReader, dtype_name, torch

_GET = "_operator.getitem"
_STRIDED = "aten.as_strided.default"


@dataclass
class FxReader:
    """Reads a graph and those within it. known: what nodes get from the module, by their names;
    values: what each node stands for. same: symbols that stand for others, or for numbers.
    """

    arrays: ArrayReader = field(default_factory=ArrayReader)
    known: dict[str, Known] = field(default_factory=dict)
    values: dict[Any, Argument] = field(default_factory=dict)
    same: Mapping[Any, Any] = field(default_factory=dict)

    def graph(self, module: Any, prefix: str = "") -> ExportedGraph:
        """The graph of a GraphModule. prefix: of the names of what it gets from the module.

        Raises: ModelError.
        """
        return _Reading(self, module, prefix, self.values).graph()


@dataclass
class _Reading:
    """One graph."""

    reader: FxReader
    module: Any
    prefix: str
    values: dict[Any, Argument]
    types: dict[str, RecordedType] = field(default_factory=dict)
    nodes: list[ExportedNode] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: tuple[Argument, ...] = ()

    def graph(self) -> ExportedGraph:
        for node in self.module.graph.nodes:
            getattr(self, f"_{node.op}")(node)
        return ExportedGraph(tuple(self.inputs), self.outputs, tuple(self.nodes), self.types)

    def _placeholder(self, node: Any) -> None:
        self.inputs.append(node.name)
        self._name(node, node.name, node.meta.get("val"))

    def _get_attr(self, node: Any) -> None:
        found = self.module
        for part in node.target.split("."):
            found = getattr(found, part)
        name = f"{self.prefix}{node.name}"
        if isinstance(found, torch().fx.GraphModule):
            self.values[node] = Subgraph(self.reader.graph(found, f"{name}."))
        else:
            what = f"constant '{node.target}'"
            self.reader.known[name] = self.reader.arrays.read(what, found)
            self.values[node] = Named(name)

    def _call_function(self, node: Any) -> None:
        target = _target(node.target)
        if target == _GET and isinstance(self.values.get(node.args[0]), tuple):
            whole = self.values[node.args[0]]
            assert isinstance(whole, tuple)
            self.values[node] = whole[node.args[1]]
            return
        arguments = {key: self._argument(value) for key, value in _named(node)}
        if target == _STRIDED and _lies_as_before(node):
            target = "aten.view.default"
            arguments = {"self": arguments["self"], "size": arguments["size"]}
        made = node.meta.get("val")
        outputs = self._outputs(node, made)
        trace = str(node.meta.get("stack_trace") or "")
        module = _module(node.meta.get("nn_module_stack"))
        self.nodes.append(
            ExportedNode(node.name, target, arguments, outputs, module, line_of(trace))
        )

    def _outputs(self, node: Any, made: Any) -> tuple[Output, ...]:
        if not isinstance(made, list | tuple):
            self._name(node, node.name, made)
            return (None if made is None else node.name,)
        names = [f"{node.name}_{number}" for number in range(len(made))]
        self.values[node] = tuple(map(Named, names))
        for name, value in zip(names, made, strict=True):
            self._record(name, value)
        schema = getattr(node.target, "_schema", None)
        one = schema is not None and len(schema.returns) == 1
        return (tuple(names),) if one else tuple(names)

    def _output(self, node: Any) -> None:
        given = node.args[0]
        listed = given if isinstance(given, list | tuple) else (given,)
        self.outputs = tuple(self._argument(one) for one in listed)

    def _name(self, node: Any, name: str, made: Any) -> None:
        self.values[node] = Named(name)
        self._record(name, made)

    def _record(self, name: str, made: Any) -> None:
        if isinstance(made, torch().Tensor):
            shape = tuple(extent(size, self.reader.same) for size in made.shape)
            self.types[name] = RecordedType(dtype_name(made.dtype), shape)

    def _argument(self, value: Any) -> Argument:
        module = torch()
        if isinstance(value, module.fx.Node):
            return self.values[value]
        if isinstance(value, list | tuple):
            return tuple(self._argument(one) for one in value)
        if isinstance(value, module.dtype):
            return dtype_name(value)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return str(value)  # a device, a layout: what no rule has


def extent(size: Any, same: Mapping[Any, Any] | None = None) -> Extent:
    """A size: a number, or the text of the expression that it is."""
    if isinstance(size, int):
        return size
    expression = size.node.expr.xreplace(same or {})
    if expression.is_Integer:
        return int(expression)
    sympy: Any = sys.modules["sympy"]  # torch has it where it has symbols
    return str(sympy.srepr(expression))


def _target(target: Callable[..., object]) -> str:
    """The name of what a node calls, as archives have it."""
    module = torch()
    if isinstance(target, module._ops.OpOverload):
        return str(target)
    if isinstance(target, module._ops.HigherOrderOperator):
        return f"higher_order.{target.name()}"
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


def _named(node: Any) -> Iterable[tuple[str, Any]]:
    """The arguments of a node by the names that the operator's schema has for them."""
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        names: Sequence[str] = [argument.name for argument in schema.arguments]
    elif isinstance(node.target, torch()._ops.HigherOrderOperator):
        names = [f"argument_{number}" for number in range(len(node.args))]
    else:
        names = "ab"  # of arithmetic with sizes
    yield from zip(names, node.args, strict=False)
    yield from node.kwargs.items()


def _lies_as_before(node: Any) -> bool:
    """Whether strides are given to a tensor that has them, axes of size 1 apart."""
    before, after = node.args[0].meta.get("val"), node.meta.get("val")
    if before is None or after is None:
        return False
    own, new = (
        [
            pair
            for pair in zip(map(extent, one.shape), map(extent, one.stride()), strict=True)
            if pair[0] != 1
        ]
        for one in (before, after)
    )
    return own == new and extent(before.storage_offset()) == extent(after.storage_offset())


def _module(stack: Any) -> str:
    """The path of the innermost module."""
    if not stack:
        return ""
    path = list(stack.values())[-1]
    return module_path(str(path[0] if isinstance(path, tuple) else path))
