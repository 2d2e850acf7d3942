"""driver/check/fenced.py: what lies around arrays, and in those that are to be written."""

from __future__ import annotations

import numpy as np

from tilewright.driver.check.fenced import PATTERNS, Fenced, poisoned
from tilewright.tir.dtype import FLOAT32, dtype


def test_each_pattern_fills_arrays_with_something_else() -> None:
    floats = [float(poisoned(FLOAT32, (), pattern)) for pattern in range(PATTERNS)]
    assert np.isnan(floats[0])
    assert floats[1] > 1e38
    assert -1e-37 < floats[2] < 0
    for name in ("int8", "uint16", "int64"):
        found = {poisoned(dtype(name), (), pattern).tobytes() for pattern in range(PATTERNS)}
        assert len(found) == PATTERNS


def test_an_array_stands_between_the_first_pattern_unless_another_is_asked_for() -> None:
    array = np.zeros(5, np.float32)
    plain, first, second = Fenced(array), Fenced(array, 0), Fenced(array, 1)
    assert plain.memory.tobytes() == first.memory.tobytes() != second.memory.tobytes()
