"""The kinds of parameters of a primitive: how an argument is resolved on the function as it is, how
a trace writes it, and how it is read from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...tir.buffer import current_scope
from ...tir.func import PrimFunc
from ..legality.externs import check_loops
from ..trace.argument_types import misfit
from ..trace.references import LoopRef, References


@dataclass(frozen=True, slots=True)
class StepSite:
    """Where a step is taken: the function as it is, what keys and handles stand for in it, and the
    name of the primitive, for messages.
    """

    func: PrimFunc
    references: References
    primitive: str


class ParameterKind:
    """The kind of a parameter: by default data of JSON, which the trace and the rewrite have as it
    is.
    """

    __slots__ = ()

    def resolve(self, value: object, site: StepSite) -> object:
        """What the rewrite gets for an argument. Raises: ScheduleError."""
        return value

    def encode(self, value: object, site: StepSite) -> object:
        """An argument as a trace has it; None where it leaves it out."""
        return value

    def decode(self, value: object, site: StepSite) -> object:
        """The argument that a trace has as `value`. Raises: what a lookup raises (LookupError,
        TypeError, ValueError or AttributeError) for a reference to what is not there.
        """
        return value

    def misfit(self, value: object, hint: object) -> str | None:
        """What was expected, in words, of an argument that is not of this kind; None where it is.

        hint: the annotation of the parameter of the rewrite.
        """
        return misfit(value, hint)


class _Optional(ParameterKind):
    """Data that a trace leaves out where it is empty or false."""

    __slots__ = ()

    def encode(self, value: object, site: StepSite) -> object:
        return value or None


class _Scope(ParameterKind):
    """The name of a scope of memory, which an old trace may call by a former one."""

    __slots__ = ()

    def decode(self, value: object, site: StepSite) -> object:
        return current_scope(value) if isinstance(value, str) else value


class _Loop(ParameterKind):
    """The handle of a loop; the rewrite gets its variable."""

    __slots__ = ()

    def resolve(self, value: object, site: StepSite) -> object:
        return site.references.loop(site.func, value, site.primitive)

    def encode(self, value: object, site: StepSite) -> object:
        assert isinstance(value, LoopRef)
        return {"loop": value.key, "name": value.name}

    def decode(self, value: object, site: StepSite) -> object:
        if not isinstance(value, Mapping) or "loop" not in value:
            return value
        key = str(value["loop"])
        if key not in site.references.loops and key not in site.references.consumed:
            raise LookupError(key)  # no step took it: the function never had it
        return LoopRef(key, str(value.get("name", key)))

    def misfit(self, value: object, hint: object) -> str | None:
        return misfit(value, LoopRef)


class _Loops(ParameterKind):
    """The handles of loops; the rewrite gets their variables."""

    __slots__ = ()

    def resolve(self, value: object, site: StepSite) -> object:
        return tuple(LOOP.resolve(item, site) for item in _items(value))

    def encode(self, value: object, site: StepSite) -> object:
        return tuple(LOOP.encode(item, site) for item in _items(value))

    def decode(self, value: object, site: StepSite) -> object:
        return tuple(LOOP.decode(item, site) for item in _items(value))

    def misfit(self, value: object, hint: object) -> str | None:
        found = (LOOP.misfit(item, hint) for item in _items(value))
        return next(filter(None, found), None)


class _LoopPair(_Loops):
    """The handles of two loops."""

    __slots__ = ()

    def misfit(self, value: object, hint: object) -> str | None:
        return "two loops" if len(_items(value)) != 2 else super().misfit(value, hint)


class _Block(ParameterKind):
    """The name of a block of loops, which the rewrite gets."""

    __slots__ = ()

    def resolve(self, value: object, site: StepSite) -> object:
        site.references.block_key(site.func, value, site.primitive)
        check_loops(site.func, str(value), site.primitive)
        return value

    def encode(self, value: object, site: StepSite) -> object:
        return {"block": site.references.block_key(site.func, value, site.primitive)}

    def decode(self, value: object, site: StepSite) -> object:
        if not isinstance(value, Mapping) or "block" not in value:
            return value
        return site.references.blocks[value["block"]]

    def misfit(self, value: object, hint: object) -> str | None:
        return misfit(value, str)


class _Storage(ParameterKind):
    """The name of a tensor or of a staged copy of one; the rewrite gets its buffer."""

    __slots__ = ()

    def resolve(self, value: object, site: StepSite) -> object:
        return site.references.storage(site.func, self._key(value, site))

    def encode(self, value: object, site: StepSite) -> object:
        return {"tensor": self._key(value, site)}

    def decode(self, value: object, site: StepSite) -> object:
        if not isinstance(value, Mapping) or "tensor" not in value:
            return value
        return site.references.storage(site.func, value["tensor"]).name

    def misfit(self, value: object, hint: object) -> str | None:
        return misfit(value, str)

    def _key(self, name: object, site: StepSite) -> str:
        return site.references.tensor_key(site.func, name, site.primitive)


class _Tensor(_Storage):
    """The name of a tensor, whose buffer the rewrite gets, or of a staged copy, which stands for
    the tensor that it keeps closer.
    """

    __slots__ = ()

    def resolve(self, value: object, site: StepSite) -> object:
        return site.references.tensor(site.func, self._key(value, site))


def _items(value: object) -> tuple[object, ...]:
    """The items of a list; what is none stands for itself."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)


PLAIN = ParameterKind()
OPTIONAL = _Optional()
SCOPE = _Scope()
LOOP = _Loop()
LOOPS = _Loops()
LOOP_PAIR = _LoopPair()
BLOCK = _Block()
TENSOR = _Tensor()
STORAGE = _Storage()
