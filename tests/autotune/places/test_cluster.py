"""A real scheduler of Dask with worker processes, one of which is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.autotune.log.record import Trial
from tilewright.autotune.places import cluster, confirmation
from tilewright.autotune.places.cluster import DASK
from tilewright.autotune.tune import tune
from tilewright.driver.tuning.errors import TuneError
from tilewright.runtime.machine.host import host_target

from ..samples import scaled
from ..test_tune import in_parts

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")

TARGET = replace(host_target(), threads=1)


class Started:
    """A scheduler and two workers. address: HOST:PORT of the scheduler."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._stack = stack
        self._log = stack.enter_context((folder / "dask.txt").open("w"))
        told = folder / "scheduler.json"
        options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
        self._dask("scheduler", *options, "--scheduler-file", str(told))
        deadline = time.monotonic() + 60
        while not told.exists():
            assert time.monotonic() < deadline, (folder / "dask.txt").read_text()
            time.sleep(0.1)
        self.address = json.loads(told.read_text())["address"].removeprefix("tcp://")
        plain = ("--no-nanny", "--no-dashboard", "--nthreads", "1", "--local-directory", folder)
        self.workers = [self._dask("worker", self.address, *map(str, plain)) for _ in range(2)]

    def _dask(self, *command: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *command], stdout=self._log, stderr=self._log
        )
        self._stack.callback(process.wait, 20)
        self._stack.callback(process.kill)
        return process


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with ExitStack() as stack:
        yield Started(tmp_path_factory.mktemp("dask"), stack)


@pytest.mark.slow
@pytest.mark.needs_cc
@pytest.mark.filterwarnings("default")  # those of distributed are its own
def test_a_scheduler_of_dask_measures_though_a_worker_is_killed(
    dask: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirmation, "PROCESSES", 1)

    def kill(trial: Trial) -> None:
        if dask.workers[0].poll() is None:
            os.kill(dask.workers[0].pid, signal.SIGKILL)

    pairs = [(scaled(n), 1) for n in (64, 128, 256)]
    result = tune(pairs, TARGET, rule=in_parts, executor=f"{DASK}{dask.address}", callback=kill)
    assert dask.workers[0].wait(20) == -signal.SIGKILL
    for found in result.functions:
        assert {trial.outcome for trial in found.history} == {"ok"}
        assert {trial.decisions for trial in found.history} == {(4,), (8,), (16,), (32,)}
        assert found.best is not None


def test_a_scheduler_that_does_not_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_CONNECT", "200ms")
    with pytest.raises(TuneError) as refused:
        tune(scaled(), TARGET, executor=f"{DASK}127.0.0.1:9")
    assert str(refused.value) == (
        "TuneError: tune: no scheduler of Dask answers at '127.0.0.1:9' within 200ms. "
        "[tune-scheduler]\n"
        "  Hint: dask scheduler --port 8786 starts one."
    )
