"""Whole models as engines for a GPU, made without one.

    python -m benchmarks.gpu.engines [NAME ...] [--arch sm_90a] [--emulate] [--write]

Each model is planned, scheduled by rule, proved and compiled for the architecture; the table says
what a run launches, on how many streams, how much memory of the device it takes, and where the time
of the build went. NVRTC runs beside the rest: its seconds are those of all compiles one after the
other, and what was waited for at the end. With --emulate the engine then runs on the CPU, beside
the reference of the model as it was imported; that takes minutes.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass, field

import tilewright as tw
from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.codegen.cuda.streams import place_on_streams
from tilewright.tir.text.size import bytes_text

from .. import report
from ..subjects.exported import NAMES, one_of, sample_of

DEFAULT = ("squeezenet", "shufflenet")


@dataclass
class Row:
    """One engine. steps: of its program; launches: of kernels in a run; waits: of a stream for
    another; plan: bytes. seconds: of each part of the build; whole: of the build. worst: the
    largest error beside the reference, as a share of what is allowed; None where it was not run.
    """

    model: str
    kernels: int
    steps: int
    launches: int
    streams: int
    waits: int
    proofs: dict[str, int]
    plan: dict[str, int | None]
    whole: float
    seconds: dict[str, float] = field(default_factory=dict)
    worst: float | None = None


def measure(name: str, arch: str, *, emulate: bool) -> Row:
    """Build the engine of one model."""
    sample = sample_of(name)
    began = time.perf_counter()
    engine = tw.compile(sample.model, f"cuda:{arch}", cache=False, verify="kernels")
    whole = time.perf_counter() - began
    program, found = engine.parts.artifact, engine.explain()
    assert isinstance(program, CudaProgram)
    placed = place_on_streams(program)
    row = Row(
        model=name,
        kernels=len(program.kernels),
        steps=len(placed),
        launches=sum(len(program.part(step.function).launches) for step in program.launches),
        streams=len({step.stream for step in placed}),
        waits=sum(len(step.waits) for step in placed),
        proofs=found.proofs,
        plan=asdict(engine.memory_plan),
        whole=whole,
        seconds=dict(found.seconds),
    )
    if emulate:
        compared = tw.emulated(engine).verify(sample.inputs)
        row.worst = max(output.share for output in compared.outputs)
    return row


HEAD = (
    *("model", "kernels", "proved", "steps", "launches", "streams (waits)"),
    *("weights", "arena", "arena / lower bound", "workspace"),
    *("s, whole", "s, proofs", "s, NVRTC (waited)", "emulated, of what is allowed"),
)


def cells(row: Row) -> tuple[object, ...]:
    """The row of the table."""
    arena, bound = row.plan["arena_bytes"] or 0, row.plan["lower_bound_bytes"]
    nvrtc, waited = row.seconds["nvrtc, beside the others"], row.seconds["wait for nvrtc"]
    return (
        row.model,
        row.kernels,
        row.proofs.get("proved", 0),
        row.steps,
        row.launches,
        f"{row.streams} ({row.waits})",
        bytes_text(row.plan["weights_bytes"] or 0),
        bytes_text(arena),
        "" if not bound else f"{arena / bound:.2f}",
        bytes_text(row.plan["workspace_bytes"] or 0),
        f"{row.whole:.1f}",
        f"{row.seconds['prove']:.1f}",
        f"{nvrtc:.1f} ({waited:.1f})",
        "" if row.worst is None else f"{row.worst:.2g}",
    )


def main() -> None:
    """Build what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=one_of(NAMES), default=DEFAULT)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--emulate", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = []
    for name in options.models:
        rows.append(measure(name, options.arch, emulate=options.emulate))
        print(*map(str, cells(rows[-1])), sep=" | ", flush=True)
    text = report.table(HEAD, [cells(row) for row in rows])
    print(text)
    if options.write:
        report.write("gpu_engines", text, [asdict(row) for row in rows], ())


if __name__ == "__main__":
    main()
