"""What a planted fault is tried on: something to build, arrays to run it on, and NumPy's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto

from tilewright import PrimFunc, Schedule

Array = np.ndarray
Arrays = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Task:
    """A function, a schedule or a model, with inputs and outputs by name, in their order.

    tolerance: the largest error that roundings explain, as a share of the largest magnitude of an
    output; 0 for results that are exact. constants: those that a kernel is built with.
    """

    what: PrimFunc | Schedule | ModelProto
    inputs: Arrays
    outputs: Arrays
    tolerance: float = 1e-5
    constants: Arrays = field(default_factory=dict)


Make = Callable[[], Task]


def normal(*shape: int, seed: int = 0, dtype: str = "float32") -> Array:
    """Normal numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def whole(dtype: str, *shape: int, low: int | None = None, high: int | None = None) -> Array:
    """Integers of the whole range of a type, its ends among them, or from `low` to `high`."""
    info = np.iinfo(dtype)
    ends = (info.min if low is None else low, info.max if high is None else high)
    drawn = np.random.default_rng([1, *shape]).integers(*ends, shape, dtype, endpoint=True)
    drawn.reshape(-1)[:2] = ends
    return drawn
