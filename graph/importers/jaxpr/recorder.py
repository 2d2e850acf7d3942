"""Trace a function of JAX, and write down what was recorded as a program without JAX in it.

What is asked of JAX is public: `jax.make_jaxpr`, `jax.tree_util` and `jax.extend.core`.
"""

from __future__ import annotations

import operator
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ...types import Array
from .arguments import ArgumentsError, argument_names
from .program import (
    Atom,
    Equation,
    Extent,
    ForeignObject,
    Jaxpr,
    JaxProgram,
    JaxType,
    OpenExtent,
    Parameter,
    Variable,
)

_FRAMES = 24  # of a traceback that are asked for a line of the user's own
_INSTALLED = ("site-packages", "dist-packages")
_LARGEST = (1 << 31) - 1  # of a size
_ORDERED = ("random_bits", "random_split")  # whose numbers an option of JAX orders


def recorded(jax: Any, function: Callable[..., object], args: tuple[object, ...]) -> JaxProgram:
    """The program of a function on arguments like these.

    Raises: ArgumentsError; what the function or JAX raises while it is traced.
    """
    flatten, shown = jax.tree_util.tree_flatten_with_path, jax.tree_util.keystr
    names = argument_names(function, len(args))
    leaves = [(f"{names[path[0].idx]}{shown(path[1:])}", leaf) for path, leaf in flatten(args)[0]]
    for name, leaf in leaves:
        if not _is_array(leaf):
            raise ArgumentsError(
                f"compile: argument '{name}' is a {type(leaf).__name__}; expected an array, a "
                "number, or a jax.ShapeDtypeStruct.",
                code="jax-argument",
                hints=(
                    "functools.partial(function, ...) gives what is no array, and weights, too.",
                ),
            )
    closed, made = jax.make_jaxpr(function, return_shape=True)(*args)
    inputs = [name for name, _ in leaves]
    outputs = list[str]()
    for path, _ in flatten(made)[0]:
        outputs.append(_apart(_output_name(path, shown), {*inputs, *outputs}))
    recorder = _Recorder(jax)
    jaxpr = recorder.closed(closed)
    return JaxProgram(_title(function), jaxpr, tuple(inputs), tuple(outputs), recorder.ranges)


def _title(function: Callable[..., object]) -> str:
    """A name for what is compiled: of the function, or of the object whose method it is."""
    while isinstance(function, partial):
        function = function.func
    own = getattr(function, "__self__", None)
    named = type(own) if own is not None else function
    title = getattr(named, "__name__", "") or type(named).__name__
    return title if title.isidentifier() else "function"


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, bool | int | float) or (
        hasattr(leaf, "shape") and hasattr(leaf, "dtype")
    )


def _output_name(path: Sequence[Any], shown: Callable[[object], str]) -> str:
    """The key of a dict, the field of a record; else "output", and where in it."""
    key = getattr(path[0], "key", getattr(path[0], "name", None)) if path else None
    if isinstance(key, str) and key:
        return f"{key}{shown(path[1:])}"
    return f"output{shown(path)}"


def _check_constraints(scope: str) -> None:
    """Refuse what is said of sizes and cannot be said again. scope: as JAX prints it, a line for
    each constraint behind the first one. Raises: ArgumentsError.
    """
    bound = r"\s*[A-Za-z_]\w*\s*(<=|>=|==)\s*\d+\s*"
    for line in scope.splitlines()[1:]:
        if not re.fullmatch(bound, line):
            raise ArgumentsError(
                f"compile: sizes have the constraint '{line.strip()}'; expected bounds of single "
                "sizes, as 'b <= 64'.",
                code="jax-constraint",
                hints=(
                    "without it, or with numbers as sizes, the function may be traced as well.",
                ),
            )


def _apart(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_"
    return name


class _Recorder:
    """Writes jaxprs down, each once. ranges: of the sizes that calls decide."""

    def __init__(self, jax: Any) -> None:
        self.jax, self.core = jax, import_module("jax.extend.core")
        self.lines: Callable[..., str] = import_module("jax.extend.source_info_util").summarize
        self.home = os.path.dirname(jax.__file__) + os.sep
        self.jaxprs = dict[int, tuple[object, Jaxpr]]()
        self.arrays = dict[int, tuple[object, Array]]()
        self.ranges = dict[str, tuple[int, int | None]]()

    def closed(self, jaxpr: Any) -> Jaxpr:
        """A ClosedJaxpr, or a Jaxpr without constants."""
        if id(jaxpr) not in self.jaxprs:
            inner = getattr(jaxpr, "jaxpr", jaxpr)
            made = self._jaxpr(inner, getattr(jaxpr, "consts", ()))
            self.jaxprs[id(jaxpr)] = (jaxpr, made)  # the object, so that its number stays its own
        return self.jaxprs[id(jaxpr)][1]

    def _jaxpr(self, jaxpr: Any, constants: Sequence[object]) -> Jaxpr:
        names = dict[object, str]()

        def atom(one: Any) -> Atom:
            if isinstance(one, self.core.Literal):
                return np.asarray(one.val, one.aval.dtype)
            return Variable(names[one])

        def defined(variables: Iterable[object]) -> tuple[str, ...]:
            for one in variables:
                names[one] = f"v{len(names)}"
            return tuple(names[one] for one in variables)

        known, inputs = defined(jaxpr.constvars), defined(jaxpr.invars)
        equations = list[Equation]()
        for item in jaxpr.eqns:
            operands = tuple(map(atom, item.invars))
            drop = [isinstance(one, self.core.DropVar) for one in item.outvars]
            given = defined([one for one, no in zip(item.outvars, drop, strict=True) if not no])
            left = iter(given)
            equations.append(
                self._equation(item, operands, tuple("" if no else next(left) for no in drop))
            )
        variables = (*jaxpr.constvars, *jaxpr.invars)
        return Jaxpr(
            inputs,
            tuple(map(atom, jaxpr.outvars)),
            tuple(equations),
            {names[one]: self._type(one.aval) for one in variables},
            {name: self._array(one) for name, one in zip(known, constants, strict=True)},
            self._is_internal(jaxpr),
        )

    def _equation(
        self, item: Any, operands: tuple[Atom, ...], outputs: tuple[str, ...]
    ) -> Equation:
        name = str(item.primitive.name)
        parameters = {str(key): self._parameter(one) for key, one in item.params.items()}
        if name in _ORDERED:
            parameters["partitionable"] = bool(item.ctx.threefry_partitionable)
        return Equation(
            name,
            operands,
            outputs,
            tuple(self._type(one.aval) for one in item.outvars),
            parameters,
            str(item.source_info.name_stack),
            self._line(item.source_info),
            ", ".join(sorted(type(effect).__name__ for effect in item.effects)),
        )

    def _is_internal(self, jaxpr: Any) -> bool:
        """Whether JAX itself has the function: jnp.where, jax.nn.silu."""
        source = str(getattr(getattr(jaxpr, "debug_info", None), "func_src_info", ""))
        return f" at {self.home}" in source

    def _line(self, source: Any) -> str:
        """Where the innermost of the user's own functions made an equation: "model.py:7"."""
        found = ""
        for line in self.lines(source, _FRAMES).splitlines():
            match = re.match(r"(.*?):(\d+)(?::\d+)? \(", line)
            if match and not (found and any(part in match[1] for part in _INSTALLED)):
                found = f"{os.path.basename(match[1])}:{match[2]}"
        return found

    def _type(self, aval: Any) -> JaxType:
        dtype, shape = getattr(aval, "dtype", None), getattr(aval, "shape", ())
        extents = tuple(map(self._extent, shape))
        if dtype is None:
            return JaxType(str(aval), extents)
        if self.jax.dtypes.issubdtype(dtype, self.jax.dtypes.prng_key):
            if str(dtype) != "key<fry>":
                return JaxType(str(dtype), extents)
            return JaxType("uint32", (*extents, 2), key=True)
        return JaxType(np.dtype(dtype).name, extents)

    def _extent(self, extent: Any) -> Extent:
        if not self.jax.export.is_symbolic_dim(extent):
            return int(extent)
        self._note_range(extent)
        return OpenExtent(str(extent))

    def _note_range(self, extent: Any) -> None:
        """Of a size that is one symbol: what JAX knows of it."""
        name = str(extent)
        if name.isidentifier() and name not in self.ranges:
            _check_constraints(str(extent.scope))
            unknown = self.core.InconclusiveDimensionOperation

            def holds(compare: Callable[[Any, int], bool], number: int) -> bool:
                try:
                    return bool(compare(extent, number))
                except unknown:
                    return False

            low = bisect_left(range(_LARGEST), True, key=lambda n: not holds(operator.ge, n))
            high = bisect_left(range(_LARGEST), True, key=lambda n: holds(operator.le, n))
            self.ranges[name] = (low - 1, high if high < _LARGEST else None)

    def _array(self, value: Any) -> Array:
        """A constant, copied: who wrote it may write to it again. Equal objects are one array."""
        if id(value) not in self.arrays:
            dtype = getattr(value, "dtype", None)
            is_key = dtype is not None and self.jax.dtypes.issubdtype(
                dtype, self.jax.dtypes.prng_key
            )
            array = np.array(self.jax.random.key_data(value) if is_key else value)
            array.flags.writeable = False
            self.arrays[id(value)] = (value, array)
        return self.arrays[id(value)][1]

    def _parameter(self, value: Any) -> Parameter:
        match value:
            case None | bool() | str():
                return value
            case Enum():
                return value.name
            case int() | np.integer():
                return int(value)
            case float() | np.floating():
                return float(value)
            case np.bool_():
                return bool(value)
            case np.dtype():
                return value.name
            case np.ndarray() | self.jax.Array():
                return self._array(value)
            case self.core.ClosedJaxpr() | self.core.Jaxpr():
                return self.closed(value)
            case Mapping():
                return {str(name): self._parameter(one) for name, one in value.items()}
            case tuple() if hasattr(value, "key_shape"):  # a generator of random numbers
                return str(getattr(value, "name", ""))
            case tuple() if hasattr(value, "_fields"):
                return {name: self._parameter(getattr(value, name)) for name in value._fields}
            case tuple() | list():
                return tuple(map(self._parameter, value))
        if self.jax.export.is_symbolic_dim(value):
            return self._extent(value)
        if isinstance(getattr(value, "dtype", None), np.dtype):  # jnp.float32
            return str(value.dtype.name)
        if is_dataclass(value):
            return {one.name: self._parameter(getattr(value, one.name)) for one in fields(value)}
        return ForeignObject(type(value).__qualname__)
