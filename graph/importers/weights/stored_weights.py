"""Tensors of a file by their names, each read when it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ....tir.errors import misspelt
from ....tir.text.size import bytes_text
from ...block_weights import BlockWeights
from ...errors import ModelError
from ...types import Array

Weights = Array | BlockWeights


class WeightNameError(ModelError, KeyError):
    """A file has no tensor of that name."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor that lies in a file: the name of its type there, its bytes, and how it is read."""

    kind: str
    nbytes: int
    read: Callable[[], Weights]


class StoredWeights(Mapping[str, Weights]):
    """The tensors of a file by name: NumPy arrays, and BlockWeights where they are of few bits.

    A tensor is read from the mapped file each time it is asked for; nothing is kept. Arrays whose
    type NumPy has are the file's own bytes and cannot be written to, others are made of them. The
    file must not be changed while its tensors are in use.

    metadata: what else the file says, by key.
    """

    def __init__(
        self, source: str, tensors: Mapping[str, StoredTensor], metadata: Mapping[str, object]
    ) -> None:
        self.source = source
        self.metadata = metadata
        self._tensors = tensors

    def __getitem__(self, name: str) -> Weights:
        """A tensor, read. Raises: WeightNameError, ModelError where its type is not read."""
        if name not in self._tensors:
            message, hints = misspelt(
                f"model: '{self.source}' has no tensor", name, self._tensors, {}, "list(weights)"
            )
            raise WeightNameError(message, code="weights-name", hints=hints)
        return self._tensors[name].read()

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        kinds = Counter(tensor.kind for tensor in self._tensors.values())
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        size = bytes_text(sum(tensor.nbytes for tensor in self._tensors.values()))
        return f"{self.source}: {len(self)} tensors ({listed or 'none'}), {size}"

    @property
    def kinds(self) -> dict[str, str]:
        """The type that each tensor has in the file, by its name there: "Q4_K", "F16"."""
        return {name: tensor.kind for name, tensor in self._tensors.items()}


def array_of_bytes(data: memoryview, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> Array:
    """An array whose elements lie in `data`: these bytes, or a copy where they are not aligned."""
    array = np.frombuffer(data, np.uint8).view(dtype) if len(data) else np.empty(0, dtype)
    shaped = array.reshape(shape)
    aligned: Array = shaped if shaped.flags.aligned else shaped.copy()
    aligned.flags.writeable = False
    return aligned
