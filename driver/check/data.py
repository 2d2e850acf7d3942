"""The data that a kernel is checked on: what a single kind of numbers hides, another one shows.

- normal: floats of both signs and of one magnitude. It is where most of a sum's terms matter.
- wide: floats of both signs whose magnitudes are spread evenly, by their logarithm, from 1e-6 to
  1e6, or as far as the type reaches without its squares leaving it; among them zeros of both signs.
- positive: floats of one sign: what a long sum loses does not cancel, logarithms and roots are
  numbers.

A kernel of more than MOST_OPERATIONS, or of arrays of more than MOST_ELEMENTS together, runs on
normal data alone; the verdict says so. What an array holds repeats after PERIOD elements, a prime:
only a kernel that is off by a multiple of it reads the same numbers elsewhere.

Integers are the same for all: half of them anywhere in the range of their type, the others close to
0, and both ends are among them. What is read as an index lies inside its table half of the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

import numpy as np

from ...runtime.arrays import Array
from ...tir.buffer import Buffer, Load
from ...tir.dtype import DType
from ...tir.func import PrimFunc
from ...tir.number import integer_range
from ...tir.visit import loads, walk
from ...tir.work.work import operations

MOST_OPERATIONS = 1 << 23  # of a function whose kernel runs on every kind of data
MOST_ELEMENTS = 1 << 22  # likewise, of the arrays that it is given and makes
PERIOD = 1_000_003
_ZEROS = 16  # of so many wide floats one is a zero
_SMALL = 100  # integers close to 0 are below
_WIDE = 1e6


class Draw(Enum):
    """A kind of data. The value seeds what is drawn."""

    NORMAL = 0
    WIDE = 1
    POSITIVE = 2

    def __str__(self) -> str:
        return self.name.lower()


def draws_for(func: PrimFunc) -> tuple[Draw, ...]:
    """The kinds of data that a kernel runs on: those that differ for its function, of integers two
    seeds; of a large one the first alone, since its reference takes longer than all else.
    """
    given = [p for p in func.parameters if p.role != "output"]
    elements = sum(p.buffer.size for p in func.parameters)
    if not given or operations(func) > MOST_OPERATIONS or elements > MOST_ELEMENTS:
        return (Draw.NORMAL,)
    return tuple(Draw) if any(p.dtype.is_float for p in given) else (Draw.NORMAL, Draw.WIDE)


def draw_arrays(func: PrimFunc, draw: Draw, rng: np.random.Generator) -> dict[str, Array]:
    """An array for each parameter but the outputs, by name, in order."""
    reach = _index_reach(func)
    return {
        p.name: random_array(rng, p.dtype, p.buffer.shape, draw, reach.get(p.buffer))
        for p in func.parameters
        if p.role != "output"
    }


def random_array(
    rng: np.random.Generator,
    dtype: DType,
    shape: tuple[int, ...],
    draw: Draw = Draw.NORMAL,
    reach: int | None = None,
) -> Array:
    """Random numbers of a type. reach: of integers that are indices the size of their table."""
    array = np.empty(shape, dtype.numpy)
    flat = array.reshape(-1)
    first = flat[:PERIOD]  # they are drawn in a wider type
    if dtype.is_float:
        first[...] = _floats(rng, first.size, dtype, draw)
    else:
        first[...] = _integers(rng, first.size, dtype, reach)
    for start in range(PERIOD, flat.size, PERIOD):
        piece = flat[start : start + PERIOD]
        piece[...] = first[: piece.size]
    if not dtype.is_float and flat.size > 1:
        low, high = integer_range(dtype)
        for value in (low, high):
            flat[rng.integers(flat.size)] = value
    return array


def _floats(rng: np.random.Generator, count: int, dtype: DType, draw: Draw) -> Array:
    normal: Array = rng.standard_normal(count, np.float64 if dtype.bits == 64 else np.float32)
    if draw is Draw.NORMAL:
        return normal
    if draw is Draw.POSITIVE:
        return np.abs(normal)
    low, high = _magnitudes(dtype)
    wide = np.exp(rng.uniform(math.log(low), math.log(high), count))
    wide[rng.random(count) < 1 / _ZEROS] = 0.0
    return np.copysign(wide, normal)


def _magnitudes(dtype: DType) -> tuple[float, float]:
    """The least and the greatest magnitude of wide floats."""
    # here, as in dtype.py
    import ml_dtypes

    info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return max(1 / _WIDE, float(info.smallest_normal)), min(_WIDE, math.sqrt(float(info.max)))


def _integers(rng: np.random.Generator, count: int, dtype: DType, reach: int | None) -> Array:
    low, high = integer_range(dtype)
    if dtype.is_bool:
        return rng.integers(0, 2, count)
    held = dtype.numpy if dtype.bits >= 8 else np.dtype(np.int64)
    anywhere = rng.integers(low, high, count, held.type, endpoint=True)
    few = min(_SMALL if reach is None else max(reach, 1), high)
    least = -few if reach is not None else 0
    near = rng.integers(max(low, least), few, count, held.type)
    return np.where(rng.random(count) < 0.5, anywhere, near)


def _index_reach(func: PrimFunc) -> Mapping[Buffer, int]:
    """The size of the largest table that each buffer of integers is an index of."""
    found: dict[Buffer, int] = {}
    for load in (node for node in walk(func.body) if isinstance(node, Load)):
        for index, size in zip(load.indices, load.buffer.shape, strict=True):
            for inner in loads(index):
                found[inner.buffer] = max(found.get(inner.buffer, 0), int(size))
    return found
