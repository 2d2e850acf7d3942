"""How long a newcomer and a service wait: cold compile, the first result with a warm cache,
imports.

    python -m benchmarks.startup [--model resnet50] [--processes 3] [--write]

Every figure is the median of fresh processes. "cold" starts with an empty cache of its own, "warm"
with what one cold process left; seconds are those of the whole process, from start to end, except
for imports, which are those of the statement alone. Every process finds the bytecode of all that it
imports, as after an installation by pip; a first one, which is not timed, writes it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

from tilewright.graph.samples.samples import LIGHT_MODELS, random_model

from . import report

RUN = """
import sys, numpy as np, tilewright as tw
image = np.load(sys.argv[2])
engine = tw.compile(sys.argv[1])
engine(image)
"""
EXPRESSION = "from tilewright import te; te.placeholder((4, 4), 'float32', name='A')"
TIMED = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"


def process(code: str, *words: str, cache: Path) -> tuple[float, str]:
    """Seconds that a fresh process took, and what it printed.

    Its bytecode is kept beside the folder `cache`, whatever this process was told of bytecode.
    """
    environment = {**os.environ, "TILEWRIGHT_CACHE": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(cache.with_name("bytecode"))
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return time.perf_counter() - began, done.stdout


def times(name: str, processes: int, folder: Path) -> dict[str, tuple[float, ...]]:
    """Seconds of each process, by what was measured."""
    sample = random_model(name)
    words = (str(folder / "model.onnx"), str(folder / "image.npy"))
    onnx.save(sample.model, words[0])
    np.save(words[1], next(iter(sample.inputs.values())))
    caches = [folder / f"cache{number}" for number in range(processes)]
    for cache in caches:
        cache.mkdir(mode=0o700)
    warm = caches[0]
    before = folder / "before"
    before.mkdir(mode=0o700)
    process(RUN, *words, cache=before)

    def statement(code: str) -> Callable[[Path], float]:
        return lambda cache: float(process(TIMED.format(code), cache=cache)[1])

    cold = tuple(process(RUN, *words, cache=cache)[0] for cache in caches)
    first = tuple(process(RUN, *words, cache=warm)[0] for _ in caches)
    imported, expression = statement("import tilewright"), statement(EXPRESSION)
    return {
        f"{name}: compile and first result, empty cache": cold,
        f"{name}: first result, warm cache": first,
        "import tilewright": tuple(imported(warm) for _ in caches),
        "from tilewright import te; te.placeholder(...)": tuple(expression(warm) for _ in caches),
    }


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet50", choices=LIGHT_MODELS)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = times(options.model, options.processes, Path(folder))
    rows = [
        (name, f"{statistics.median(seconds):.3f}", f"{min(seconds):.3f}", f"{max(seconds):.3f}")
        for name, seconds in found.items()
    ]
    table = report.table(("what", "seconds, median", "least", "most"), rows)
    print(table)
    if options.write:
        report.write("startup", table, [{"what": k, "seconds": v} for k, v in found.items()], ())


if __name__ == "__main__":
    main()
