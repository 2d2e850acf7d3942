"""Samples of calls that take turns; one that is clearly slower than the best gets no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from ...runtime.machine.timing import in_turn

# after so many rounds: times the best that may go on; nobody is out for one sample, which another
# process may have spoilt
PATIENCE = ((2, 3.0), (3, 1.5), (4, 1.2))


def take_turns(
    samples: Sequence[Callable[[], float]], rounds: int, bar: float | None
) -> list[list[float]]:
    """The seconds of each, one sample a round; every round begins with another one.

    bar: seconds of the best that was known before. What took longer than the best by more than
    PATIENCE allows, in its fastest sample, is out; None: everybody stays for all rounds. A machine
    only ever makes a call slower, so the fastest of some samples is the one that noise moves least.
    """
    taken: list[list[float]] = [[] for _ in samples]
    staying = [str(number) for number in range(len(samples))]
    for turn in range(rounds if samples else 0):
        for name in in_turn(staying, turn):
            taken[int(name)].append(samples[int(name)]())
        if bar is not None:
            best = min(bar, *(min(taken[int(name)]) for name in staying))
            limit = best * _patience(turn + 1)
            staying = [name for name in staying if min(taken[int(name)]) <= limit]
        if not staying:
            break
    return taken


def _patience(rounds: int) -> float:
    return next((times for after, times in reversed(PATIENCE) if rounds >= after), inf)
