"""Engines of torch.compile are found again by a second process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")

pytestmark = pytest.mark.needs_cc
PROGRAM = """
import sys
import torch
from tilewright.interop.torch import backend

torch.manual_seed(int(sys.argv[1]))
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval()
x = torch.ones(3, 8)
torch._dynamo.mark_dynamic(x, 0)
with torch.no_grad():
    y = torch.compile(model, backend=backend, options={"fallback": "refuse"})(x)
    assert torch.allclose(y, model(x), atol=1e-5)
print("built" if "tilewright.graph.compile_model" in sys.modules else "found")
"""


def run(seed: int, cache: Path) -> str:
    """What a process with weights of this seed says."""
    environment = {**os.environ, "TILEWRIGHT_CACHE": str(cache)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(seed)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.split()[-1]


def test_a_second_process_finds_the_engine(tmp_path: Path) -> None:
    assert [run(seed, tmp_path) for seed in (0, 0, 1)] == ["built", "found", "built"]
