"""Programs of JAX in files: JSON with numbers in it, and larger arrays beside it, in one .npz."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.graph.importers.jaxpr.program import (
    Equation,
    ForeignObject,
    Jaxpr,
    JaxProgram,
    JaxType,
    OpenExtent,
    Variable,
)
from tilewright.graph.types import numpy_type

Array = np.ndarray[Any, Any]
_SMALL = 4  # elements of an array that stands in the text


@dataclass(frozen=True)
class Stored:
    """A program, what it was run on, what JAX computed, and how many nodes of each operator are
    to be recognised in it.
    """

    program: JaxProgram
    given: dict[str, Array]
    wanted: list[Array]
    operators: dict[str, int]


def save(
    path: Path,
    program: JaxProgram,
    given: list[Array],
    wanted: list[Array],
    operators: Mapping[str, int],
) -> None:
    """Write a program with its inputs, in order, and what JAX gave for them."""
    writer = _Writer()
    text = json.dumps(writer.value(program), separators=(",", ":"))
    arrays = {f"c{n}": array for n, array in enumerate(writer.arrays)}
    arrays |= {f"in{n:03}": _plain(np.asarray(array)) for n, array in enumerate(given)}
    arrays |= {f"out{n:03}": _plain(np.asarray(array)) for n, array in enumerate(wanted)}
    names = [np.asarray(array).dtype.name for array in (*given, *wanted)]
    np.savez_compressed(
        path,
        program=np.frombuffer(text.encode(), np.uint8),
        dtypes=np.array(names),
        operators=np.array(json.dumps(dict(operators))),
        **arrays,
    )


def load(path: Path) -> Stored:
    """What `save` wrote."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    reader = _Reader(arrays)
    program = reader.value(json.loads(arrays["program"].tobytes()))
    names = iter(arrays["dtypes"].tolist())
    given = [_typed(arrays[n], next(names)) for n in sorted(arrays) if n.startswith("in")]
    wanted = [_typed(arrays[n], next(names)) for n in sorted(arrays) if n.startswith("out")]
    operators = json.loads(arrays["operators"].item())
    return Stored(program, dict(zip(program.inputs, given, strict=True)), wanted, operators)


def _plain(array: Array) -> Array:
    """The bits of types that NumPy's files do not know."""
    known = array.dtype.kind in "biuf" and array.dtype.isbuiltin == 1
    return array if known else array.view(f"u{array.dtype.itemsize}")


def _typed(array: Array, dtype: str) -> Array:
    return array if array.dtype.name == dtype else array.view(numpy_type(dtype))


_KINDS: tuple[type, ...] = (
    Equation,
    ForeignObject,
    Jaxpr,
    JaxProgram,
    JaxType,
    OpenExtent,
    Variable,
)


class _Writer:
    """Values as JSON. Jaxprs that are one object stay one; so do arrays."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self.seen: dict[int, tuple[object, int]] = {}
        self.known: dict[int, tuple[object, int]] = {}

    def value(self, value: object) -> object:
        match value:
            case None | bool() | int() | float() | str():
                return value
            case np.ndarray():
                return self.array(value)
            case tuple() | list():
                return [self.value(one) for one in value]
            case Mapping():
                return {"map": {name: self.value(one) for name, one in value.items()}}
            case Jaxpr() if id(value) in self.seen:
                return {"again": self.seen[id(value)][1]}
        fields = {name: self.value(getattr(value, name)) for name in value.__dataclass_fields__}  # type: ignore[attr-defined]
        made = {type(value).__name__: fields}
        if isinstance(value, Jaxpr):
            self.seen[id(value)] = (value, len(self.seen))
        return made

    def array(self, value: Array) -> object:
        if value.size <= _SMALL:
            return {"array": value.reshape(-1).tolist(), "of": value.dtype.name, "as": value.shape}
        if id(value) not in self.known:
            self.known[id(value)] = (value, len(self.arrays))
            self.arrays.append(_plain(value))
        return {"held": self.known[id(value)][1], "of": value.dtype.name}


class _Reader:
    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays
        self.seen: list[Jaxpr] = []
        self.held: dict[int, Array] = {}

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self.value(one) for one in value)
        if not isinstance(value, dict):
            return value
        if "array" in value:
            array = np.array(value["array"]).astype(numpy_type(value["of"])).reshape(value["as"])
            array.flags.writeable = False
            return array
        if "held" in value:
            return self.array(value["held"], value["of"])
        if "map" in value:
            return {name: self.value(one) for name, one in value["map"].items()}
        if "again" in value:
            return self.seen[value["again"]]
        ((name, fields),) = value.items()
        kind = next(one for one in _KINDS if one.__name__ == name)
        made = kind(**{key: self.value(one) for key, one in fields.items()})
        if isinstance(made, Jaxpr):
            self.seen.append(made)
        return made

    def array(self, number: int, dtype: str) -> Array:
        if number not in self.held:
            array = _typed(self.arrays[f"c{number}"], dtype)
            array.flags.writeable = False
            self.held[number] = array
        return self.held[number]
