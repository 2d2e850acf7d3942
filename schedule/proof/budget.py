"""How much a proof may take. Operations of isl are the same on every machine, so they decide nearly
always; seconds of the processor are the last resort, since some operations take a thousand times as
long as others.
"""

from __future__ import annotations

import time

import islpy as isl

from .affine import Undecided

MAX_OPERATIONS = 1_500_000  # of isl, for all properties of one proof: about a second
MAX_SECONDS = 1.5  # of the processor, likewise


class Deadline:
    """The seconds of the processor that the calling thread may still take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.thread_time() + seconds

    def check(self) -> None:
        """Raises: Undecided where they are over."""
        if time.thread_time() > self._end:
            raise Undecided(f"the proof takes more than {self._seconds:g} s of the processor")


def used_up(error: isl.Error, operations: int) -> str:
    """What is said where isl has had its operations. Raises: the error, where it is another one."""
    if "maximal number of operations" not in str(error):
        raise error
    return f"the proof takes isl more than {operations} operations"
