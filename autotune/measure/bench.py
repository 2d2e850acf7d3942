"""The data that the candidates of a function run on, and their expected results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...driver.check.check import Checker
from ...driver.check.data import Draw, draw_arrays
from ...runtime.arrays import Array
from ...runtime.machine.host import last_level_bytes
from ...tir.analysis.specialise import specialise
from ...tir.func import PrimFunc
from ...tir.parsing.parser import parse
from ..sizes import SizeValues

_Key = tuple[str, int, int, tuple[SizeValues, ...]]
MOST_COPIES = 512  # of the constants, over which calls rotate


@dataclass
class Bench:
    """A function with random constants and inputs, and its expected results.

    func: without sizes that calls decide. sizes: what they are here.
    """

    func: PrimFunc
    constants: dict[str, Array]
    inputs: list[Array]
    checker: Checker
    sizes: SizeValues = ()

    @staticmethod
    def of(
        func: PrimFunc,
        seed: int,
        cut: int = 0,
        constants: dict[str, Array] | None = None,
        sizes: SizeValues = (),
    ) -> Bench:
        """Draw the data of a function. cut: as `tir.reference.error_bound.reference` takes it.
        constants: those of another bench; None: they are drawn. sizes: that `func` is at.
        """
        drawn = draw_arrays(func, Draw.NORMAL, np.random.default_rng(seed))
        if constants is None:
            constants = {buffer.name: drawn[buffer.name] for buffer in func.constants}
        inputs = [drawn[buffer.name] for buffer in func.inputs]
        checker = Checker.of(func, constants, seed=seed + 1, cut=cut)
        return Bench(func, constants, inputs, checker, sizes)

    @staticmethod
    def at_sizes(
        text: str, seed: int, cut: int = 0, sizes: Sequence[SizeValues] = ()
    ) -> tuple[Bench, ...]:
        """A bench of a function at each of some sizes, with the same constants; one of a function
        whose sizes are numbers.
        """
        func = parse(text)
        found: list[Bench] = []
        for values in sizes or ((),):
            plain = specialise(func, dict(zip(func.dims, values, strict=True)))
            known = found[0].constants if found else None
            found.append(Bench.of(plain, seed, cut, known, values))
        return tuple(found)

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
        self._kept: dict[_Key, tuple[Bench, ...]] = {}

    def of(
        self, text: str, seed: int, cut: int = 0, sizes: tuple[SizeValues, ...] = ()
    ) -> tuple[Bench, ...]:
        """The bench of a function at each of some sizes, made where it is not cached."""
        key = (text, seed, cut, sizes)
        found = self._kept.pop(key, None)
        self._make_room(0 if found is None else _bytes(found))
        self._kept[key] = found or Bench.at_sizes(text, seed, cut, sizes)
        return self._kept[key]

    def _make_room(self, size: int) -> None:
        while self._kept and size + sum(map(_bytes, self._kept.values())) > self._most:
            del self._kept[next(iter(self._kept))]


def _bytes(benches: Sequence[Bench]) -> int:
    return sum(one.bytes for one in benches)
