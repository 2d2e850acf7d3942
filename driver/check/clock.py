"""Where the time of a build goes: seconds of each of its parts, by name."""

from __future__ import annotations

import time
from collections.abc import Iterable

Laps = tuple[tuple[str, float], ...]


class Clock:
    """Seconds of each part, in the order in which they were first named; those of one name add
    up.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str, inside: Iterable[tuple[str, float]] = ()) -> None:
        """End a part. inside: parts of it that were timed on their own, and are not of its name."""
        now = time.perf_counter()
        left, self._last = now - self._last, now
        for other, seconds in inside:
            self.add(other, seconds)
            left -= seconds
        self.add(name, left)

    def add(self, name: str, seconds: float) -> None:
        """Count seconds that ran beside this clock's parts, or before them."""
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    @property
    def laps(self) -> Laps:
        """The parts, in order."""
        return tuple(self._seconds.items())
