"""Candidates that misbehave cost one record each, and the good ones among them are measured."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tilewright.autotune.frames import encode, read_frame
from tilewright.autotune.measurement import Bench, Built, build
from tilewright.autotune.record import Workload
from tilewright.autotune.space import TuningSpace
from tilewright.autotune.worker_process import Deadlines, Worker
from tilewright.runtime.compile import compile_shared
from tilewright.runtime.host import host_target
from tilewright.tir import te
from tilewright.tir.func import PrimFunc

pytestmark = pytest.mark.needs_cc
TARGET = replace(host_target(), threads=2)


def product() -> PrimFunc:
    a = te.placeholder((16, 64), "float32", name="A")
    b = te.placeholder((64, 64), "float32", name="B", constant=True)
    k = te.reduce_axis(64, name="k")
    c = te.compute((16, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="product")


FUNC = product()


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Worker(Deadlines(check=2.0)) as worker:
        space = TuningSpace(FUNC, TARGET)
        yield Bench(FUNC, TARGET, space.name, Workload.of(FUNC).key, worker)


@pytest.fixture(scope="module")
def good() -> Built:
    return build(TuningSpace(FUNC, TARGET).candidate(), TARGET)


def spoiled(good: Built, body: str) -> Built:
    """The candidate with another body: `out` is what it should write, of `size` floats."""
    symbol = good.artifact.symbol
    source = f"""\
#include <stdlib.h>
struct tw_team;
static void body(float *out, int size) {{ {body} }}
void {symbol}(void *const *args, const struct tw_team *team, int thread, int threads)
{{ (void)team; (void)threads; if (thread == 0) body(args[2], 16 * 64); }}
void {good.artifact.prepare.symbol if good.artifact.prepare else "nobody"}(
    void *const *args, const struct tw_team *team, int thread, int threads)
{{ (void)args; (void)team; (void)thread; (void)threads; }}
"""
    artifact = replace(good.artifact, source=source)
    return replace(good, artifact=artifact, shared=compile_shared(source, TARGET))


BAD = {
    "segfault": ("crashed", "(void)out; (void)size; *(volatile int *)8 = 1;"),
    "abort": ("crashed", "(void)out; (void)size; abort();"),
    "exit": ("crashed", "(void)out; (void)size; exit(3);"),
    "endless": ("timed-out", "for (volatile int n = 0;; n++) out[n % size] = 0;"),
    "zeros": ("wrong", "for (int n = 0; n < size; n++) out[n] = 0;"),
    "half": ("wrong", "for (int n = 0; n < size / 2; n++) out[n] = 0;"),
    "beyond": ("wrong", "for (int n = 0; n < size + 4; n++) out[n] = 0;"),
    "hog": (
        "crashed",
        "(void)size; for (;;) { volatile char *p = malloc(1 << 28); p[0] = 1; out[0] = p[0]; }",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_candidate_is_a_record_and_the_next_one_is_measured(
    name: str, bench: Bench, good: Built
) -> None:
    outcome, body = BAD[name]
    (bad,) = bench.measure([spoiled(good, body)], rounds=1)
    assert bad.outcome == outcome, bad.text
    assert bad.text
    assert bad.seconds is None
    (after,) = bench.measure([good], rounds=2)
    assert after.outcome == "ok", after.text
    assert after.proof == "proved"
    assert len(after.samples) == 2
    assert after.is_default


def test_a_worker_ends_with_its_parent_amid_of_a_kernel(bench: Bench, good: Built) -> None:
    """The system closes the pipe of a parent that is gone."""
    command = [sys.executable, "-m", "tilewright.autotune.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode(*bench.job([spoiled(good, BAD["endless"][1])], 1)))
        process.stdin.flush()
        stages = [read_frame(process.stdout) for _ in range(2)]
        assert [frame and frame.body for frame in stages] == [{"stage": "data"}, {"stage": "check"}]
        time.sleep(0.5)
        assert process.poll() is None
        process.stdin.close()
        try:
            assert process.wait(10) == 0
        finally:
            process.kill()
