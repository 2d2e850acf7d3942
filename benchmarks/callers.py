"""Calls of small cost, calls in turn, and callers at the same time.

    python -m benchmarks.callers [NAME] [--threads 2] [--seconds 0.5] [--rounds 5] [--write]

First, what a call costs beside its work: a model that adds 16 numbers, through a bound context, by
name, and by peers. Then one thread that calls us and a peer in turn: each one's mean time alone
over that in turn, medians of the rounds; what takes from it are threads of the other that still
wait for work, and caches that it filled; beside them a peer in turn with a second session of its
own. Then several callers, each a Python thread with a context or a session of its own: "sum" adds
each caller's calls per second over those of one caller alone in the same round (one that shares the
machine perfectly gives 1.0; more where one alone leaves some of it unused), "least" is the caller
with the least over an equal share of 1, "calls/s" is all that they did together. They are medians
of the rounds.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from onnx import TensorProto, helper

import tilewright as tw
from tilewright.cli.compare.comparison import OURS, load_systems
from tilewright.cli.compare.peers import Peer, installed, load_peer
from tilewright.runtime.machine.timing import compare

from . import report
from .models import peer_bytes
from .subjects.exported import NAMES, sample_of

Call = Callable[[], object]

_REST = 0.1  # seconds, after which threads that spin for work sleep


def tiny() -> bytes:
    """A model that adds 16 numbers to themselves."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 16]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "tiny", [x], [y])
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString()


def overhead(threads: Sequence[int]) -> list[tuple[str, int, float]]:
    """Seconds of a call of the tiny model: (what is called, threads, median)."""
    data = tiny()
    engine = tw.compile(data)
    inputs = engine.random_inputs()
    rows: list[tuple[str, int, float]] = []
    for count in threads:
        systems = load_systems(engine, data, inputs, installed(), count)
        calls: dict[str, Call] = {name: session.call for name, session in systems.items()}
        calls["context.run"] = calls.pop(OURS)
        calls["engine.run"] = lambda count=count: engine.run(inputs, threads=count)
        rows += [(name, count, timing.median) for name, timing in compare(calls, 15).items()]
    return rows


def rates(calls: Sequence[Call], seconds: float) -> list[float]:
    """Calls per second of each caller, all at the same time."""
    begin, stop = threading.Barrier(len(calls) + 1), threading.Event()
    counts = [0] * len(calls)

    def work(position: int) -> None:
        call = calls[position]
        begin.wait()
        while not stop.is_set():
            call()
            counts[position] += 1

    workers = [threading.Thread(target=work, args=(n,)) for n in range(len(calls))]
    for worker in workers:
        worker.start()
    begin.wait()
    began = time.perf_counter()
    time.sleep(seconds)
    stop.set()
    elapsed = time.perf_counter() - began
    for worker in workers:
        worker.join()
    return [count / elapsed for count in counts]


def mean_times(calls: Sequence[Call], seconds: float) -> list[float]:
    """Mean seconds of each call where they take turns, once what ran before has come to rest."""
    time.sleep(_REST)
    spent, rounds = [0.0] * len(calls), 0
    while sum(spent) < seconds:
        for position, call in enumerate(calls):
            began = time.perf_counter()
            call()
            spent[position] += time.perf_counter() - began
        rounds += 1
    return [total / rounds for total in spent]


def in_turn(
    makers: Mapping[str, Callable[[], Call]], pair: Sequence[str], seconds: float, rounds: int
) -> list[float]:
    """For each system of the pair its time alone over its time in turn with the other."""
    calls = [makers[system]() for system in pair]
    shares: list[list[float]] = []
    for _ in range(rounds):
        alone = [mean_times([call], seconds / 2)[0] for call in calls]
        shares.append([a / b for a, b in zip(alone, mean_times(calls, seconds), strict=True)])
    return [median(column) for column in zip(*shares, strict=True)]


def together(
    makers: Mapping[str, Callable[[], Call]], mix: Sequence[str], seconds: float, rounds: int
) -> tuple[float, float, float]:
    """(sum, least, calls per second) of the callers of these systems at the same time."""
    calls = [makers[system]() for system in mix]
    sums: list[float] = []
    leasts: list[float] = []
    totals: list[float] = []
    for _ in range(rounds):
        alone = {
            system: rates([call], seconds / 2)[0]
            for system, call in dict(zip(mix, calls, strict=True)).items()
        }
        found = rates(calls, seconds)
        shares = [rate / alone[system] for system, rate in zip(mix, found, strict=True)]
        totals.append(sum(found))
        sums.append(sum(shares))
        leasts.append(min(shares) * len(mix))
    return median(sums), median(leasts), median(totals)


def _makers(name: str, threads: int) -> dict[str, Callable[[], Call]]:
    """What makes a caller of each system."""
    sample = sample_of(name)
    engine = tw.compile(sample.model)
    data, outputs = peer_bytes(sample), [spec.name for spec in engine.outputs]

    def of_peer(peer: Peer) -> Callable[[], Call]:
        return lambda: load_peer(peer, data, sample.inputs, outputs, threads).call

    makers = {peer.name: of_peer(peer) for peer in installed()}
    return {OURS: lambda: engine.context(threads).bind(sample.inputs).run, **makers}


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="squeezenet", choices=NAMES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    calls = overhead(sorted({1, options.threads}))
    cells = [(name, threads, f"{seconds * 1e6:.2f}") for name, threads, seconds in calls]
    text = report.table(("call of a tiny model", "threads", "us"), cells)
    print(text, flush=True)
    makers = _makers(options.model, options.threads)
    peers = [system for system in makers if system != OURS]
    pairs = [pair for peer in peers for pair in ((OURS, peer), (peer, peer))]
    turns = [
        (" and ".join(pair), *in_turn(makers, pair, options.seconds, options.rounds))
        for pair in pairs
    ]
    head = (f"{options.model}, {options.threads} threads, in turn", "the first", "the second")
    ordered = report.table(head, [(pair, f"{a:.2f}", f"{b:.2f}") for pair, a, b in turns])
    print(ordered, flush=True)
    mixes = [(system,) * count for system in makers for count in (2, 4)]
    mixes += [(OURS, peer) for peer in peers]
    found = [
        (" + ".join(mix), *together(makers, mix, options.seconds, options.rounds)) for mix in mixes
    ]
    callers = f"callers of {options.model}, {options.threads} threads each"
    head = (callers, "sum", "least", "calls/s")
    lines = [(mix, f"{a:.2f}", f"{b:.2f}", f"{c:.0f}") for mix, a, b, c in found]
    beside = report.table(head, lines)
    print(beside)
    if options.write:
        whole = "\n\n".join((text, ordered, beside))
        report.write("callers", whole, [*calls, *turns, *found], installed())


if __name__ == "__main__":
    main()
