"""Weights that an engine holds, and whether those of a call are still the same.

A tensor counts as the same where it is the same object, at the same address, and torch has counted
no write to it. Writes that torch does not count are not seen: those through `tensor.data` and
through a NumPy array of its memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any

import torch

_ADDRESS = torch.Tensor.data_ptr
_PATIENCE = 3  # times that a weight may change before it is an input of the engine


@dataclass(slots=True)
class FrozenWeights:
    """Arguments that were the same in all calls. changes: how often each has changed; changed:
    whether one had, at the last `hold`.
    """

    arguments: frozenset[int]
    changes: dict[int, int] = field(default_factory=dict)
    changed: bool = False
    _places: tuple[int, ...] = ()
    _tensors: tuple[Any, ...] = ()
    _writes: list[int] = field(default_factory=list)
    _addresses: list[int] = field(default_factory=list)

    def hold(self, values: Sequence[Any]) -> Mapping[int, Any]:
        """The tensors of a call that are held from now on, by argument."""
        self.changed = self._count(values)
        steady = (n for n in sorted(self.arguments) if self.changes.get(n, 0) < _PATIENCE)
        kept = {n: values[n] for n in steady if _counts_writes(values[n])}
        self._places, self._tensors = tuple(kept), tuple(kept.values())
        self._writes = [tensor._version for tensor in self._tensors]
        self._addresses = list(map(_ADDRESS, self._tensors))
        return kept

    def same(self, values: Sequence[Any]) -> bool:
        """Whether a call has the weights that are held."""
        return (
            all(map(is_, map(values.__getitem__, self._places), self._tensors))
            and [tensor._version for tensor in self._tensors] == self._writes
            and list(map(_ADDRESS, self._tensors)) == self._addresses
        )

    def _count(self, values: Sequence[Any]) -> bool:
        """Count what has changed; whether anything has."""
        held = zip(self._places, self._tensors, self._writes, self._addresses, strict=True)
        found = [
            place
            for place, kept, writes, address in held
            if values[place] is not kept
            or values[place]._version != writes
            or values[place].data_ptr() != address
        ]
        for place in found:
            self.changes[place] = self.changes.get(place, 0) + 1
        return bool(found)


def _counts_writes(value: Any) -> bool:
    """Whether a value is a tensor of whose writes torch keeps count."""
    return hasattr(value, "data_ptr") and not value.is_inference()
