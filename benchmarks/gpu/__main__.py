"""Kernels on the GPU that is here, beside PyTorch, each with its share of the device's peak.

    python -m benchmarks.gpu [NAME ...] [--seconds 0.5] [--tune 60] [--write]

Products stand beside cuBLAS through PyTorch (float32, no TF32; float16, its sums in float32),
chains and rows beside torch.compile; without PyTorch ours stand alone. Times are of the device's
clock, many calls in one graph. The peaks are those of the largest copy and of the largest product
of the same type that PyTorch does in the same process. Results are compared with NumPy first.
--tune searches the schedules of products and of softmax for so many seconds each, and times the
tuned kernel and that of the rule in the same rounds. Whole models stand beside torch.compile where
PyTorch and transformers are installed (models.py). --write keeps the tables under the device's
name and the date.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.runtime.cuda.device.availability import Available, availability
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.work.work import bytes_moved, operations

from .. import report
from ..subjects.functions import chain, half_product, normalised, product, softmax
from . import models, tuning
from .tuning import Gain, gain

Array = np.ndarray
TorchCall = Callable[..., Any]
PEAK_SIZE = 8192  # of the product and, squared, of the copy that tell the peaks
WRONG = {"float32": 1e-4, "float16": 1e-3}  # of the largest magnitude
TUNED = ("matmul", "half matmul", "softmax")  # what is tuned where that is asked for


@dataclass(frozen=True)
class Case:
    """A function of ours, and the same in PyTorch; compiled: by torch.compile."""

    func: Callable[[], PrimFunc]
    torch: Callable[[Any], TorchCall]
    compiled: bool = True


def _matmul(torch: Any) -> TorchCall:
    return torch.matmul


def _softmax(torch: Any) -> TorchCall:
    return partial(torch.softmax, dim=-1)


def _normalised(torch: Any) -> TorchCall:
    return lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:])


def _chain(torch: Any) -> TorchCall:
    return lambda x, b: torch.tanh((x + b) * 0.5) * x + 1.0


CASES: Mapping[str, Case] = {
    **{
        f"matmul {m}x{n}x{k}": Case(partial(product, m, n, k), _matmul, compiled=False)
        for m, n, k in (
            *((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096)),
            *((128, 768, 768), (128, 3072, 768), (16, 4096, 4096)),
        )
    },
    **{
        f"half matmul {m}x{n}x{k}": Case(partial(half_product, m, n, k), _matmul, compiled=False)
        for m, n, k in (
            *((1024, 1024, 1024), (4096, 4096, 4096)),
            *((128, 768, 768), (128, 3072, 768)),
        )
    },
    "softmax 4096x1024": Case(partial(softmax, 4096, 1024), _softmax),
    "softmax 512x32768": Case(partial(softmax, 512, 32768), _softmax),
    "normalisation 4096x1024": Case(partial(normalised, 4096, 1024), _normalised),
    "chain 4096x4096": Case(partial(chain, 4096, 4096), _chain),
}


@dataclass(frozen=True)
class Row:
    """One function: microseconds of ours and of PyTorch (None without it), our share of the peak
    that binds it.
    """

    name: str
    ours: float
    theirs: float | None
    gflops: float
    gb_per_s: float
    share: float


@dataclass(frozen=True)
class Peaks:
    """GFLOP/s of products by the type of their operands, GB/s read and written by a copy."""

    gflops: Mapping[str, float]
    gb_per_s: float


class Torch:
    """PyTorch on the first device, timed as we are: many calls in one graph, by events."""

    def __init__(self) -> None:
        import torch  # optional

        self.torch: Any = torch
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False

    def arrays(self, arrays: Sequence[Array]) -> list[Any]:
        """The arrays on the device."""
        return [self.torch.from_numpy(array).cuda() for array in arrays]

    def seconds(self, call: Callable[[], object], samples: int = 15, calls: int = 20) -> float:
        """The median over graphs of so many calls."""
        torch = self.torch
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                call()
        found = []
        for _ in range(samples):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            found.append(begin.elapsed_time(end) * 1e-3 / calls)
        return statistics.median(found)

    def called(self, call: Callable[[], object], samples: int = 15, calls: int = 20) -> float:
        """The median as it is called: with what Python takes to launch."""
        torch = self.torch
        found = []
        for _ in range(samples + 1):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(calls):
                call()
            end.record()
            end.synchronize()
            found.append(begin.elapsed_time(end) * 1e-3 / calls)
        return statistics.median(found[1:])

    def peaks(self) -> Peaks:
        """The rates of the largest products and of the largest copy."""
        gflops = {}
        for dtype in WRONG:
            a, b = (
                self.torch.randn(PEAK_SIZE, PEAK_SIZE, device="cuda").to(getattr(self.torch, dtype))
                for _ in range(2)
            )
            c = self.torch.empty_like(a)
            product_seconds = self.seconds(partial(self.torch.matmul, a, b, out=c), calls=2)
            gflops[dtype] = 2e-9 * PEAK_SIZE**3 / product_seconds
        return Peaks(gflops, 2e-9 * c.nbytes / self.seconds(partial(c.copy_, a)))


def data(func: PrimFunc) -> tuple[dict[str, Array], dict[str, Array], list[Array]]:
    """Random arrays by name: all, the constants alone, and those of a call in order."""
    random = np.random.default_rng(0)
    arrays = {
        b.name: random.standard_normal(b.shape, dtype=np.float32).astype(b.type.numpy)
        for b in (*func.inputs, *func.constants)
    }
    fixed = {b.name: arrays[b.name] for b in func.constants}
    return arrays, fixed, [arrays[b.name] for b in func.inputs if b.name not in fixed]


def tuned(name: str, found: Available, seconds: float) -> Gain:
    """One function, tuned for so many seconds."""
    func = CASES[name].func()
    _, fixed, inputs = data(func)
    target = tw.Target.parse(f"cuda:{found.devices[0].arch}")
    return gain(name, func, target, fixed, inputs, seconds)


def measure(
    name: str, found: Available, torch: Torch | None, peaks: Peaks | None, seconds: float
) -> Row:
    """One function, checked and timed."""
    case = CASES[name]
    func = case.func()
    arrays, fixed, inputs = data(func)
    kernel = tw.build(func, f"cuda:{found.devices[0].arch}", constants=fixed)
    wanted = evaluate(func, arrays)[func.outputs[0].name]
    dtype = str(wanted.dtype)
    wanted = wanted.astype(np.float32)
    error = np.abs(np.asarray(kernel(*inputs)).astype(np.float32) - wanted).max()
    if not float(error) <= WRONG[dtype] * float(np.abs(wanted).max()):
        raise ArithmeticError(f"{name}: wrong by {error}")
    ours = kernel.time(*inputs, seconds=seconds).median
    theirs, share = None, 0.0
    gflops, gb_per_s = operations(func) / ours * 1e-9, bytes_moved(func) / ours * 1e-9
    if torch is not None:
        call = case.torch(torch.torch)
        if case.compiled:
            call = torch.torch.compile(call)
        given = torch.arrays([*inputs, *fixed.values()])
        theirs = torch.seconds(lambda: call(*given))
    if peaks is not None:
        share = max(gflops / peaks.gflops[dtype], gb_per_s / peaks.gb_per_s)
    return Row(name, ours, theirs, gflops, gb_per_s, share)


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    head = ("function", "us", "PyTorch, us", "PyTorch / ours", "GFLOP/s", "GB/s", "share of peak")
    cells = [
        (
            row.name,
            f"{row.ours * 1e6:.1f}",
            "" if row.theirs is None else f"{row.theirs * 1e6:.1f}",
            "" if row.theirs is None else f"{row.theirs / row.ours:.2f}",
            f"{row.gflops:.0f}",
            f"{row.gb_per_s:.0f}",
            f"{row.share:.0%}" if row.share else "",
        )
        for row in rows
    ]
    return report.table(head, cells)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a part of a function's name")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--tune", type=float, metavar="SECONDS", help="of each search")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found = availability()
    if not isinstance(found, Available):
        raise SystemExit(str(found.error()))
    torch = Torch() if find_spec("torch") is not None else None
    peaks = torch.peaks() if torch is not None else None
    rows, gains = [], []
    names = [n for n in CASES if not options.names or any(part in n for part in options.names)]
    for name in names:
        rows.append(measure(name, found, torch, peaks, options.seconds))
        print(json.dumps(asdict(rows[-1])), flush=True)
    for name in names if options.tune is not None else ():
        if name.startswith(TUNED):
            gains.append(tuned(name, found, options.tune))
            print(json.dumps(asdict(gains[-1])), flush=True)
    engines = []
    for case in models.CASES if torch is not None and find_spec("transformers") else ():
        if not options.names or any(part in case for part in options.names):
            engines.append(
                models.measure(case, found, torch.seconds, torch.called, options.seconds)
            )
            print(json.dumps(asdict(engines[-1])), flush=True)
    tables = [table(rows)]
    tables += [tuning.table(gains)] if gains else []
    tables += [models.table(engines)] if engines else []
    print("\n".join(tables))
    if options.write:
        device = "-".join(re.findall("[a-z0-9]+", found.devices[0].name.lower()))
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        about: dict[str, object] = {
            "device": found.devices[0].name,
            "driver": found.driver.name,
            "date": day,
        }
        if peaks is not None:
            about |= {f"GFLOP/s of {t}": round(rate) for t, rate in peaks.gflops.items()}
            about["GB/s of a copy"] = round(peaks.gb_per_s)
        kept = report.RESULTS / f"{device}-{day}"
        whole = {
            "conditions": about,
            "rows": [asdict(row) for row in rows],
            "tuned": [asdict(one) for one in gains],
            "models": [asdict(one) for one in engines],
        }
        kept.with_suffix(".json").write_text(json.dumps(whole, indent=1) + "\n")
        lines = ", ".join(f"{key} {value}" for key, value in about.items())
        kept.with_suffix(".md").write_text("\n".join([f"# GPU\n\n{lines}\n", *tables]) + "\n")


if __name__ == "__main__":
    main()
