"""Interleaved sampling of calls; one that is clearly slower than the best is dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from ...runtime.machine.timing import in_turn

# rounds -> the multiple of the best time beyond which a call is dropped; none is dropped for a
# single sample, which another process may have disturbed
PATIENCE = ((2, 3.0), (3, 1.5), (4, 1.2))


def take_turns(
    samples: Sequence[Callable[[], float]], rounds: int, bar: float | None
) -> list[list[float]]:
    """The samples of each call, in seconds, one per round; each round starts with another call.

    bar: seconds of the fastest call known before. A call whose fastest sample exceeds the best time
    by more than PATIENCE allows is dropped. None: all calls stay for all rounds. Noise only ever
    makes a call slower, so the fastest sample is the least noisy one.
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
