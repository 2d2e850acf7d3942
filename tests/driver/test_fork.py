"""A process that has run kernels and engines on two threads forks: its child runs them too."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.samples.samples import tiny_model

from .kernels import KERNELS

pytestmark = pytest.mark.needs_cc

PROGRAM = """
import os, sys, time
import numpy as np
import tilewright as tw
from tilewright import te
from tilewright.graph.samples.samples import tiny_model
from tilewright.runtime.cpu.pool import threads_started

x = te.placeholder((64, 300), "float32", name="X")
y = te.compute((64, 300), lambda i, j: te.exp(x[i, j]), name="Y")
kernel = tw.build(te.func(x, y, name="exp"))
sample = tiny_model()
engine = tw.compile(sample.model, cache=False)
array = np.random.default_rng(0).standard_normal((64, 300), dtype=np.float32)

def both():
    outputs = engine.run(sample.inputs, threads=2)
    return kernel(array, threads=2).tobytes(), next(iter(outputs.values())).tobytes()

wanted = both()
assert threads_started() == 2, threads_started()  # checks run on three threads
for _ in range(3):
    child = os.fork()
    if child == 0:
        began = time.perf_counter()
        same = both() == wanted
        soon = time.perf_counter() - began < 1
        os._exit(0 if same and soon and threads_started() == 1 else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert both() == wanted
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_runs_kernel_and_engine_on_two_threads_within_a_second() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "0\n0\n0\n"), done.stderr


def test_eight_python_threads_run_one_compiled_model_and_one_kernel_at_once() -> None:
    sample = tiny_model()
    engine = tw.compile(sample.model, cache=False)
    kernel = tw.build(KERNELS["softmax"]())
    (name,) = sample.inputs
    images = [
        np.random.default_rng(seed).standard_normal((1, 3, 8, 8), dtype=np.float32)
        for seed in range(8)
    ]
    rows = [
        np.random.default_rng(seed).standard_normal((6, 101), dtype=np.float32) for seed in range(8)
    ]
    wanted = [
        (engine(image).tobytes(), kernel(row).tobytes())
        for image, row in zip(images, rows, strict=True)
    ]
    assert len(set(wanted)) == 8
    wrong: list[int] = []

    def work(seed: int) -> None:
        for _ in range(50):
            output = engine.run({name: images[seed]}, threads=2)
            found = next(iter(output.values())).tobytes(), kernel(rows[seed], threads=2).tobytes()
            if found != wanted[seed]:
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
