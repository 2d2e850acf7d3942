"""The data that the candidates of a function run on, and their expected results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...driver.check.check import Checker
from ...driver.check.data import Draw, draw_arrays
from ...runtime.arrays import Array
from ...runtime.machine.host import last_level_bytes
from ...tir.func import PrimFunc
from ...tir.parsing.parser import parse

MOST_COPIES = 512  # of the constants, over which calls rotate


@dataclass
class Bench:
    """A function with random constants and inputs, and its expected results."""

    func: PrimFunc
    constants: dict[str, Array]
    inputs: list[Array]
    checker: Checker

    @staticmethod
    def of(text: str, seed: int, cut: int = 0) -> Bench:
        """Draw the data of a function. cut: as `tir.reference.error_bound.reference` takes it."""
        func = parse(text)
        drawn = draw_arrays(func, Draw.NORMAL, np.random.default_rng(seed))
        constants = {buffer.name: drawn[buffer.name] for buffer in func.constants}
        inputs = [drawn[buffer.name] for buffer in func.inputs]
        return Bench(func, constants, inputs, Checker.of(func, constants, seed=seed + 1, cut=cut))

    @property
    def copies(self) -> int:
        """The number of copies of the constants over which calls rotate."""
        size = self._size
        return min(MOST_COPIES, -(-2 * last_level_bytes() // size)) if size else 1

    @property
    def rotated(self) -> int:
        """Bytes of all copies of the constants."""
        return self.copies * self._size

    @property
    def bytes(self) -> int:
        """Bytes of the data, the copies of the checker included."""
        return 3 * (self._size + sum(array.nbytes for array in self.inputs))

    @property
    def _size(self) -> int:
        return sum(array.nbytes for array in self.constants.values())


class Benches:
    """A cache of the benches used last: a search alternates between functions, and computing their
    expected results takes longer than a trial.
    """

    def __init__(self, most: int = 1 << 30) -> None:
        """most: bytes; the last bench is kept, however large."""
        self._most = most
        self._kept: dict[tuple[str, int, int], Bench] = {}

    def of(self, text: str, seed: int, cut: int = 0) -> Bench:
        """The bench of a function, made where it is not cached."""
        key = (text, seed, cut)
        found = self._kept.pop(key, None)
        self._make_room(0 if found is None else found.bytes)
        self._kept[key] = found or Bench.of(text, seed, cut)
        return self._kept[key]

    def _make_room(self, size: int) -> None:
        while self._kept and size + sum(one.bytes for one in self._kept.values()) > self._most:
            del self._kept[next(iter(self._kept))]
