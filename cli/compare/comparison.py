"""Compare our engine with peers, on the same inputs in the same process: first the outputs must be
equal, then all systems are timed in interleaved rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...runtime.arrays import Array
from ...runtime.engine.engine import Engine
from ...runtime.machine.host import allowed_cpus
from ...runtime.machine.timing import sample
from ...runtime.measure.rounds import Gate, Ratio, Rounds, interleave
from ...runtime.model.verification import SLACK, Report, compare_outputs
from ...runtime.toolchain.compile import CompileFailed
from ...runtime.toolchain.compilers import CompilerNotFound
from ...tir.errors import TilewrightError
from .peers import Peer, PeerSession, load_peer

OURS = "tilewright"
_MOST = 1000  # calls of a system in a round


class PeerDiffers(TilewrightError, ArithmeticError):
    """An output of a peer has a different shape than ours."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed difference: atol + rtol * |ours| for each element. Where neither is given: SLACK
    times the tolerance of `verify`, relative to the largest magnitude of an output, or the accepted
    error of the engine, whichever is larger. is_held: whether systems that differ by more are not
    timed; else the difference is only reported.
    """

    atol: float | None = None
    rtol: float | None = None
    accepted: float | None = None
    is_held: bool = True


@dataclass(frozen=True, slots=True)
class Effort:
    """The timing at each number of threads: `rounds` rounds after `warmup` runs, with `calls` calls
    of each system per round, or as many as fit `seconds`. Rounds on a disturbed machine are
    repeated for at most as long again.
    """

    rounds: int = 7
    warmup: int = 3
    calls: int | None = None
    seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class ThreadComparison:
    """The comparison at one number of threads.

    reports: the outputs of each peer compared with ours. rounds: None where nothing was timed.
    is_held: whether the outputs are held to a tolerance.
    """

    threads: int
    reports: tuple[Report, ...]
    rounds: Rounds | None
    is_held: bool = True

    @property
    def is_equal(self) -> bool:
        """Whether every output of every peer is equal to ours, as far as they are held to it."""
        return not self.is_held or all(self.reports)


def outcome(ratio: Ratio) -> str:
    """The outcome of a peer's time over ours; "disturbed" where the rounds are inconclusive."""
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
) -> tuple[ThreadComparison, ...]:
    """Compare at each number of threads; time nothing where an output differs at any of them.

    The systems of one number of threads are in memory at a time, so most are loaded twice.
    Raises: PeerFailed, PeerDiffers.
    """
    systems: dict[str, PeerSession] = {}
    reports: dict[int, tuple[Report, ...]] = {}
    for count in reversed(threads):
        systems.clear()
        systems.update(load_systems(engine, model, inputs, peers, count))
        reports[count] = tuple(output_reports(systems, tolerance))
    held = tolerance.is_held
    differ = held and not all(report for found in reports.values() for report in found)
    if effort.calls == 0 or differ:
        return tuple(ThreadComparison(count, reports[count], None, held) for count in threads)
    blocks = []
    for number, count in enumerate(threads):
        if number:
            systems.clear()
            systems.update(load_systems(engine, model, inputs, peers, count))
        rounds = _timed(engine, systems, count, effort)
        blocks.append(ThreadComparison(count, reports[count], rounds, held))
    return tuple(blocks)


def load_systems(
    engine: Engine,
    model: str | bytes,
    inputs: Mapping[str, Array],
    peers: Sequence[Peer],
    threads: int,
) -> dict[str, PeerSession]:
    """Load every system with the inputs, ours first, and run each once.

    Raises: PeerFailed.
    """
    context = engine.context(threads).bind(inputs)
    context.run()
    names = [spec.name for spec in engine.outputs]
    return {
        OURS: PeerSession(context.run, lambda: context.outputs),
        **{peer.name: load_peer(peer, model, inputs, names, threads) for peer in peers},
    }


def output_reports(sessions: Mapping[str, PeerSession], tolerance: Tolerance) -> Iterator[Report]:
    """Compare the outputs of each peer with ours. Raises: PeerDiffers where a shape differs."""
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


def _timed(
    engine: Engine, sessions: Mapping[str, PeerSession], threads: int, effort: Effort
) -> Rounds:
    calls = {system: session.call for system, session in sessions.items()}
    length = 0.0  # seconds of a call of each
    for call in calls.values():
        length += min(sample(call, 1) for _ in range(effort.warmup + 1))
    fitting = int(effort.seconds / effort.rounds / length)
    count = effort.calls or max(1, min(_MOST, fitting))
    gate = _gate(engine, threads, effort.seconds)
    return interleave(calls, dict.fromkeys(calls, count), effort.rounds, gate)


def _gate(engine: Engine, threads: int, patience: float) -> Gate | None:
    """The gate that repeats disturbed rounds; None where its probe cannot run: for an interpreter,
    for more threads than CPUs, and without a compiler.
    """
    if engine.parts.code.c_program is None or threads > allowed_cpus():
        return None
    try:
        return Gate.of(threads, patience)
    except (CompileFailed, CompilerNotFound):
        return None
