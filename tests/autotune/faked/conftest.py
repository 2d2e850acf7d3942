"""Tests of a process with the fake driver, which `test_faked_gpu.py` starts; nothing else runs
them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ...runtime.cuda.shared_library import shared_library

collect_ignore_glob = [] if os.environ.get("TILEWRIGHT_FAKED") else ["test_*.py"]

PLAN = """
#include <stdlib.h>
#include <unistd.h>
int fake_kernel(const char *name, const unsigned *grid, const unsigned *block,
                const void *arguments, double *microseconds)
{
    if (name[3] == 'p') { *microseconds = 1000; return 0; } /* tw_probe */
    unsigned threads = block[0];
    float *const *given = arguments;
    *microseconds = 10.0 + threads * 0.1;
    BEFORE
    if (!arguments) return 0;
    const float *x = given[0];
    float *y = given[1];
    for (unsigned i = 0; i < grid[0] * threads; ++i)
        y[i] = 2 * x[i];
    AFTER
    return 0;
}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Say what the fake's kernels do: y = 2 * x, in 10 us and a tenth for each thread of a block,
    and what is written before and after that.
    """

    def say(before: str = "", after: str = "") -> None:
        text = PLAN.replace("BEFORE", before).replace("AFTER", after)
        monkeypatch.setenv("FAKE_CUDA_PLAN", str(shared_library(text, tmp_path / "plan.so")))

    return say
