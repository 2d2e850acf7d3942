"""The data that candidates of a function run on, and what their results should be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...driver.check.check import Checker
from ...driver.check.data import Draw, draw_arrays
from ...runtime.arrays import Array
from ...runtime.machine.host import last_level_bytes
from ...tir.func import PrimFunc
from ...tir.parsing.parser import parse

MOST_COPIES = 512  # of the constants, that are taken in turn


@dataclass
class Bench:
    """A function with random constants and inputs, and what its results should be."""

    func: PrimFunc
    constants: dict[str, Array]
    inputs: list[Array]
    checker: Checker

    @staticmethod
    def of(text: str, seed: int) -> Bench:
        """Data for a function."""
        func = parse(text)
        drawn = draw_arrays(func, Draw.NORMAL, np.random.default_rng(seed))
        constants = {buffer.name: drawn[buffer.name] for buffer in func.constants}
        inputs = [drawn[buffer.name] for buffer in func.inputs]
        return Bench(func, constants, inputs, Checker.of(func, constants, seed=seed + 1))

    @property
    def copies(self) -> int:
        """How many copies of the constants are taken in turn."""
        size = self._size
        return min(MOST_COPIES, -(-2 * last_level_bytes() // size)) if size else 1

    @property
    def rotated(self) -> int:
        """Bytes of all copies."""
        return self.copies * self._size

    @property
    def bytes(self) -> int:
        """Of its data, with what the checker has of it."""
        return 3 * (self._size + sum(array.nbytes for array in self.inputs))

    @property
    def _size(self) -> int:
        return sum(array.nbytes for array in self.constants.values())


class Benches:
    """The benches that were used last, as many as fit: a search goes to and fro between functions,
    and what their results should be takes longer than a trial.
    """

    def __init__(self, most: int = 1 << 30) -> None:
        """most: bytes; the last one is kept, however large."""
        self._most = most
        self._kept: dict[tuple[str, int], Bench] = {}

    def of(self, text: str, seed: int) -> Bench:
        """The bench of a function, made where it is not there."""
        key = (text, seed)
        found = self._kept.pop(key, None)
        self._make_room(0 if found is None else found.bytes)
        self._kept[key] = found or Bench.of(text, seed)
        return self._kept[key]

    def _make_room(self, size: int) -> None:
        while self._kept and size + sum(one.bytes for one in self._kept.values()) > self._most:
            del self._kept[next(iter(self._kept))]
