"""The output of `demo`: labels, each with its lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...runtime.machine.host import host
from ...runtime.machine.timing import seconds_text
from ...runtime.model.report import EngineReport
from ...runtime.model.verification import Report
from ...runtime.version import tool_version
from ...tir.text.size import bytes_text
from ..compare.comparison import OURS
from ..compare.latency import latency_table
from ..text import bad, good, shortened
from .demonstration import Demonstration, Interpreted

_MISSES = 3
_LINE = 86
_SHOWN = 0.05  # seconds; shorter stages of a build are not listed
_TITLES = {"squeezenet": "SqueezeNet 1.1"}

Paragraph = tuple[str, ...]


def lines(demo: Demonstration) -> Iterator[Paragraph]:
    """The paragraphs of the fast path: a label, then lines."""
    engine, sample = demo.engine, demo.sample
    report, launches = engine.explain(), len(engine.parts.artifact.launches)
    title = _TITLES.get(sample.name, sample.name)
    yield (
        "tilewright",
        f"{tool_version()} on {host().model or 'this machine'}, {engine.parts.artifact.target}",
    )
    yield (
        "model",
        f"{title} of the onnx package, seeded random weights: {demo.nodes} nodes, "
        f"{bytes_text(demo.weights)}",
        str(engine.interface),
    )
    yield (
        "compiled",
        f"in {demo.seconds:.1f} s{_parts(report)}: {launches} launches of "
        f"{len(report.kernels)} kernels",
    )
    yield ("fused", *_fused(report))
    yield ("proved", *_proofs(report))
    yield ("checked", *_checks(demo, report))
    yield ("memory", *_memory(demo))
    yield ("latency", *latency_table(demo.latencies).splitlines())
    yield ("beside", *_beside(demo))
    yield ("source", *_source(demo))
    yield (
        "next",
        "tilewright explain MODEL.onnx    tilewright run MODEL.onnx --check",
        "tilewright bench MODEL.onnx --against onnxruntime",
    )


def interpreted_lines(demo: Interpreted) -> tuple[Report, list[Paragraph]]:
    """The comparison, and the paragraphs of the demo without a compiler."""
    plan = demo.engine.memory_plan
    return demo.report, [
        ("model", f"{demo.nodes} nodes: {demo.engine.interface}"),
        ("result", _verdict(demo.report, demo.error)),
        ("memory", f"{bytes_text(plan.arena_bytes)} planned before the first run"),
        ("latency", f"{seconds_text(demo.seconds)} a run in the interpreter"),
    ]


def _parts(report: EngineReport) -> str:
    """The times of the stages of the build, where known."""
    long = [(name, seconds) for name, seconds in report.seconds if seconds >= _SHOWN]
    parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in long)
    return f" ({parts})" if parts else ""


def _fused(report: EngineReport) -> Iterator[str]:
    """Counts of fused groups by kind, and the first misses with their reasons."""
    groups = [note.split(": ")[1] for note in report.notes if note.startswith("fused: ")]
    misses = [note for note in report.notes if note.startswith("not fused: ")]
    kinds = ", ".join(f"{count} x {title}" for title, count in Counter(groups).most_common(4))
    yield f"{len(groups)} groups of nodes run as one kernel each: {kinds or 'none'}"
    for miss in misses[:_MISSES]:
        yield f"  {shortened(miss, _LINE)}"
    if len(misses) > _MISSES:
        yield f"  and {len(misses) - _MISSES} more with their reasons: tilewright explain"


def _proofs(report: EngineReport) -> Iterator[str]:
    counts = {"proved": 0, "proved under assumptions": 0, "unknown": 0} | report.proofs
    seconds = sum(kernel.proof_seconds for kernel in report.kernels)
    found = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    yield f"{found}; in {seconds:.2f} s"
    yield "  coverage, flow, reductions, bounds and races of each kernel's loops, by isl;"
    yield "  bounds and races of its code once more, behind all passes"


def _checks(demo: Demonstration, report: EngineReport) -> Iterator[str]:
    fine = sum(kernel.check == "ok" for kernel in report.kernels)
    ratio = max((kernel.error or 0.0 for kernel in report.kernels), default=0.0)
    yield (
        f"{fine} of {len(report.kernels)} kernels, on poisoned data: largest error {ratio:.2g} of "
        "its bound"
    )
    same = "same class" if demo.same_class else bad("another class")
    yield f"the model against NumPy in float64: {_verdict(demo.report, demo.error)}; {same}"


def _verdict(report: Report, error: float) -> str:
    word = good("equal") if report else bad("DIFFERENT")
    return f"{word} within {error:.0e} of the largest value"


def _memory(demo: Demonstration) -> Iterator[str]:
    plan, most = demo.engine.memory_plan, demo.latencies[-1].threads
    peak = bytes_text(plan.peak_bytes(most))
    yield f"peak {peak} on {most} thread(s), promised before the first run"
    least = plan.lower_bound_bytes
    bound = "" if least is None else f" ({bytes_text(least)} at the least)"
    yield (
        f"  weights {bytes_text(plan.weights_bytes)}, tensors between kernels "
        f"{bytes_text(plan.arena_bytes)}{bound}"
    )


def _beside(demo: Demonstration) -> Iterator[str]:
    """What the same run takes elsewhere."""
    yield f"NumPy in float64, node by node: {seconds_text(demo.numpy_seconds)} a run"
    if not isinstance(demo.beside, tuple):
        yield demo.beside.message
        return
    for compared in demo.beside:
        on, rounds = f"on {compared.threads} thread(s)", compared.rounds
        if rounds is None:
            yield f"{on} another result than ours, so nothing is timed"
            continue
        for name in rounds.seconds:
            if name != OURS:
                took = seconds_text(rounds.timing(name).median)
                ratio = rounds.ratio(name, OURS).median
                yield f"{name} {on}, in turns with ours: {took}, {ratio:.2f} times ours"


def _source(demo: Demonstration) -> Iterator[str]:
    report = demo.engine.explain()
    names = {kernel.symbol: kernel.name for kernel in report.kernels}
    name = names.get(demo.slowest.kernel, demo.slowest.kernel)
    yield f"of {name}, the kernel that takes longest ({demo.share:.0%} of a run), for you to read:"
    yield str(demo.source)
