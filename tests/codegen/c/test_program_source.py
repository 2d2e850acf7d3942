from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.codegen.c.program import emit_program
from tilewright.codegen.c.program_source import plain, program_sources, static_definitions
from tilewright.codegen.program_artifact import ProgramArtifact
from tilewright.driver.lower_program import lower_program
from tilewright.runtime.compile import compile_many
from tilewright.runtime.host import host_target
from tilewright.tir.target import Target

from ...tiny_program import tiny


def emitted(target: Target) -> ProgramArtifact:
    return emit_program(lower_program(tiny(), target).program, target)


def test_units_share_the_kernels_and_the_first_has_the_entry() -> None:
    made = emitted(Target.parse("c:scalar"))
    assert len(program_sources(made, 1)) == 1
    units = program_sources(made, 2)
    assert len(units) == 2
    for kernel in made.kernels:
        assert sum(f"\nvoid {kernel.symbol}(void *const *args" in unit for unit in units) == 1
    assert f"\nvoid {made.symbol}(" in units[0]
    assert f"\nvoid {made.symbol}(" not in units[1]
    assert "tw_function tw_model_tiny_mm1, tw_model_tiny_relu, tw_model_tiny_add;" in units[0]
    assert max(map(len, units)) < 2 * min(map(len, units))


def test_there_are_no_more_units_than_kernels() -> None:
    made = emitted(Target.parse("c:scalar"))
    assert len(program_sources(made, 64)) == len(made.kernels)


def test_static_definitions_show_nothing_and_prepare_nothing() -> None:
    made = emitted(host_target())
    text = static_definitions(made)
    called = {launch.function for launch in made.launches}
    for symbol in (*called, made.symbol):
        assert f"\nstatic void {symbol}(void *const *args" in text
        assert f"\nvoid {symbol}(" not in text
    for launch in made.prepare:
        assert launch.function not in text


def test_text_for_comments_is_harmless() -> None:
    assert plain('a*/b/*c\\\n"?') == "a* /b/ *c____"


@pytest.mark.needs_cc
@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_an_object_imports_three_functions_of_libc_at_most(tmp_path: Path) -> None:
    made = emitted(host_target())
    shared = compile_many(program_sources(made, 2), made.target)
    file = tmp_path / "model.so"
    file.write_bytes(shared.binary)
    done = subprocess.run(
        ["nm", "-D", "--undefined-only", str(file)], capture_output=True, text=True, check=True
    )
    strong = {line.split()[1].split("@")[0] for line in done.stdout.splitlines() if " U " in line}
    assert strong <= {"memcpy", "memset", "memmove"}
