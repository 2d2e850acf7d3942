"""What rules leave open: whatever is answered, values are right, the proof holds and the trace
replays; no answer is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tilewright.schedule.decisions import Random
from tilewright.tir.func import PrimFunc
from tilewright.tir.target import Target

from ..driver.kernels import KERNELS
from . import programs
from .rule_checks import check

CORPUS: dict[str, Callable[[], PrimFunc]] = {
    **KERNELS,
    "long sum": lambda: programs.matmul(9, 21, 1100),
    "groups": lambda: programs.conv(7, 6, 3, 8, groups=2),
    "windows": lambda: programs.pool(9, 8, 20, pad=1),
    "several outputs": lambda: programs.moments(6, 29),
    "scan": lambda: programs.running(9, 21, axis=1),
}
TARGETS = [replace(Target.parse(name), threads=2) for name in ("c:avx512+vnni", "c:avx2")]


HEAVY = {"long sum", "winograd", "winograd_4x4", "attention", "matmul"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in HEAVY else []) for n in CORPUS]
)
def test_every_answer_keeps_the_meaning(name: str) -> None:
    for seed in range(2 if name in HEAVY else 3):
        check(CORPUS[name](), TARGETS[seed % 2], Random(seed), rtol=1e-4, atol=1e-4)
