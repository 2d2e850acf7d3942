"""Candidates that misbehave cost one record each, and the good ones among them are measured."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from tilewright.autotune.log.record import Workload
from tilewright.autotune.measure.frames import encode, read_frame
from tilewright.autotune.measure.jobs import Job, Result
from tilewright.autotune.measure.lowering import write
from tilewright.autotune.measure.machine import Machine
from tilewright.autotune.measure.measurement import Subject
from tilewright.autotune.measure.worker_process import Deadlines
from tilewright.autotune.space.space import TuningSpace
from tilewright.codegen.artifact import Artifact
from tilewright.driver.tuning.errors import TuneError
from tilewright.runtime.artifact_json import kernel_to_json
from tilewright.runtime.machine.host import host_target
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te

pytestmark = pytest.mark.needs_cc
TARGET = replace(host_target(), threads=2)


def product() -> PrimFunc:
    a = te.placeholder((16, 64), "float32", name="A")
    b = te.placeholder((64, 64), "float32", name="B", constant=True)
    k = te.reduce_axis(64, name="k")
    c = te.compute((16, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="product")


FUNC = product()
SUBJECT = Subject(FUNC, TARGET, "contraction", Workload.of(FUNC).key)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with Machine(Deadlines(check=2.0, compile=3.0)) as machine:
        yield machine


@pytest.fixture(scope="module")
def good() -> Artifact:
    return write(TuningSpace(FUNC, TARGET).candidate(), TARGET).artifact


def job(*artifacts: Artifact, rounds: int = 1) -> Job:
    return replace(SUBJECT.job([], rounds, bar=None), candidates=artifacts, memory=1 << 32)


def measured(machine: Machine, *artifacts: Artifact) -> tuple[Result, ...]:
    return machine.measure(job(*artifacts)).results


def spoiled(good: Artifact, body: str, beside: str = "") -> Artifact:
    """The candidate with another body: `out` is what it should write, of `size` floats."""
    source = f"""\
#include <stdlib.h>
struct tw_team;
{beside}
static void body(float *out, int size) {{ {body} }}
void {good.symbol}(void *const *args, const struct tw_team *team, int thread, int threads)
{{ (void)team; (void)threads; if (thread == 0) body(args[2], 16 * 64); }}
void {good.prepare.symbol if good.prepare else "nobody"}(
    void *const *args, const struct tw_team *team, int thread, int threads)
{{ (void)args; (void)team; (void)thread; (void)threads; }}
"""
    return replace(good, source=source)


def again(good: Artifact, number: int) -> Artifact:
    """The good candidate as other code."""
    return replace(good, source=f"{good.source}\n// {number}\n")


ENDLESS = "for (volatile int n = 0;; n++) out[n % size] = 0;"
BAD = {
    "segfault": ("crashed", "(void)out; (void)size; volatile int *volatile none = 0; *none = 1;"),
    "abort": ("crashed", "(void)out; (void)size; abort();"),
    "exit": ("crashed", "(void)out; (void)size; exit(3);"),
    "endless": ("timed-out", ENDLESS),
    "zeros": ("wrong", "for (int n = 0; n < size; n++) out[n] = 0;"),
    "half": ("wrong", "for (int n = 0; n < size / 2; n++) out[n] = 0;"),
    "beyond": ("wrong", "for (int n = 0; n < size + 4; n++) out[n] = 0;"),
    "hog": (
        "crashed",
        "(void)size; for (;;) { volatile char *p = malloc(1 << 28); p[0] = 1; out[0] = p[0]; }",
    ),
    "no C": ("build-failed", "out[size] = 1.0f + ;"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", BAD)
def test_a_bad_candidate_is_a_verdict_with_a_text(
    name: str, machine: Machine, good: Artifact
) -> None:
    outcome, body = BAD[name]
    (bad,) = measured(machine, spoiled(good, body))
    assert bad.outcome == outcome, bad.text
    assert bad.text
    assert not bad.samples


@pytest.mark.parametrize("count", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_good_candidates_among_bad_ones_are_all_measured(
    count: int, machine: Machine, good: Artifact
) -> None:
    """In batches, as a search sends them; no two have the same code."""
    bad = [spoiled(good, body) for _, body in (BAD.values() if count > 8 else [BAD["segfault"]])]
    mixed = [again(good, number) for number in range(count)]
    for number, one in enumerate(bad):
        mixed.insert(2 + 6 * number, one)
    batches = [mixed[first : first + 4] for first in range(0, len(mixed), 4)]
    found = [result for batch in batches for result in measured(machine, *batch)]
    fates = {one.source: result.outcome for one, result in zip(mixed, found, strict=True)}
    failed = [fates[one.source] for one in bad]
    assert failed == [outcome for outcome, _ in BAD.values()][: len(bad)]
    assert [result.outcome for result in found].count("ok") == count


def test_who_harms_the_memory_of_others_is_alone_with_it(machine: Machine, good: Artifact) -> None:
    """A crash that another one is guilty of: each has its turn in a process of its own."""
    header = "#include <stdlib.h>\nint setenv(const char *, const char *, int);\n"
    harms = '__attribute__((constructor)) static void harm(void) { setenv("HARMED", "1", 1); }\n'
    dies = '__attribute__((constructor)) static void die(void) { if (getenv("HARMED")) abort(); }\n'
    sources = (good.source, header + harms + good.source, header + dies + good.source)
    found = measured(machine, *(replace(good, source=source) for source in sources))
    assert [result.outcome for result in found] == ["ok", "ok", "ok"]


def test_a_default_that_is_slower_than_all_gets_every_sample(
    machine: Machine, good: Artifact
) -> None:
    """The gain is that over its time: the number is found among the candidates that compile."""
    head, entry, rest = good.source.rpartition("(void)team;")
    pause = f"{entry} for (volatile int n = 0; n < 200000; n++) {{}}"
    slow = [again(replace(good, source=f"{head}{pause}{rest}"), n) for n in range(2)]
    broken = replace(good, source="none")
    asked = replace(job(broken, *slow, good, rounds=5), bar=inf)
    for default, other in ((1, 2), (2, 1)):
        results = machine.measure(replace(asked, default=default)).results
        assert results[0].outcome == "build-failed"
        assert len(results[default].samples) >= 5
        assert len(results[other].samples) == 2


def test_a_compiler_that_takes_too_long_is_a_verdict(machine: Machine, good: Artifact) -> None:
    wide = "".join(f"#define P{n + 1} P{n} P{n}\n" for n in range(26))
    slow = spoiled(good, "(void)size; P26 out[0] = 1;", f"#define P0 out[0] += 1;\n{wide}")
    result, other = measured(machine, slow, good)
    assert result.outcome == "timed-out"
    assert result.text == "compile: the C compiler took longer than 3 s."
    assert other.outcome == "ok"


def test_a_worker_ends_with_its_parent_amid_of_a_kernel(good: Artifact) -> None:
    """The system closes the pipe of a parent that is gone."""
    endless = spoiled(good, ENDLESS)
    shared = compile_shared(endless.source, TARGET)
    body = {
        "func": str(FUNC),
        "seed": 0,
        "threads": 1,
        "memory": 1 << 32,
        "rounds": 1,
        "bar": {"drops": False, "seconds": None},
        "sizes": [],
        "candidates": [{**kernel_to_json(endless), "path": str(shared.path)}],
    }
    command = [sys.executable, "-m", "tilewright.autotune.measure.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode(body, [shared.binary]))
        process.stdin.flush()
        stages = [read_frame(process.stdout) for _ in range(2)]
        assert [frame and frame.body for frame in stages] == [
            {"stage": "data"},
            {"stage": "check", "candidate": 0},
        ]
        time.sleep(0.5)
        assert process.poll() is None
        process.stdin.close()
        try:
            assert process.wait(10) == 0
        finally:
            process.kill()


def test_without_a_worker_nobody_is_blamed(
    good: Artifact, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no such module >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with Machine() as machine, pytest.raises(TuneError) as refused:
        measured(machine, good)
    assert str(refused.value) == (
        "TuneError: tune: no process that measures can be started here. [tune-start]\n"
        "  Note: the worker ended with 3 at 'start': no such module."
    )


def test_a_machine_that_is_closed_ends_what_it_measures(good: Artifact) -> None:
    machine = Machine()
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(measured, machine, spoiled(good, ENDLESS), good)
        time.sleep(2.0)
        began = time.monotonic()
        machine.close()
        assert time.monotonic() - began < 5.0
        with pytest.raises(TuneError):
            running.result()
