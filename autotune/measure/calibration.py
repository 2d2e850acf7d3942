"""Whether a machine is as fast as it was: a probe, timed before and after all that counts."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

DRIFT = 0.05
_KNOWN = 9  # readings that say what is usual
_FIRST = 2.0  # seconds that may be lost to a restless machine before it has earned any
_SHARE = 0.1  # of the time of timing that may be lost
_PAUSE, _LONGEST = 0.2, 5.0  # seconds; each pause of a row is twice the one before


@dataclass
class Calibration:
    """Tells a machine that drifts from one at rest, and how long to wait for it.

    A reading is the rate of the multiply-add probe. What is lost to waiting and to measuring again
    is at most two seconds and a tenth of all the time that was timed; then results count as they
    are, with the readings in their records.
    """

    _usual: deque[float] = field(default_factory=lambda: deque(maxlen=_KNOWN))
    _spent: float = 0.0
    _lost: float = 0.0
    _pause: float = _PAUSE

    def drift(self, readings: tuple[float, float]) -> float:
        """How far the reading before or the one after is off what is usual: 0.1 is a tenth less or
        more; 0 where nothing is known.
        """
        if not self._usual:
            return abs(readings[1] / readings[0] - 1)
        usual = median(self._usual)
        return max(abs(reading / usual - 1) for reading in readings)

    def accepts(self, readings: tuple[float, float], seconds: float) -> bool:
        """Whether what was timed between two readings, in so many seconds, counts."""
        allowed = _FIRST + _SHARE * self._spent
        if self.drift(readings) > DRIFT and self._lost + self._pause + seconds <= allowed:
            self._lost += seconds
            return False
        self._spent += seconds
        self._usual.extend(readings)
        self._pause = _PAUSE
        return True

    def pause(self) -> float:
        """Seconds to wait now; the next time it is twice as many."""
        now, self._pause = self._pause, min(2 * self._pause, _LONGEST)
        self._lost += now
        return now
