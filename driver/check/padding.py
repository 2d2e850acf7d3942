"""A variant that pads runs of fewer rows, run beside rows that hold what no run brings: the bits of
the rows that are kept stay what they are.

The proof says so of the functions; this sees it of the code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from ...runtime.arrays import Array
from ...runtime.engine.engine import Engine
from ...runtime.engine.padded_program import PaddedArray, PaddedRows
from ...runtime.index_checks import IndexRangeError
from ...runtime.model.interface import TensorSpec
from ...tir.dtype import dtype
from ...tir.errors import InternalError
from ...tir.number import integer_range


def check_padding(closed: Engine, rows: PaddedRows, seed: int = 0) -> None:
    """Run the engine of a variant with its last rows as random data have them, then full of NaN, of
    infinities and of the greatest integers.

    Raises: InternalError where a bit of another row changes.
    """
    kept = max(rows.count // 2, 1)
    given = closed.random_inputs(seed)
    wanted = _kept(closed, rows, given, kept)
    for value in (np.nan, np.inf, -np.inf):
        poisoned = dict(given)
        for spec, one in zip(closed.inputs, rows.inputs, strict=True):
            if one.inner:
                array = given[spec.name].copy()
                np.copyto(_rows(array, one, rows.count)[:, kept:], _extreme(one.dtype, value))
                poisoned[spec.name] = array
        found = _kept(closed, rows, poisoned, kept)
        for spec, a, b in zip(closed.outputs, found, wanted, strict=True):
            if a != b:
                raise InternalError(
                    f"compile: of '{spec.name}' of '{closed.name}' the first {kept} of "
                    f"{rows.count} rows are others where those behind them hold {value}; expected "
                    "the same bits.",
                    code="padding-check",
                )


def _kept(
    closed: Engine, rows: PaddedRows, given: Mapping[str, Array], kept: int
) -> Sequence[bytes]:
    """The bytes of the rows that are kept, of each output."""
    made = {spec.name: np.zeros(one.shape, one.dtype) for spec, one in _outputs(closed, rows)}
    with suppress(IndexRangeError):  # of what was added: it has run with the nearest index
        closed.run(given, out=made)
    return [
        (_rows(made[spec.name], one, rows.count)[:, :kept] if one.inner else made[spec.name])
        .astype(one.dtype)
        .tobytes()
        for spec, one in _outputs(closed, rows)
    ]


def _outputs(closed: Engine, rows: PaddedRows) -> list[tuple[TensorSpec, PaddedArray]]:
    return list(zip(closed.outputs, rows.outputs, strict=True))


def _rows(array: Array, one: PaddedArray, count: int) -> Array:
    return array.reshape(-1, count, one.inner)


def _extreme(numpy_type: np.dtype[np.generic], value: float) -> Array:
    """The value in a type; of integers the greatest or the least."""
    kind = dtype(numpy_type)
    if kind.is_float:
        return np.array(value, np.float32).astype(numpy_type)
    if kind.is_bool:
        return np.array(True)
    low, high = integer_range(kind)
    return np.array(low if value < 0 else high, numpy_type)
