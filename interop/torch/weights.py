"""Weights that an engine holds, and whether those of a call are still the same.

A tensor counts as the same where it is the same object, at the same address, and torch has counted
no write to it. Writes that torch does not count are not seen: those through `tensor.data` and
through a NumPy array of its memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

import torch

_ADDRESS = torch.Tensor.data_ptr


@dataclass(frozen=True, slots=True)
class HeldWeights:
    """The weights of one engine: at which places of a call they stand, and what they were when it
    was made. writes: how many torch had counted.
    """

    places: tuple[int, ...] = ()
    tensors: tuple[Any, ...] = ()
    writes: tuple[int, ...] = ()
    addresses: tuple[int, ...] = ()

    @staticmethod
    def of(values: Sequence[Any], places: Sequence[int]) -> HeldWeights:
        """Those of a call at these places, but for what torch counts no writes of."""
        kept = tuple(place for place in places if _counts_writes(values[place]))
        tensors = tuple(values[place] for place in kept)
        writes = tuple(tensor._version for tensor in tensors)
        return HeldWeights(kept, tensors, writes, tuple(map(_ADDRESS, tensors)))

    @property
    def by_place(self) -> Mapping[int, Any]:
        """The tensors by their places."""
        return dict(zip(self.places, self.tensors, strict=True))

    def same(self, values: Sequence[Any]) -> bool:
        """Whether a call has these weights."""
        return (
            all(map(is_, map(values.__getitem__, self.places), self.tensors))
            and tuple([tensor._version for tensor in self.tensors]) == self.writes
            and tuple(map(_ADDRESS, self.tensors)) == self.addresses
        )

    def changed(self, values: Sequence[Any]) -> list[int]:
        """The places of a call whose weights are others."""
        held = zip(self.places, self.tensors, self.writes, self.addresses, strict=True)
        return [
            place
            for place, tensor, writes, address in held
            if values[place] is not tensor
            or tensor._version != writes
            or tensor.data_ptr() != address
        ]


def _counts_writes(value: Any) -> bool:
    """Whether a value is a tensor of whose writes torch keeps count."""
    return isinstance(value, torch.Tensor) and not value.is_inference()
