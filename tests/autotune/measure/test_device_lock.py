from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tilewright.autotune.measure import device_lock
from tilewright.autotune.measure.device_lock import DeviceLock, cpu_lock, gpu_lock

HOLD = """
import sys, time
from pathlib import Path
from tilewright.autotune.measure.device_lock import DeviceLock
with DeviceLock(Path(sys.argv[1])).timing():
    print("held", flush=True)
    time.sleep(60)
"""


def test_many_may_build_at_a_time_and_one_times(tmp_path: Path) -> None:
    lock, told = DeviceLock(tmp_path / "cpu"), list[str]()

    def time_it() -> None:
        with lock.timing():
            told.append("timed")

    with lock.building(), DeviceLock(tmp_path / "cpu").building():
        thread = threading.Thread(target=time_it)
        thread.start()
        time.sleep(0.1)
        told.append("built")
    thread.join(10)
    assert told == ["built", "timed"]


def test_another_process_is_waited_for_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed: what it held is free."""
    monkeypatch.setattr(device_lock, "_TELL", 0.05)
    path, told = tmp_path / "cpu", list[str]()
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"

        def tell(text: str) -> None:
            told.append(text)
            process.kill()

        with DeviceLock(path, tell).timing():
            pass
    assert told == [f"process {process.pid} uses the CPU for tuning; waiting for it"]


def test_who_times_on_a_gpu_leaves_the_cpu_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_lock, "_folder", lambda: tmp_path)
    monkeypatch.setattr(device_lock, "_TELL", 0.02)
    told: list[str] = []
    with gpu_lock().timing(), cpu_lock(told.append).timing():
        assert told == []
    command = [sys.executable, "-c", HOLD, str(tmp_path / "gpu")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"

        def tell(text: str) -> None:
            told.append(text)
            process.kill()

        with gpu_lock(tell).timing():
            pass
    assert told == [f"process {process.pid} uses the GPU for tuning; waiting for it"]
