"""C functions of a user, from te to compiled kernels: values, threads, errors of the C text."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver.check import CheckError
from tilewright.driver.lower_program import lower_program
from tilewright.runtime.compile import CompileFailed
from tilewright.schedule.schedule import Schedule
from tilewright.tir import te
from tilewright.tir.errors import TargetError
from tilewright.tir.evaluate import evaluate
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.program import Launch, Program, Slice, Tensor

from ..schedule.programs import ranked
from .golden_kernels import around_calls

NEXT = """\
void next(const float *x, float *y)
{
    for (int i = 0; i < 4; i++)
        y[i] = x[i] + 1;
}
"""


def following(source: str = NEXT, *, constant: bool = False) -> PrimFunc:
    """Y = X + 1 by a C function."""
    x = te.placeholder((4,), "float32", name="X", constant=constant)
    y = te.extern(
        4, "float32", x, source=source, symbol="next", reference=lambda a: a + 1, name="Y"
    )
    return te.func(x, te.compute((4,), lambda i: y[i] * 2.0, name="Z"), name="following")


@pytest.mark.needs_cc
@pytest.mark.parametrize("target", ["c:scalar", "c"])
@pytest.mark.parametrize("strict", [False, True])
def test_a_kernel_has_the_bits_of_the_definition(target: str, strict: bool) -> None:
    func = ranked(23, 41)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((23, 41), dtype=np.float32) for _ in "AB"]
    wanted = evaluate(func, given)["Y"]
    np.testing.assert_array_equal(tw.build(Schedule(func), "python")(*given), wanted)
    for steps in (around_calls, lambda sch: None):
        kernel = tw.build(Schedule(func).apply(steps), target, strict=strict)
        assert kernel.proof is not None
        assert kernel.proof.status == "proved"
        for threads in (1, 2, 3):
            out = np.full((23, 41), np.nan, np.float32)
            kernel.run(given, [out], threads=threads)
            np.testing.assert_allclose(out, wanted, rtol=1e-6)


@pytest.mark.needs_cc
def test_a_kernel_keeps_the_text_where_it_goes() -> None:
    kernel = tw.build(Schedule(following()))
    moved = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(moved(np.zeros(4, np.float32)), [2, 2, 2, 2])
    assert NEXT in moved.source


@pytest.mark.needs_cc
def test_what_it_makes_of_constants_is_made_once() -> None:
    x = np.arange(4, dtype=np.float32)
    kernel = tw.build(Schedule(following(constant=True)), constants={"X": x})
    np.testing.assert_array_equal(kernel(), 2 * x + 2)


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            NEXT.replace("+ 1", "+"),
            "line 4 of the source that te.extern 'next' was given.",
        ),
        (
            NEXT.replace("float *y", "double *y"),
            "line 1 of the source that te.extern 'next' was given.",
        ),
        (
            "float absent(float);\n" + NEXT.replace("x[i] + 1", "absent(x[i])"),
            "the source that a te.extern was given must define all that libc does not have.",
        ),
    ],
    ids=["syntax", "type", "no such function"],
)
def test_c_that_does_not_compile_is_an_error_with_the_line(source: str, said: str) -> None:
    with pytest.raises(CompileFailed) as error:
        tw.build(Schedule(following(source)))
    assert str(error.value).splitlines()[-1].endswith(said)
    assert "CompileFailed: compile: the C compiler refused 'following': " in str(error.value)


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("source", "said"),
    [
        (NEXT.replace("+ 1", "+ 2"), "[check-differs]"),
        (NEXT.replace("i < 4", "i < 3"), "got nan"),
    ],
    ids=["another value", "an element left out"],
)
def test_c_that_is_not_its_reference_is_found(source: str, said: str) -> None:
    with pytest.raises(CheckError) as error:
        tw.build(Schedule(following(source)))
    assert said in str(error.value)


@pytest.mark.needs_cc
def test_a_write_beyond_an_output_is_found() -> None:
    x = te.placeholder((4,), "float32", name="X")
    y = te.extern(
        4,
        "float32",
        x,
        source=NEXT.replace("i < 4", "i < 5").replace("x[i]", "x[i & 3]"),
        symbol="next",
        reference=lambda a: a + 1,
        name="Y",
    )
    with pytest.raises(CheckError) as error:
        tw.build(Schedule(te.func(x, y, name="over")))
    assert "kernel 'over' wrote outside of 'Y'. [check-fence]" in str(error.value)


def test_a_program_calls_none() -> None:
    func = following()
    kind = func.inputs[0].type
    program = Program(
        "p",
        inputs=(Tensor("X", kind, (4,)),),
        outputs=(Tensor("Z", kind, (4,)),),
        constants=(),
        arena_bytes=0,
        functions=(func,),
        body=(
            Launch("following", (Slice("input", 0, kind, (4,)), Slice("output", 0, kind, (4,)))),
        ),
    )
    with pytest.raises(TargetError) as error:
        lower_program(program, tw.Target.parse("c:scalar"))
    assert str(error.value) == (
        "TargetError: program: 'following' calls the C function 'next'; expected functions that "
        "hold all that they compute. [program-extern]\n"
        "  Hint: tw.build makes a kernel of a schedule of it."
    )


def test_nothing_but_the_reference_runs_in_the_interpreter() -> None:
    (z,) = interpret(
        following("void next(const float *x, float *y) { *(int *)0 = 1; }"), np.ones(4, np.float32)
    )
    assert z.tolist() == [4, 4, 4, 4]
