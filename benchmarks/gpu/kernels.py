"""What the kernels of models are as CUDA C, seen without a GPU.

    python -m benchmarks.gpu.kernels [NAME ...] [--archs sm_80,sm_90a] [--emulate OPERATIONS]
                                     [--write]

Each distinct function of a model's plan is scheduled by the rules of a GPU, proved, written, and
compiled by NVRTC for each architecture; registers, shared and local memory are read from the
machine code. With --emulate those of at most so many operations also run on the CPU, their source
compiled as C++, and are compared with the reference as every kernel is. What is refused is listed.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median

import numpy as np

import tilewright as tw
from tilewright.driver.check.check import check_kernel
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.plan.plan import plan_model
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
from tilewright.runtime.cuda.toolchain.inspection import Resources, resources
from tilewright.runtime.kernel import Kernel
from tilewright.tir.errors import TilewrightError
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.text.canonical import workload_key
from tilewright.tir.work.work import operations

from .. import report
from ..subjects.exported import NAMES, one_of, sample_of

DEFAULT = ("squeezenet", "resnet50")


@dataclass
class Row:
    """The distinct functions of one model, and what became of them.

    proofs: how many have each verdict. seconds: of each compile; taken: by each kernel, on each
    architecture. refused: for each function that was, why.
    """

    model: str
    functions: int = 0
    launches: int = 0
    proofs: dict[str, int] = field(default_factory=dict)
    compiled: int = 0
    emulated: int = 0
    seconds: list[float] = field(default_factory=list)
    taken: list[Resources] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def functions_of(name: str, arch: str) -> Iterable[PrimFunc]:
    """The distinct functions of a model's plan for an architecture."""
    graph = import_onnx(sample_of(name).model)
    planned = plan_model(graph, Target.parse(f"cuda:{arch}"), check=False)
    return {workload_key(func): func for func in planned.lowered.program.functions}.values()


def measure(name: str, archs: Sequence[str], most: int) -> Row:
    """All functions of a model."""
    row, verdicts = Row(name), Counter[str]()
    for func in functions_of(name, archs[-1]):
        row.functions += 1
        constants = {b.name: _random(b.shape, b.type.numpy) for b in func.constants}
        try:
            kernel = tw.build(func, f"cuda:{archs[-1]}", constants=constants)
            _compiled(row, kernel, archs)
            if operations(func) <= most:
                check_kernel(tw.emulated(kernel), func, constants)
                row.emulated += 1
        except TilewrightError as error:
            row.refused.append(f"{func.name}: {str(error).splitlines()[0]}")
            continue
        verdicts[str(kernel.proof).partition(" (")[0]] += 1
    row.proofs = dict(verdicts)
    return row


def _compiled(row: Row, kernel: Kernel, archs: Sequence[str]) -> None:
    for arch in archs:
        began = time.perf_counter()
        cubin = compile_cuda(kernel.source, arch, name=kernel.name)
        row.seconds.append(cubin.seconds or time.perf_counter() - began)
        found = resources(cubin)
        row.taken += found.values()
    row.compiled += 1
    row.launches += len(found)


def _random(shape: Sequence[int], dtype: np.dtype[np.generic]) -> np.ndarray:
    random = np.random.default_rng(0)
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)


HEAD = (
    *("model", "functions", "kernels", "proved", "compiled", "emulated", "refused"),
    *("s a compile, median (most)", "registers, most", "shared bytes, most", "spilling"),
)


def cells(row: Row) -> tuple[object, ...]:
    """The row of the table."""
    taken = row.taken or [Resources(0, 0, 0, 0)]
    seconds = row.seconds or [0.0]
    return (
        row.model,
        row.functions,
        row.launches,
        row.proofs.get("proved", 0),
        row.compiled,
        row.emulated,
        len(row.refused),
        f"{median(seconds):.2f} ({max(seconds):.2f})",
        max(one.registers for one in taken),
        max(one.shared_bytes for one in taken),
        sum(one.stack_bytes + one.local_bytes > 0 for one in taken),
    )


def main() -> None:
    """Look at what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=one_of(NAMES), default=DEFAULT)
    parser.add_argument("--archs", type=lambda text: text.split(","), default=["sm_80", "sm_90a"])
    parser.add_argument("--emulate", type=int, default=0, metavar="OPERATIONS")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = []
    for name in options.models:
        rows.append(measure(name, options.archs, options.emulate))
        print(*map(str, cells(rows[-1])), sep=" | ", flush=True)
        print(*rows[-1].refused, sep="\n", flush=True)
    text = report.table(HEAD, [cells(row) for row in rows])
    print(text)
    if options.write:
        report.write("gpu_kernels", text, [asdict(row) for row in rows], ())


if __name__ == "__main__":
    main()
