"""What any block of a GPU's rule may do: a thread computes an element, all alone."""

from __future__ import annotations

from ...library import deal_out
from ...schedule import Schedule
from ..questions import ask

THREADS = (64, 128, 256, 512)
DEFAULT_THREADS = 256


def schedule_points(sch: Schedule, name: str) -> None:
    """Let each thread compute one element of a block; a reduction in order."""
    deal_out(sch, name, ask(sch, "threads of a block", name, THREADS, DEFAULT_THREADS))
