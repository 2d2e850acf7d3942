"""Scales: from values to pixels, with ticks at round values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_TICKS = 5  # about so many
_STEPS = (1.0, 2.0, 5.0, 10.0)
_FEW_DECADES = 1.5  # below which a logarithmic scale has ticks at 2 and 5 as well
_MOST_DECADES = 8


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` on pixels from `start` to `end`.

    Requires: low < high; 0 < low where it is logarithmic.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    @staticmethod
    def over(
        values: Iterable[float], start: float, end: float, *, logarithmic: bool = False
    ) -> Scale:
        """The scale that holds all of some values: from 0 where it is linear, with room around
        them where it is logarithmic.
        """
        known = [value for value in values if math.isfinite(value) and value >= 0]
        if not logarithmic:
            high = max(known, default=0.0) or 1.0
            return Scale(0.0, high, start, end)
        known = [value for value in known if value > 0] or [1.0]
        return Scale(min(known) / 1.5, max(known) * 1.5, start, end, logarithmic=True)

    def __call__(self, value: float) -> float:
        """The pixel of a value; of one beyond the scale, its nearer end."""
        within = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = math.log(within / self.low) / math.log(self.high / self.low)
        else:
            share = (within - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> tuple[float, ...]:
        """Round values of the scale, in order."""
        return self._decades() if self.logarithmic else self._steps()

    def _steps(self) -> tuple[float, ...]:
        rough = (self.high - self.low) / _TICKS
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * unit for factor in _STEPS if factor * unit >= rough * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return tuple(_clean(n * step) for n in range(first, last + 1))

    def _decades(self) -> tuple[float, ...]:
        low, high = math.log10(self.low), math.log10(self.high)
        first, last = math.floor(low), math.ceil(high)
        stride = max(1, math.ceil((high - low) / _MOST_DECADES))
        factors = (1.0, 2.0, 5.0) if high - low < _FEW_DECADES * 2 else (1.0,)
        found = (
            _clean(factor * 10.0**power)
            for power in range(first, last + 1, stride)
            for factor in factors
        )
        return tuple(value for value in found if self.low <= value <= self.high)


def tick_text(value: float) -> str:
    """A value at a tick, without zeros that say nothing: 0.5, 20, 1e6."""
    if value == 0:
        return "0"
    return f"{value:g}" if 1e-3 <= abs(value) < 1e5 else f"{value:.0e}".replace("e+0", "e")


def whole_text(value: float) -> str:
    """A count at a tick; nothing where the tick stands between two counts."""
    return tick_text(value) if value.is_integer() else ""


def _clean(value: float) -> float:
    """The value without the last digits, which rounding has left."""
    return float(f"{value:.9g}")
