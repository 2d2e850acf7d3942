"""Our engine beside peers, on the same inputs in the same process: first their outputs must be
equal to ours, then all are timed in interleaved rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...runtime.arrays import Array
from ...runtime.engine.engine import Engine
from ...runtime.machine.host import allowed_cpus
from ...runtime.machine.timing import sample
from ...runtime.measure.rounds import Gate, Ratio, Rounds, interleave
from ...runtime.model.verification import Report, compare_outputs
from ...runtime.toolchain.compile import CompileFailed
from ...runtime.toolchain.compilers import CompilerNotFound
from ...tir.errors import TilewrightError
from .peers import Peer, Session, load_peer

OURS = "tilewright"
SLACK = 10.0  # both sides round, each in its own order
_MOST = 1000  # calls of a system in a round


class PeerDiffers(TilewrightError, ArithmeticError):
    """An output of a peer has another shape than ours."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """atol + rtol * |ours|, element by element; where neither is given, SLACK times what `verify`
    allows, of the largest magnitude of an output, or what our engine was compiled to be off by,
    where that is more.
    """

    atol: float | None = None
    rtol: float | None = None
    accepted: float | None = None


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is timed at each number of threads: `rounds` rounds after `warmup` runs, each round
    of `calls` calls of each system, or as many as let all rounds last `seconds`. A machine that
    is slow for the moment is given as long.
    """

    rounds: int = 7
    warmup: int = 3
    calls: int | None = None
    seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Block:
    """What was found at one number of threads.

    reports: each peer's outputs beside ours. rounds: None where nothing was timed.
    """

    threads: int
    reports: tuple[Report, ...]
    rounds: Rounds | None

    @property
    def is_equal(self) -> bool:
        """Whether every output of every peer is equal to ours."""
        return all(self.reports)


def outcome(ratio: Ratio) -> str:
    """What a peer's time over ours means for us; "disturbed" where the rounds cannot tell."""
    if ratio.is_tie:
        return "disturbed" if ratio.is_disturbed else "tie"
    return "win" if ratio.median > 1 else "loss"


def compare_systems(
    engine: Engine,
    model: str | bytes,
    inputs: Mapping[str, Array],
    peers: Sequence[Peer],
    threads: Sequence[int],
    tolerance: Tolerance,
    effort: Effort,
) -> tuple[Block, ...]:
    """A block for each number of threads. Nothing is timed where an output differs at any of them.

    One number's systems at a time are in memory, so all but the first's are loaded twice.
    Raises: PeerFailed, PeerDiffers.
    """
    systems: dict[str, Session] = {}
    reports: dict[int, tuple[Report, ...]] = {}
    for count in reversed(threads):
        systems.clear()
        systems.update(load_systems(engine, model, inputs, peers, count))
        reports[count] = tuple(output_reports(systems, tolerance))
    if effort.calls == 0 or not all(report for found in reports.values() for report in found):
        return tuple(Block(count, reports[count], None) for count in threads)
    blocks = []
    for number, count in enumerate(threads):
        if number:
            systems.clear()
            systems.update(load_systems(engine, model, inputs, peers, count))
        blocks.append(Block(count, reports[count], _timed(engine, systems, count, effort)))
    return tuple(blocks)


def load_systems(
    engine: Engine,
    model: str | bytes,
    inputs: Mapping[str, Array],
    peers: Sequence[Peer],
    threads: int,
) -> dict[str, Session]:
    """Every system on the inputs, ours first, each after a first run.

    Raises: PeerFailed.
    """
    context = engine.context(threads).bind(inputs)
    context.run()
    names = [spec.name for spec in engine.outputs]
    return {
        OURS: Session(context.run, lambda: context.outputs),
        **{peer.name: load_peer(peer, model, inputs, names, threads) for peer in peers},
    }


def output_reports(sessions: Mapping[str, Session], tolerance: Tolerance) -> Iterator[Report]:
    """Each peer's outputs beside ours. Raises: PeerDiffers where a shape differs."""
    ours = sessions[OURS].outputs()
    for system, session in sessions.items():
        if system == OURS:
            continue
        theirs = session.outputs()
        for name, array in ours.items():
            if theirs[name].shape != array.shape:
                raise PeerDiffers(
                    f"bench: output '{name}' has the shape {list(theirs[name].shape)} in {system}, "
                    f"{list(array.shape)} in {OURS}.",
                    code="cli-peer-shape",
                )
        yield compare_outputs(
            system,
            theirs,
            ours,
            tolerance.atol,
            tolerance.rtol,
            slack=SLACK,
            tolerance=tolerance.accepted,
        )


def _timed(engine: Engine, sessions: Mapping[str, Session], threads: int, effort: Effort) -> Rounds:
    calls = {system: session.call for system, session in sessions.items()}
    length = 0.0  # seconds of a call of each
    for call in calls.values():
        length += min(sample(call, 1) for _ in range(effort.warmup + 1))
    fitting = int(effort.seconds / effort.rounds / length)
    count = effort.calls or max(1, min(_MOST, fitting))
    gate = _gate(engine, threads, effort.seconds)
    return interleave(calls, dict.fromkeys(calls, count), effort.rounds, gate)


def _gate(engine: Engine, threads: int, patience: float) -> Gate | None:
    """None where the probe cannot say what the machine should reach: for an interpreter, for more
    threads than CPUs, and where no compiler can make it.
    """
    if engine.parts.code.c_program is None or threads > allowed_cpus():
        return None
    try:
        return Gate.of(threads, patience)
    except (CompileFailed, CompilerNotFound):
        return None
