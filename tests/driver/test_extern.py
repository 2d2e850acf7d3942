"""C functions of a user, from te to compiled kernels: values, threads, errors of the C text."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver.check.check import CheckError
from tilewright.driver.lower_program import lower_program
from tilewright.runtime.toolchain.compile import CompileFailed
from tilewright.schedule.schedule import Schedule
from tilewright.tir.errors import TargetError
from tilewright.tir.extern import Reference
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.program.program import Launch, Program, ProgramTensor, Slice
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.te import te

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


@pytest.mark.sampled(2)
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


@pytest.mark.sampled(2)
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
        (NEXT.replace("i < 4", "i < 3"), "or on memory that it did not write. [check-outside]"),
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
    assert "it reads or writes behind 'Y', where it may not. [check-page]" in str(error.value)


def test_a_program_calls_none() -> None:
    func = following()
    kind = func.inputs[0].type
    program = Program(
        "p",
        inputs=(ProgramTensor("X", kind, (4,)),),
        outputs=(ProgramTensor("Z", kind, (4,)),),
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


def call(
    shape: int | tuple[int, ...],
    kind: str,
    inputs: te.Tensor | tuple[te.Tensor, ...],
    parameters: str,
    body: str,
    reference: Reference,
) -> te.Tensor:
    """S, by a C function of these parameters and this body."""
    text = f"#include <stdint.h>\nvoid made({parameters})\n{{\n    {body}\n}}\n"
    return te.extern(shape, kind, inputs, source=text, symbol="made", reference=reference, name="S")


def built(*tensors: te.Tensor) -> tw.Kernel:
    """A kernel, proved and checked, of plain loops."""
    kernel = tw.build(Schedule(te.func(*tensors, name="f")))
    assert kernel.proof is not None
    assert kernel.proof.status == "proved"
    return kernel


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("kind", "in_c"),
    [
        ("bool", "uint8_t"),
        ("int8", "int8_t"),
        ("uint64", "uint64_t"),
        ("float64", "double"),
        ("bfloat16", "uint16_t"),
    ],
)
def test_elements_have_the_c_type_of_their_bits(kind: str, in_c: str) -> None:
    x = te.placeholder((4,), kind, name="X")
    body = "for (int i = 0; i < 4; i++) y[i] = x[3 - i];"
    built(x, call(4, kind, x, f"const {in_c} *x, {in_c} *y", body, lambda a: a[::-1]))


@pytest.mark.needs_cc
def test_it_may_read_one_tensor_twice_or_none() -> None:
    x = te.placeholder((3,), "float32", name="X")
    body = "for (int i = 0; i < 3; i++) y[i] = a[i] * b[i];"
    parameters = "const float *a, const float *b, float *y"
    square = built(x, call(3, "float32", (x, x), parameters, body, lambda a, b: a * b))
    np.testing.assert_array_equal(square(np.arange(3, dtype=np.float32)), [0, 1, 4])
    body = "for (int i = 0; i < 3; i++) y[i] = i;"
    table = call(3, "float32", (), "float *y", body, lambda: np.arange(3.0))
    added = built(x, te.compute(3, lambda i: x[i] + table[i], name="Y"))
    assert added.artifact.prepare is not None
    np.testing.assert_array_equal(added(np.ones(3, np.float32)), [1, 2, 3])


@pytest.mark.needs_cc
def test_its_numbers_may_be_indices() -> None:
    x = te.placeholder((6,), "float32", name="X")
    body = "for (int i = 0; i < 6; i++) y[i] = x[i] > 0 ? i : 7;"
    place = call(
        6,
        "int32",
        x,
        "const float *x, int32_t *y",
        body,
        lambda a: np.where(a > 0, np.arange(6), 7),
    )
    kernel = built(x, te.compute(6, lambda i: x[te.clamp_index(place[i], 6)], name="Y"))
    np.testing.assert_array_equal(
        kernel(np.array([1, -2, 3, -4, 5, 6], np.float32)), [1, 6, 3, 6, 5, 6]
    )


@pytest.mark.needs_cc
def test_other_tensors_may_have_sizes_that_a_call_decides() -> None:
    x = te.placeholder((te.dim("n", 1, 9), 4), "float32", name="X")
    w = te.placeholder((4,), "float32", name="W")
    body = "for (int i = 0; i < 4; i++) y[i] = x[i] * 2;"
    twice = call(4, "float32", w, "const float *x, float *y", body, lambda a: a * 2)
    n = x.extents[0]
    kernel = built(x, w, te.compute((n, 4), lambda i, j: x[i, j] + twice[j], name="Y"))
    for rows in (1, 3, 9):
        np.testing.assert_array_equal(
            kernel(np.ones((rows, 4), np.float32), np.ones(4, np.float32)), np.full((rows, 4), 3)
        )


@pytest.mark.needs_cc
def test_tensors_may_have_no_elements() -> None:
    x = te.placeholder((0,), "float32", name="X")
    body = "(void)x; (void)y;"
    rows = call((0, 2), "float32", x, "const float *x, float *y", body, lambda a: np.ones((0, 2)))
    assert built(x, rows)(np.empty(0, np.float32)).shape == (0, 2)
