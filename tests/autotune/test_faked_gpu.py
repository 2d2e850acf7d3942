"""The tests of folder `faked` in a process whose driver is the fake one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.runtime.cuda.toolchain.toolkit import find_tool

from ..runtime.cuda.test_faked import environment, installed, library

__all__ = ["library"]  # the fixture

HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no CUDA"),
]


@pytest.mark.slow
@pytest.mark.usefixtures("nvrtc")
def test_a_search_for_a_gpu_survives_its_candidates(library: Path) -> None:
    if not installed("cuda.bindings"):
        pytest.skip("cuda-bindings is not installed: python -m pip install cuda-bindings")
    if find_tool("cuobjdump") is None:
        pytest.skip("cuobjdump is not installed: python -m pip install 'tilewright[cuda]'")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--durations=5", str(HERE / "faked")],
        env=environment(library, TILEWRIGHT_FAKED="bindings"),
        cwd=HERE.parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout
