"""Kernels that nobody holds any more leave nothing behind: a service may build them for years."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what a process holds"),
]
WARM = 20  # kernels after which everything that is made once is there
PROGRAM = """
import gc, json, os, sys
from pathlib import Path
import numpy as np
import tilewright as tw
from tilewright import te

data = np.arange(40, dtype=np.float32)

def build(number):
    x = te.placeholder((40,), "float32", name="X")
    y = te.compute((40,), lambda i: x[i] * 2.0 + float(number), name="Y")
    kernel = tw.build(te.func(x, y, name=f"kernel{number}"), "c:scalar", verify="off")
    assert np.array_equal(kernel(data), 2 * data + np.float32(number))

def held():
    gc.collect()
    maps = Path("/proc/self/maps").read_text().splitlines()
    status = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in status if line.startswith("Vm")}
    return {
        "objects": len({line.split()[-1] for line in maps if ".so" in line}),
        "maps": len(maps),
        "files": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "kilobytes": int(sizes["VmRSS"]),
    }

warm, count = map(int, sys.argv[1:])
for number in range(warm):
    build(number)
before = held()
for number in range(warm, warm + count):
    build(number)
print(json.dumps([before, held()]))
"""


@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.slow)])
def test_kernels_that_are_dropped_leave_nothing(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", "off")  # each is compiled, loaded and dropped anew
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(WARM), str(count)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    grown = after.pop("kilobytes") - before.pop("kilobytes")
    maps = after.pop("maps") - before.pop("maps")
    assert after == before  # not one object, file or thread more
    assert maps < 16  # the allocator's own
    assert grown < 4096, f"{grown} KiB for {count} kernels"
