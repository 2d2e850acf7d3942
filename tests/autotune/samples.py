"""Records to write and read."""

from __future__ import annotations

from tilewright.autotune.log.record import Conditions, Method, Outcome, Trial, Workload
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te


def scaled(n: int = 64) -> PrimFunc:
    x = te.placeholder((n,), "float32", name="x")
    y = te.compute((n,), lambda i: x[i] * 2.0, name="y")
    return te.func(x, y, name="scaled")


def split_in(n: int, part: int) -> Schedule:
    sch = Schedule(scaled(n))
    (loop,) = sch.loops("y")
    sch.split(loop, (None, int(sch.sample_categorical([4, 8, 16], [4, 8, 16].index(part)))))
    return sch


def workload(n: int = 64) -> Workload:
    return Workload.of(scaled(n))


def trial(number: int = 0, *, n: int = 64, outcome: Outcome = "ok", seconds: float = 1e-6) -> Trial:
    """Trials of other numbers are others; the later the higher."""
    target = Target.parse("c:avx512")
    return Trial(
        workload=workload(n).key,
        conditions=Conditions(target.to_json(), "A CPU", "cc 12", ("-O3",), "0.1.0"),
        rule="elementwise",
        is_default=number == 0,
        trace=split_in(n, (4, 8, 16)[number % 3]).trace,
        source=f"0123456789abcde{number % 3}",
        outcome=outcome,
        text="" if outcome == "ok" else "what was seen",
        proof="proved",
        method=Method("cold", 64 << 20, 8, 5, 110.0),
        samples=(seconds, 1.5 * seconds, 1.6 * seconds) if outcome == "ok" else (),
        time=f"2026-11-22T12:00:00.{number:06d}Z",
    )


def on_grid(sch: Schedule) -> None:
    """A rule for a GPU: how many threads a block has."""
    (loop,) = sch.loops("y")
    threads = sch.sample_categorical([64, 32, 128, 256, 512, 1024], 0, name="threads")
    blocks, lanes = sch.split(loop, (None, int(threads)))
    sch.bind(blocks, "blockIdx.x")
    sch.bind(lanes, "threadIdx.x")
