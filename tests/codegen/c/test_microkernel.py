"""The inner loop of a matmul in machine code: what the registers hold stays there."""

from __future__ import annotations

import re

import pytest

from tilewright.codegen.c.build import build_artifact
from tilewright.runtime.toolchain.compile import assembly
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target

from ...isas import reads_x86

pytestmark = pytest.mark.needs_cc

TEXT = """
def mm(A: float32[128, 1024], B: float32[1024, 48], C: output(float32[128, 48])):
    for i in parallel(16):
        T = alloc(float32[8, 48], "register", origin=C)
        for ii in unrolled(8):
            for jj in unrolled(3):
                for v in vectorized(16):
                    T[ii, jj * 16 + v] = 0.0
        for k in range(1024):
            for ii in unrolled(8):
                for jj in unrolled(3):
                    for v in vectorized(16):
                        T[ii, jj * 16 + v] = fma(
                            A[i * 8 + ii, k], B[k, jj * 16 + v], T[ii, jj * 16 + v])
        for ii in unrolled(8):
            for jj in unrolled(3):
                for v in vectorized(16):
                    C[i * 8 + ii, jj * 16 + v] = T[ii, jj * 16 + v]
"""


@reads_x86
def test_the_8x48_tile_is_24_multiply_adds_3_loads_and_8_broadcasts_a_step() -> None:
    target = Target.parse("c:avx512")
    text = assembly(build_artifact(parse(TEXT), target).source, target)
    blocks = re.split(r"^\.L\w+:\n", text, flags=re.MULTILINE)
    loops = [block for block in blocks if block.count("vfmadd") > 0]
    assert len(loops) == 1
    inner = loops[0][: re.search(r"^\tj\w+\t", loops[0], flags=re.MULTILINE).end()]
    counts = [
        len(re.findall(rf"\t{name}\w*\t", inner)) for name in ("vfmadd", "vmovup", "vbroadcastss")
    ]
    assert counts == [24, 3, 8]
    assert "(%rsp" not in text
    assert "(%rbp" not in inner
