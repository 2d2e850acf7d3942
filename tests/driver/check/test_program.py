from __future__ import annotations

import pytest

from tilewright.codegen.c.program import emit_program
from tilewright.codegen.c.program_source import program_source
from tilewright.driver.check.program import KernelCheck, KernelChecker, ProgramCheckError
from tilewright.driver.lower_program import lower_program
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.tir.target.target import Target

from ...tiny_program import tiny

pytestmark = pytest.mark.needs_cc

TARGET = Target.parse("c:scalar")


def checked(old: str = "", new: str = "", name: str = "add") -> KernelCheck:
    """The check of one kernel of the tiny model, its C changed behind everybody's back."""
    lowered = lower_program(tiny(), TARGET)
    artifact = emit_program(lowered.program, TARGET)
    text = program_source(artifact)
    assert old in text
    shared = compile_shared(text.replace(old, new) if old else text, TARGET)
    kernel = lowered.kernels[name]
    prepare = f"{artifact.symbol}_{name}_prepare" if kernel.prepare is not None else None
    return KernelChecker(artifact, shared).check(kernel.func, f"{artifact.symbol}_{name}", prepare)


@pytest.mark.parametrize("name", ["mm1", "relu", "add"])
def test_right_kernels_pass(name: str) -> None:
    check = checked(name=name)
    assert check.ok
    assert check.verdict == "ok"
    assert check.error is not None
    assert check.error <= 1
    assert check.seconds > 0


def test_a_wrong_result_is_found() -> None:
    check = checked("+ B[", "- B[")
    assert not check.ok
    assert check.verdict.startswith("max error / bound")
    assert check.error is not None
    assert check.error > 1


def test_an_element_that_is_not_written_is_found() -> None:
    check = checked("    for (int64_t i = ", "    for (int64_t i = 1 + ")
    assert not check.ok


def test_a_write_outside_is_found() -> None:
    check = checked("S[", "S[210] = 0, S[")
    assert check.verdict == "it reads or writes behind 'S', where it may not."
    assert check.error is None


def test_a_write_into_an_input_is_found() -> None:
    check = checked("S[", "((float *)A)[0] = 0, S[")
    assert check.verdict == "it wrote into 'A', which it may only read."


def test_the_error_names_the_functions() -> None:
    error = ProgramCheckError("m", {"conv": "max error / bound 3.", "add": "it wrote."})
    assert error.functions == ("conv", "add")
    assert str(error) == (
        "ProgramCheckError: check: 2 function(s) of 'm' have wrong kernels: 'conv': max error / "
        "bound 3.; 'add': it wrote. [check-program]"
    )
