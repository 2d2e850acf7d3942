"""What a search gains on a GPU: the tuned kernel beside that of the rule, in the same rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import tilewright as tw
from tilewright.autotune.measure.sampling import take_turns
from tilewright.runtime.cuda.device.code import DeviceCall
from tilewright.runtime.machine.timing import Sampler
from tilewright.runtime.measure.rounds import Rounds
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from .. import report

ROUNDS = 15


@dataclass(frozen=True)
class Gain:
    """Seconds of both; the tuned one's time over the other's, round by round, with its 95 %
    interval. trials: of the search; decisions: of the winner.
    """

    name: str
    untuned: float
    tuned: float
    ratio: float
    low: float
    high: float
    trials: int
    decisions: str


def gain(
    name: str,
    func: PrimFunc,
    target: Target,
    constants: Mapping[str, object],
    inputs: Sequence[np.ndarray],
    seconds: float,
) -> Gain:
    """Search for so many seconds, and time what was found."""
    found = tw.tune(func, target, seconds=seconds)
    best = found.best
    if best is None:
        raise ArithmeticError(f"{name}: nothing ran: {found}")
    schedules = (tw.Schedule.replay(func, best.trace, target), func)
    samplers = [_sampler(tw.build(one, target, constants=constants), inputs) for one in schedules]
    tuned, untuned = take_turns([sampler.take for sampler in samplers], ROUNDS, None)
    rounds = Rounds({"tuned": tuple((s,) for s in tuned), "untuned": tuple((s,) for s in untuned)})
    ratio = rounds.ratio("tuned", "untuned")
    return Gain(
        name,
        rounds.timing("untuned").median,
        rounds.timing("tuned").median,
        ratio.median,
        ratio.low,
        ratio.high,
        len(found.history),
        " ".join(map(str, best.decisions)),
    )


def _sampler(kernel: tw.Kernel, inputs: Sequence[np.ndarray]) -> Sampler:
    call = kernel.bind_copies(*inputs)
    assert isinstance(call, DeviceCall)
    return call.sampler("warm")


def table(gains: Sequence[Gain]) -> str:
    """The gains as Markdown."""
    head = ("function", "by rule, us", "tuned, us", "tuned / by rule", "trials", "decisions")
    cells = [
        (
            one.name,
            f"{one.untuned * 1e6:.1f}",
            f"{one.tuned * 1e6:.1f}",
            f"{one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})",
            str(one.trials),
            one.decisions,
        )
        for one in gains
    ]
    return report.table(head, cells)
