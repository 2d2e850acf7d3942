"""Drift detection: a probe is timed before and after each measurement."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

DRIFT = 0.05
_KNOWN = 9  # readings whose median is the reference
_FIRST = 2.0  # seconds that may be lost to drift at the start
_SHARE = 0.1  # of the time spent timing, that may be lost to drift in addition
_PAUSE, _LONGEST = 0.2, 5.0  # seconds; consecutive pauses double


@dataclass
class DriftMonitor:
    """Detects drift of the machine, and decides how long to wait.

    A reading is the rate of the multiply-add probe. Waiting and measuring again take at most two
    seconds and a tenth of the time spent timing; beyond that results are accepted in spite of
    drift, with the readings in their records.
    """

    _usual: deque[float] = field(default_factory=lambda: deque(maxlen=_KNOWN))
    _spent: float = 0.0
    _lost: float = 0.0
    _pause: float = _PAUSE

    def drift(self, readings: tuple[float, float]) -> float:
        """The relative deviation of the readings before and after from the median, the larger one;
        without a median, of one from the other.
        """
        if not self._usual:
            return abs(readings[1] / readings[0] - 1)
        usual = median(self._usual)
        return max(abs(reading / usual - 1) for reading in readings)

    def accepts(self, readings: tuple[float, float], seconds: float) -> bool:
        """Whether to accept a measurement of so many seconds between two readings."""
        allowed = _FIRST + _SHARE * self._spent
        if self.drift(readings) > DRIFT and self._lost + self._pause + seconds <= allowed:
            self._lost += seconds
            return False
        self._spent += seconds
        self._usual.extend(readings)
        self._pause = _PAUSE
        return True

    def pause(self) -> float:
        """Seconds to wait now; each call doubles the next pause."""
        now, self._pause = self._pause, min(2 * self._pause, _LONGEST)
        self._lost += now
        return now
