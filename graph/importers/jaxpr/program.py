"""A program of JAX's primitives as `jax.make_jaxpr` recorded it, with nothing of JAX in it.

A jaxpr is a list of equations over variables; some of their parameters are jaxprs, too: what is
called, branches, the body of a loop. A size that calls decide is a text in JAX's own notation.
Keys of random numbers are what JAX holds them as: two words of uint32, on a last axis.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Union

import numpy as np

from ...types import Array


@dataclass(frozen=True, slots=True)
class OpenExtent:
    """A size that calls decide: "b", "2*b + 1", "floordiv(b, 2)"."""

    text: str


Extent = int | OpenExtent


@dataclass(frozen=True, slots=True)
class JaxType:
    """What JAX says that a value is. key: whether its last axis holds the words of a key."""

    dtype: str
    shape: tuple[Extent, ...]
    key: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """A value of a jaxpr."""

    name: str


@dataclass(frozen=True, slots=True)
class ForeignObject:
    """A parameter that means something to JAX alone, as JAX prints it."""

    text: str


Parameter = Union[
    None,
    bool,
    int,
    float,
    str,
    Array,
    OpenExtent,
    ForeignObject,
    "Jaxpr",
    tuple["Parameter", ...],
    Mapping[str, "Parameter"],
]
Atom = Variable | Array  # a value, or a literal


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """A primitive applied to operands. outputs: the variables that it defines, "" for one that
    nobody reads. module: where it stands in the model, "encoder/layer_0"; line: where in a source.
    effect: what it does beside its outputs, "" for nothing.
    """

    primitive: str
    operands: tuple[Atom, ...]
    outputs: tuple[str, ...]
    types: tuple[JaxType, ...]
    parameters: Mapping[str, Parameter]
    module: str = ""
    line: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Jaxpr:
    """Equations in order. constants: variables that are known: what a function closed over.

    types: of inputs and constants. internal: whether it is a function of a library, whose lines say
    nothing about who called it.
    """

    inputs: tuple[str, ...]
    outputs: tuple[Atom, ...]
    equations: tuple[Equation, ...]
    types: Mapping[str, JaxType]
    constants: Mapping[str, Array]
    internal: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class JaxProgram:
    """A jaxpr with the names that callers know: of its inputs, and of its outputs.

    ranges: the least and the largest value of a size that calls decide; None where it has no end.
    """

    name: str
    jaxpr: Jaxpr
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ranges: Mapping[str, tuple[int, int | None]]

    def digest(self) -> str:
        """What identifies the program: equal programs have equal ones."""
        found = hashlib.sha256()
        _feed(self, found.update)
        return found.hexdigest()


def _feed(value: object, update: Callable[[bytes], None]) -> None:
    """Write a value so that no other one is written in the same way; lines change no engine."""
    if isinstance(value, np.ndarray):
        update(f"array {value.dtype.name}{list(value.shape)} ".encode())
        update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        update(f"mapping {len(value)} ".encode())
        for key, one in value.items():
            _feed(key, update)
            _feed(one, update)
    elif isinstance(value, tuple):
        update(f"tuple {len(value)} ".encode())
        for one in value:
            _feed(one, update)
    elif is_dataclass(value):
        update(f"{type(value).__name__} ".encode())
        for item in fields(value):
            if item.name != "line":
                _feed(getattr(value, item.name), update)
    else:
        text = repr(value).encode()
        update(f"{type(value).__name__} {len(text)} ".encode() + text)
