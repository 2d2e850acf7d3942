"""Functions written in C that a user brings: one opaque step of a function of tensors.

- C: `void symbol(const float *a, ..., float *y, ...)`: a pointer to each input, then to each
  output, all dense and row-major, none overlapping. It reads what it likes of its inputs, writes
  every element of its outputs, keeps no state, and is called by one thread.
- Python: `reference` gives the outputs from NumPy arrays. It is what the function means: the
  interpreter, the NumPy evaluator and every check call it, and nothing else of the user's runs
  outside of compiled code. Where an error bound is wanted its floats are all float64.

Two of them are equal when their C is: a reference has no text.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from .buffer import Buffer
from .errors import IRError

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Reference = Callable[..., Array | tuple[Array, ...]]


class ExternPickleError(IRError, pickle.PicklingError):
    """An extern whose reference has no name by which another process could find it."""


@dataclass(frozen=True, slots=True)
class ExternFunction:
    """A C function and its meaning.

    symbol: its name in `source`, which is a whole C text: includes, tables and helpers too.
    """

    symbol: str
    source: str
    reference: Reference = field(compare=False)

    def __repr__(self) -> str:
        return f"ExternFunction {self.symbol}, C text {self.digest}"

    @property
    def words(self) -> str:
        """What a block does that calls it."""
        return f"calls the C function '{self.symbol}'"

    @property
    def digest(self) -> str:
        """What tells its C text from another: 16 hexadecimal digits of the SHA-256."""
        return hashlib.sha256(self.source.encode("utf-8")).hexdigest()[:16]

    def compute(
        self, inputs: Sequence[Array], outputs: Sequence[tuple[Buffer, np.dtype[np.generic]]]
    ) -> list[Array]:
        """What the reference gives for `inputs`, which it cannot change: an array for each of
        `outputs`, of its shape and of the type beside it.

        Raises: IRError where the reference gives something else; what the reference raises.
        """
        views = [array.view() for array in inputs]
        for view in views:
            view.flags.writeable = False
        made = self.reference(*views)
        listed = made if isinstance(made, tuple) else (made,)
        if len(listed) != len(outputs):
            raise self._refused(f"gave {len(listed)} arrays", f"{len(outputs)}")
        found = []
        for array, (buffer, dtype) in zip(map(np.asarray, listed), outputs, strict=True):
            rounds = array.dtype.kind == "f" and not buffer.type.is_float
            if array.shape != buffer.shape or rounds:
                got = f"gave {array.dtype}{list(array.shape)} for '{buffer.name}'"
                raise self._refused(got, f"{buffer.type}{list(buffer.shape)}")
            found.append(array.astype(dtype, copy=False))
        return found

    def _refused(self, got: str, expected: str) -> IRError:
        return IRError(
            f"extern: the reference of '{self.symbol}' {got}; expected {expected}.",
            code="extern-reference",
            hints=("it takes an array for each input and returns one, or a tuple, of new arrays.",),
        )

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, Reference]]:
        try:
            pickle.dumps(self.reference)
        except (pickle.PicklingError, AttributeError, TypeError):
            raise ExternPickleError(
                f"pickle: the reference of extern '{self.symbol}' is {self.reference!r}, which "
                "another process cannot find.",
                code="extern-pickle",
                hints=("a function of a module, by `def` at its top, can be pickled.",),
            ) from None
        return type(self), (self.symbol, self.source, self.reference)
