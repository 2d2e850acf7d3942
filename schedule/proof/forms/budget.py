"""How much a proof may take. What is counted is the same on every machine, and so are verdicts:
operations of isl, and the relations that are built for it. Seconds of the processor are the last
resort, since some operations take a thousand times as long as others.
"""

from __future__ import annotations

import time

import islpy as isl

from .affine import Undecided

MAX_OPERATIONS = 1_500_000  # of isl, for all properties of one proof: a second or two
MAX_RELATIONS = 5_000  # likewise: about a second
MAX_SECONDS = 10.0  # of the processor, likewise


class Budget:
    """The relations that may still be built, and the seconds of the processor that the calling
    thread may still take.
    """

    def __init__(self, relations: int = MAX_RELATIONS, seconds: float = MAX_SECONDS) -> None:
        self._relations = relations
        self._left = relations
        self._seconds = seconds
        self._end = time.thread_time() + seconds

    def take_relation(self) -> None:
        """One relation more is built. Raises: Undecided where that is too much."""
        self._left -= 1
        if self._left < 0:
            raise Undecided(f"the proof builds more than {self._relations} relations")
        self.check_time()

    def check_time(self) -> None:
        """Raises: Undecided where the seconds are over."""
        if time.thread_time() > self._end:
            raise Undecided(f"the proof takes more than {self._seconds:g} s of the processor")


def used_up(error: isl.Error, operations: int) -> str:
    """What is said where isl has had its operations. Raises: the error, where it is another one."""
    if "maximal number of operations" not in str(error):
        raise error
    return f"the proof takes isl more than {operations} operations"
