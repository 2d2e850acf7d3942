"""The instruction sets of this machine, for tests that run code."""

from __future__ import annotations

import pytest

from tilewright.runtime.machine.host import can_compile, host
from tilewright.tir.target.target import Target

HERE = tuple(f"c:{isa}" for isa in host().isas)  # the targets that run here, the best first
X86 = Target.parse("c:avx512")
reads_x86 = pytest.mark.skipif(
    not can_compile(X86), reason="it reads what a compiler for x86 writes"
)
