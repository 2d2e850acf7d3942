"""A whole model as exported C on 64-bit ARM, in an emulator; the interpreter packs its weights."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen.c.program import emit_program
from tilewright.driver.lower_program import LoweredProgram, lower_program
from tilewright.graph.ir.ir import Graph
from tilewright.graph.plan.plan import plan_model
from tilewright.runtime.engine.cpu_code import CpuCode
from tilewright.runtime.engine.export_c import export_c
from tilewright.runtime.engine.parts import EngineParts
from tilewright.runtime.model.report import EngineReport, MemoryPlan
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.target.target import Target

from ..codegen.c.emulated import COMPILER, EMULATOR, need_emulator
from ..graph.test_quantised_models import (
    bytes_at_random,
    inputs_of,
    levels,
    network,
    sums,
    sums_of,
)
from ..tiny_program import M, N, constants, expected, image, tiny
from .engine.test_export_c import MAIN

NEON = Target.parse("c:neon")


def parts(lowered: LoweredProgram, target: Target, constants: Sequence[np.ndarray]) -> EngineParts:
    """The parts of an engine that needs no compiler to be exported. constants: of its program."""
    artifact = emit_program(lowered.program, target)
    symbols = (kernel.symbol for kernel in artifact.kernels)
    functions = dict(zip(symbols, lowered.program.functions, strict=True))
    arrays = dict(enumerate(constants))
    for launch in artifact.prepare:
        func = functions[launch.function]
        places = [item.position for item in launch.arguments]
        roles = [parameter.role for parameter in func.parameters]
        pairs = list(zip(places, roles, strict=True))
        results = interpret(func, *(arrays[n] for n, role in pairs if role != "output"))
        arrays |= zip((n for n, role in pairs if role == "output"), results, strict=True)
    kept = tuple(arrays[n] if n in artifact.read else None for n in range(len(artifact.constants)))
    return EngineParts(CpuCode(artifact), kept, EngineReport(), MemoryPlan(0, 0, 0, 0))


def compile_here(folder: Path) -> None:
    """The exported model with its main, a static program."""
    for command in (
        ["make", f"CC={COMPILER}"],
        [COMPILER, "-std=c11", "-O2", "-static", "-pthread", "main.c", "model.o", "-o", "main"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_an_exported_model_runs_on_any_number_of_threads(tmp_path: Path) -> None:
    need_emulator()
    made = parts(lower_program(tiny(), NEON), NEON, tuple(constants().values()))
    assert made.artifact.prepare
    folder = export_c(made, tmp_path / "exported")
    assert "#include <arm_neon.h>" in (folder / "model.c").read_text()
    (folder / "main.c").write_text(MAIN)
    compile_here(folder)
    image().tofile(folder / "x")
    results = []
    for threads in (1, 2, 3):
        command = [EMULATOR, "./main", "weights.bin", "x", "y", str(threads)]
        assert subprocess.run(command, cwd=folder, timeout=120).returncode == 0
        results.append(np.fromfile(folder / "y", np.float32).reshape(N, M))
    np.testing.assert_allclose(results[0], expected(image()), rtol=1e-4, atol=1e-4)
    assert all(np.array_equal(one, results[0]) for one in results)


PAIRED = "vusmmlaq_s32"  # of two rows and two columns
INSTRUCTIONS = {"c:neon+i8mm": "vusdotq_s32", "c:neon+dotprod": "vdotq_s32"}
BYTES_MAIN = """\
#include <stdio.h>
#include "model.h"

int main(void)
{
    _Alignas(64) static unsigned char x[%d], y[%d];
    net_model *model = net_load("weights.bin");
    FILE *input = fopen("x", "rb"), *output = fopen("y", "wb");
    if (!model || !input || !output || fread(x, sizeof x, 1, input) != 1)
        return 4;
    if (net_run(model, (void *)x, (void *)y, NULL, 1) != 0)
        return 6;
    net_free(model);
    return fwrite(y, sizeof y, 1, output) != 1 || fclose(output) != 0;
}
"""


def meets_in_pairs(shape: tuple[int, ...]) -> bool:
    """Whether the terms of a product are whole groups of eight; few channels are padded to four."""
    terms = shape[0] if len(shape) == 2 else -(-shape[1] // 4) * 4
    return terms % 8 == 0


def exported(
    graph: Graph, name: str, x: np.ndarray, like: np.ndarray, folder: Path, *, in_pairs: bool
) -> np.ndarray:
    """What a model of bytes, exported for a target, makes of its one input."""
    target = Target.parse(name)
    model = plan_model(graph, target, check=False).lowered
    lowered = lower_program(model.program, target)
    arrays = [np.ascontiguousarray(model.constants[c.name]) for c in model.program.constants]
    folder = export_c(parts(lowered, target, arrays), folder / "exported")
    text = (folder / "model.c").read_text()
    used = [one for one in (*INSTRUCTIONS.values(), PAIRED) if f"{one}(" in text]
    assert used == [PAIRED if name == "c:neon+i8mm" and in_pairs else INSTRUCTIONS[name]]
    (folder / "main.c").write_text(BYTES_MAIN % (x.nbytes, like.nbytes))
    compile_here(folder)
    x.tofile(folder / "x")
    assert subprocess.run([EMULATOR, "./main"], cwd=folder, timeout=120).returncode == 0
    return np.fromfile(folder / "y", like.dtype).reshape(like.shape)


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize("shape", [(37, 20), (20, 5, 3, 3), (8, 3, 3, 3)])
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_an_exported_model_has_the_bits_of_a_product_of_levels(
    name: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    need_emulator()
    weights = bytes_at_random(shape, extreme=False)
    x = inputs_of(weights, extreme=False)
    wanted = levels(sums_of(x, weights))
    pairs = meets_in_pairs(shape)
    found = exported(network(weights), name, x, wanted, tmp_path, in_pairs=pairs)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize("number", [-128, 127])
@pytest.mark.parametrize("shape", [(64, 20), (20, 16, 3, 3)])
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_sums_of_the_most_that_bytes_make_are_exact(
    name: str, shape: tuple[int, ...], number: int, tmp_path: Path
) -> None:
    need_emulator()
    weights = np.full(shape, number, np.int8)
    x = inputs_of(weights, extreme=True)
    wanted = sums_of(x, weights, zero=0)
    pairs = meets_in_pairs(shape)
    found = exported(sums(weights), name, x, wanted, tmp_path, in_pairs=pairs)
    np.testing.assert_array_equal(found, wanted)
