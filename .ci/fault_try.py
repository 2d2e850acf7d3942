"""Build one task and compare what it computes with NumPy; run in a process of its own.

    python .ci/fault_try.py fused_loops

What happened goes to stdout, a line of JSON each: "refused" with the error; or "built" with what
the build reports, then "checked" with the largest error. A build that dies says neither, and a
kernel that dies when it is run says "built" alone: inputs and outputs end, or begin, at pages that
nobody may touch.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from fault_kernels import KERNELS
from fault_models import MODELS
from fault_task import Array, Arrays, Task
from onnx import ModelProto

import tilewright as tw

THREADS = (1, 2, 3, 5)
ROUNDS = 3  # at each number of threads: a race is not lost every time
TASKS = {**KERNELS, **MODELS}


@dataclass(frozen=True, slots=True)
class Built:
    """What runs a task on inputs, outputs and a number of threads, the types of its outputs, and
    what the build reports.
    """

    run: Callable[[Arrays, Arrays, int], object]
    types: Mapping[str, np.dtype]
    report: Sequence[str] = ()


def build(task: Task) -> Built:
    """Build a task as a user does."""
    if isinstance(task.what, ModelProto):
        engine = tw.compile(task.what, cache=False)
        report = engine.explain()
        return Built(
            # each run in memory of its own, where nothing is left of the run before
            lambda given, out, threads: engine.context(threads).bind(given, out).run(),
            {spec.name: spec.dtype for spec in engine.outputs},
            [*report.notes, *(f"{kernel.name}: {kernel.check}" for kernel in report.kernels)],
        )
    kernel = tw.build(task.what, constants=task.constants)
    return Built(
        lambda given, out, threads: kernel(*given.values(), *out.values(), threads=threads),
        {p.name: p.dtype.numpy for p in kernel.artifact.parameters if p.role == "output"},
    )


def fenced(array: Array, *, at_end: bool) -> Array:
    """A copy of an array right before, or right behind, a page that nobody may touch."""
    page = mmap.PAGESIZE
    room = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, room + 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for start in (base, base + page + room):
        if ctypes.CDLL(None).mprotect(ctypes.c_void_p(start), page, 0) != 0:
            raise OSError("mprotect")
    first = page + (room - array.nbytes if at_end else 0)
    flat = np.frombuffer(memory, np.uint8, array.nbytes, first)
    copy = flat.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def error(got: Array, wanted: Array) -> float:
    """The largest difference, as a share of the largest magnitude; infinite where one is no
    number.
    """
    one, other = got.astype(np.float64), wanted.astype(np.float64)
    apart = np.abs(one - other)
    if not np.isfinite(apart).all():
        return float("inf")
    return float(apart.max() / (np.abs(other).max() or 1.0))


def worst(task: Task, built: Built) -> tuple[float, int]:
    """The largest error of all outputs, and the threads of the run that had it first."""
    found = (0.0, 1)
    for at_end in (True, False):
        given = {name: fenced(array, at_end=at_end) for name, array in task.inputs.items()}
        for threads in (n for n in THREADS for _ in range(ROUNDS)):
            out = {}
            for name, array in task.outputs.items():
                out[name] = fenced(np.empty(array.shape, built.types[name]), at_end=at_end)
                out[name].view(np.uint8)[...] = 0xFF
            built.run(given, out, threads)
            errors = (error(out[name], array) for name, array in task.outputs.items())
            found = max(found, (max(errors), threads), key=lambda item: item[0])
    return found


def say(stage: str, **details: object) -> None:
    """A line of JSON."""
    print(json.dumps({"stage": stage, **details}), flush=True)


def main() -> None:
    """Try the task that the command line names."""
    try:
        task = TASKS[sys.argv[1]]()
        built = build(task)
    except tw.TilewrightError as found:
        say("refused", code=found.code, text=str(found).splitlines()[0])
        return
    say("built", report=list(built.report))
    largest, threads = worst(task, built)
    say("checked", error=largest, right=largest <= task.tolerance, threads=threads)


if __name__ == "__main__":
    main()
