"""A whole model as exported C on 64-bit ARM, in an emulator; the interpreter packs its weights."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen.c.program import emit_program
from tilewright.driver.lower_program import LoweredProgram, lower_program
from tilewright.runtime.engine.cpu_code import CpuCode
from tilewright.runtime.engine.export_c import export_c
from tilewright.runtime.engine.parts import EngineParts
from tilewright.runtime.model.report import EngineReport, MemoryPlan
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.target.target import Target

from ..codegen.c.emulated import COMPILER, EMULATOR, need_emulator
from ..tiny_program import M, N, constants, expected, image, tiny
from .engine.test_export_c import MAIN

NEON = Target.parse("c:neon")


def parts(lowered: LoweredProgram) -> EngineParts:
    """The parts of an engine that needs no compiler to be exported."""
    artifact = emit_program(lowered.program, NEON)
    symbols = (kernel.symbol for kernel in artifact.kernels)
    functions = dict(zip(symbols, lowered.program.functions, strict=True))
    arrays = dict(enumerate(constants().values()))
    for launch in artifact.prepare:
        func = functions[launch.function]
        places = [item.position for item in launch.arguments]
        roles = [parameter.role for parameter in func.parameters]
        pairs = list(zip(places, roles, strict=True))
        results = interpret(func, *(arrays[n] for n, role in pairs if role != "output"))
        arrays |= zip((n for n, role in pairs if role == "output"), results, strict=True)
    kept = tuple(arrays[n] if n in artifact.read else None for n in range(len(artifact.constants)))
    return EngineParts(CpuCode(artifact), kept, EngineReport(), MemoryPlan(0, 0, 0, 0))


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_an_exported_model_runs_on_any_number_of_threads(tmp_path: Path) -> None:
    need_emulator()
    made = parts(lower_program(tiny(), NEON))
    assert made.artifact.prepare
    folder = export_c(made, tmp_path / "exported")
    assert "#include <arm_neon.h>" in (folder / "model.c").read_text()
    (folder / "main.c").write_text(MAIN)
    for command in (
        ["make", f"CC={COMPILER}"],
        [COMPILER, "-std=c11", "-O2", "-static", "-pthread", "main.c", "model.o", "-o", "main"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    image().tofile(folder / "x")
    results = []
    for threads in (1, 2, 3):
        command = [EMULATOR, "./main", "weights.bin", "x", "y", str(threads)]
        assert subprocess.run(command, cwd=folder, timeout=120).returncode == 0
        results.append(np.fromfile(folder / "y", np.float32).reshape(N, M))
    np.testing.assert_allclose(results[0], expected(image()), rtol=1e-4, atol=1e-4)
    assert all(np.array_equal(one, results[0]) for one in results)
