"""What generated objects import, of which instruction sets they are, and that C compilers have
nothing to say about the code.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.c.build import write_artifact
from tilewright.codegen.c.program import emit_program
from tilewright.codegen.c.program_source import program_source
from tilewright.driver.lower import lower_function
from tilewright.driver.lower_program import lower_program
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.samples.samples import tiny_model
from tilewright.runtime.machine.host import CPU_VARIABLE, can_compile, host
from tilewright.runtime.measure.limits import fma_peak
from tilewright.runtime.toolchain import library
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.runtime.toolchain.compilers import find_compiler, isa_flags
from tilewright.runtime.toolchain.library import Pointer, SharedObject
from tilewright.schedule.rules.default import RULES, rule_for
from tilewright.tir.target.target import ISAS, Target

from ..isas import reads_x86
from ..linked import linked
from ..schedule.programs import chain
from .kernels import KERNELS

pytestmark = [pytest.mark.needs_cc, pytest.mark.sampled(7)]

COMPILED = [isa for isa in ISAS if can_compile(Target.parse(f"c:{isa}"))]
ALLOWED = {"memcpy", "memset", "memmove"}
START_UP = {"__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable"}
START_UP |= {"_ITM_registerTMCloneTable"}  # weak, of every shared object
FLAGS = ("-std=c11", "-O2", "-ffp-contract=off", "-fno-math-errno")
WARNINGS = ("-pthread", "-Wall", "-Wextra", "-Werror")


def imports(path: Path) -> dict[str, str]:
    """Undefined symbol -> "U", or "w" where it is weak."""
    said = subprocess.run(
        ["nm", "-D", "--undefined-only", str(path)], capture_output=True, text=True, check=True
    )
    words = [line.split() for line in said.stdout.splitlines()]
    return {name.partition("@")[0]: kind for *_, kind, name in words}


def check_imports(path: Path) -> None:
    found = imports(path)
    assert {name for name, kind in found.items() if kind != "w"} <= ALLOWED
    assert {name for name, kind in found.items() if kind == "w"} <= START_UP


@cache
def kernel_source(name: str, isa: str) -> str:
    target = Target.parse(f"c:{isa}")
    return write_artifact(lower_function(KERNELS[name](), target).parts, target).source


@cache
def model_sources(isa: str) -> tuple[str, ...]:
    target = Target.parse(f"c:{isa}")
    planned = plan_model(import_onnx(tiny_model().model), target, check=False)
    made = emit_program(lower_program(planned.lowered.program, target).program, target)
    return (program_source(made),)


def test_the_kernels_are_of_every_rule() -> None:
    assert {rule_for(made()).name for made in KERNELS.values()} == {rule.name for rule in RULES}


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
@pytest.mark.parametrize("isa", COMPILED)
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_imports_three_functions_at_most(name: str, isa: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.so"
    shared = compile_shared(kernel_source(name, isa), Target.parse(f"c:{isa}"))
    path.write_bytes(shared.binary)
    check_imports(path)


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
@pytest.mark.parametrize("isa", COMPILED)
def test_a_model_imports_three_functions_at_most(isa: str, tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    path.write_bytes(linked(model_sources(isa), Target.parse(f"c:{isa}")).binary)
    check_imports(path)


def registers(binary: bytes, folder: Path) -> str:
    """The best registers that the machine code of an object uses, by the instruction set that has
    them.
    """
    (folder / "object.so").write_bytes(binary)
    command = ["objdump", "--disassemble", "--no-show-raw-insn", str(folder / "object.so")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if re.search(r"%zmm|%k[0-7]|%[xy]mm(1[6-9]|2\d|3[01])", text):
        return "avx512"
    return "avx2" if "%ymm" in text else "scalar"


@reads_x86
@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump")
@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
def test_code_has_the_registers_of_its_instruction_set_alone(isa: str, tmp_path: Path) -> None:
    target = Target.parse(f"c:{isa}")
    model = linked(model_sources(isa), target)
    kernel = compile_shared(kernel_source("matmul", isa), target)
    assert [registers(shared.binary, tmp_path) for shared in (model, kernel)] == [isa, isa]


@reads_x86
@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump")
@pytest.mark.parametrize("cpu", [isa for isa in ("scalar", "avx2") if isa in host().isas])
def test_a_lowered_cpu_is_never_given_more(
    cpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is loaded while a model and a kernel are built, checked, run and timed."""
    monkeypatch.setenv(CPU_VARIABLE, cpu)
    loaded: list[SharedObject] = []
    opened = library._open

    def seen(shared: SharedObject, name: str) -> Pointer:
        loaded.append(shared)
        return opened(shared, name)

    monkeypatch.setattr(library, "_open", seen)
    model = tiny_model()
    engine = tw.compile(model.model, cache=False)
    engine.run(model.inputs)
    kernel = tw.build(chain(4, 64))
    x, bias = np.ones((4, 64), np.float32), np.ones(64, np.float32)
    kernel.time(x, bias, seconds=0.001)
    fma_peak()()
    assert cpu in {shared.instructions for shared in loaded} <= {cpu, "scalar"}
    assert cpu in {registers(shared.binary, tmp_path) for shared in loaded} <= {cpu, "scalar"}
    for target in {"c:avx2", "c:avx512"} - {f"c:{isa}" for isa in host().isas}:
        before = len(loaded)
        beyond = tw.compile(model.model, target, cache=False)
        assert {k.check.partition(":")[0] for k in beyond.explain().kernels} == {"not run"}
        assert len(loaded) == before


@pytest.mark.parametrize("isa", COMPILED)
def test_the_other_compiler_has_nothing_to_say_about_generated_code(
    isa: str, tmp_path: Path
) -> None:
    """The usual one has not: its warnings are errors in all tests of this folder."""
    compiler = "clang" if find_compiler().family == "gcc" else "gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    texts = [*(kernel_source(name, isa) for name in KERNELS), *model_sources(isa)]
    files = [tmp_path / f"{number}.c" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    flags = (*FLAGS, *isa_flags(Target.parse(f"c:{isa}")), *WARNINGS)
    command = [compiler, *flags, "-c", *(file.name for file in files)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_check_sees_another_import(tmp_path: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("no nm")
    path = tmp_path / "bad.so"
    text = "#include <stdlib.h>\nvoid *made(void);\nvoid *made(void) { return malloc(3); }\n"
    path.write_bytes(compile_shared(text, ISAS["scalar"]).binary)
    with pytest.raises(AssertionError):
        check_imports(path)
