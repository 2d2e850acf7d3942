"""Loads and stores as Python text: plain, on flat NumPy arrays, or checked, through `Cells`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..buffer import Buffer, Load
from ..stmt import Store
from .checks import InterpreterError


@dataclass(frozen=True, slots=True)
class LoadPlace:
    """Where an access goes, as text.

    row: the number of neighbours that begin at `indices`; 0 for any other access.
    inside: whether the bounds of the indices show that it stays inside the buffer.
    """

    indices: tuple[str, ...]
    row: int = 0
    mask: str | None = None
    inside: bool = False

    @property
    def tuple(self) -> str:
        """The indices as a Python tuple."""
        return f"({', '.join(self.indices)},)" if self.indices else "()"


class Memory:
    """Text of accesses to flat arrays, without checks.

    names: the array of each buffer that is in scope. checked: whether accesses go through `Cells`.
    site: the number of the statement that is being written.
    """

    checked = False

    def __init__(self) -> None:
        self.names: dict[Buffer, str] = {}
        self.site = 0

    def array(self, buffer: Buffer) -> str:
        """The name of a buffer's array. Raises: InterpreterError outside the buffer's scope."""
        if buffer not in self.names:
            known = ", ".join(f"'{b.name}'" for b in self.names) or "none"
            raise InterpreterError(
                f"interpreter: buffer '{buffer.name}' is used outside its Alloc; "
                f"expected one of {known}.",
                code="interpreter-scope",
            )
        return self.names[buffer]

    def load(self, load: Load, place: LoadPlace, other: str, peek: bool) -> str:
        """The elements of a Load.

        `peek` asks a checked memory for the pair of the value and whether it is initialised.
        """
        name, flat = self.array(load.buffer), _flat(load.buffer, place.indices)
        if place.row:
            return f"ar.gather_row({name}, {flat}, {place.row})"
        if load.buffer.type.lanes > 1:
            element = f"{name}[{flat}].copy()"
            return element if place.mask is None else f"np.where({place.mask}, {element}, {other})"
        if load.dtype.lanes > 1:
            return f"ar.gather({name}, {flat}, {place.mask}, {other})"
        element = f"{name}[{flat}]" if load.dtype.is_float else f"{name}.item({flat})"
        return element if place.mask is None else f"({element} if {place.mask} else {other})"

    def store(self, store: Store, place: LoadPlace, value: str, pair: bool) -> str:
        """The line of a Store; `pair` says that the value is what a peeking load gave."""
        name, flat = self.array(store.buffer), _flat(store.buffer, place.indices)
        if place.row:
            return f"ar.scatter_row({name}, {flat}, {value})"
        mask = place.mask
        if store.buffer.type.lanes > 1:
            kept = value if mask is None else f"np.where({mask}, {value}, {name}[{flat}])"
            return f"{name}[{flat}] = {kept}"
        if store.value.dtype.lanes > 1:
            return f"ar.scatter({name}, {flat}, {value}, {mask})"
        line = f"{name}[{flat}] = {value}"
        return line if mask is None else f"if {mask}: {line}"


class CheckedMemory(Memory):
    """Text of accesses through `Cells`, which watch them.

    unwritten: the plain arrays of buffers that nothing writes, so that only bounds need a check.
    """

    checked = True

    def __init__(self) -> None:
        super().__init__()
        self.unwritten: dict[Buffer, str] = {}

    def load(self, load: Load, place: LoadPlace, other: str, peek: bool) -> str:
        name, verb = self.array(load.buffer), "peek" if peek else "read"
        where = f"{self.site}, {place.tuple}"
        if place.inside and place.mask is None:
            flat = _flat(load.buffer, place.indices)
            if load.buffer in self.unwritten and load.dtype.is_float and not peek:
                return f"{self.unwritten[load.buffer]}[{flat}]"
            return f"{name}.{verb}_flat({self.site}, {flat})"
        if any(index.dtype.lanes > 1 for index in load.indices):
            return f"{name}.{verb}_lanes({where}, {place.mask}, {other})"
        if place.mask is None:
            return f"{name}.{verb}({where})"
        if load.dtype.lanes > 1:
            blend = f"np.where({place.mask}, {name}.read({where}), {other})"
            return f"({blend}, True)" if peek else blend
        off = f"({other}, True)" if peek else other
        return f"({name}.{verb}({where}) if {place.mask} else {off})"

    def store(self, store: Store, place: LoadPlace, value: str, pair: bool) -> str:
        given = f"*{value}" if pair else f"{value}, True"
        name = self.array(store.buffer)
        if place.inside and place.mask is None:
            return f"{name}.write_flat({self.site}, {_flat(store.buffer, place.indices)}, {given})"
        if place.mask is None and all(index.dtype.lanes == 1 for index in store.indices):
            return f"{name}.write_at({self.site}, {place.tuple}, {given})"
        return f"{name}.write({self.site}, {place.tuple}, {given}, {place.mask})"


def _flat(buffer: Buffer, indices: Sequence[str]) -> str:
    flat = ""
    for index, extent in zip(indices, buffer.shape, strict=True):
        flat = f"({flat}) * {extent} + {index}" if flat else index
    return flat or "0"
