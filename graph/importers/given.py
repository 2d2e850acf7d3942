"""Values that a caller says of inputs, which are constants from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...tir.dtype import NAMES
from ...tir.errors import known_names
from ..errors import ModelError
from ..types import Array, SymbolicSize, numpy_type, owned
from .symbols import Declared


def given_constants(
    declared: Sequence[Declared], given: Mapping[str, object] | None
) -> dict[str, Array]:
    """The arrays of inputs that a caller says. Raises: ModelError where one does not fit."""
    known = {item.name: item for item in declared}
    for name in given or {}:
        if name not in known:
            raise ModelError(
                f"constants: there is no input '{name}'; known are {known_names(name, known)}.",
                code="constants-name",
            )
    return {name: _fitting(known[name], value) for name, value in (given or {}).items()}


def _fitting(item: Declared, value: object) -> Array:
    """The value as an array of the type that the model declares."""
    try:
        array = np.asarray(value)
        cast = array.astype(numpy_type(item.dtype))
    except (TypeError, ValueError, OverflowError):
        raise _unfit(item, f"a {type(value).__name__}") from None
    shape = item.dims
    fits = shape is None or (
        len(shape) == array.ndim
        and all(
            isinstance(d, SymbolicSize) or d == n for d, n in zip(shape, array.shape, strict=True)
        )
    )
    known = array.dtype.kind in "biuf" or array.dtype.name in NAMES
    if not fits or not known or not _same(cast, array):
        raise _unfit(item, f"{array.dtype.name}{list(array.shape)}")
    return owned(cast)


def _same(cast: Array, array: Array) -> bool:
    """Whether both are the same numbers."""
    nan = np.not_equal(array, array)
    return bool(np.all(np.equal(cast, array) | (nan & np.not_equal(cast, cast))))


def _unfit(item: Declared, got: str) -> ModelError:
    return ModelError(
        f"constants: input {item} is given as {got}; expected numbers of that type and shape.",
        code="constants-value",
    )
