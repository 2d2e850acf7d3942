"""A Program runs on the bytes of its plan: by NumPy, and element by element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.dtype import FLOAT32, dtype
from tilewright.tir.errors import IRError
from tilewright.tir.program.evaluate import (
    evaluate_program,
    interpret_program,
    interpret_with_checks,
)
from tilewright.tir.program.program import Copy, Launch, Program, ProgramTensor, Slice
from tilewright.tir.te import te

from ...checked_program import embedding, expected, tables

X = np.arange(8, dtype=np.float32) - 4
W = np.full(8, 0.5, dtype=np.float32)
INPUTS, CONSTANTS = {"x": X}, {"w": W}


def program(second: int = 32, arena: int = 64) -> Program:
    """t = x * w; u = max(t, 0); y = u * w; z is a copy of y. t lies at byte 0, u at `second`."""
    a, b = (te.placeholder((8,), "float32", name=n) for n in "ab")
    mul = te.func(a, b, te.compute((8,), lambda i: a[i] * b[i], name="m"), name="mul")
    relu = te.func(a, te.compute((8,), lambda i: te.maximum(a[i], 0.0), name="r"), name="relu")
    x, w = (Slice(space, 0, FLOAT32, (8,)) for space in ("input", "constant"))
    y, z = Slice("output", 0, FLOAT32, (8,)), Slice("output", 1, FLOAT32, (2, 4))
    t, u = (Slice("arena", at, FLOAT32, (8,)) for at in (0, second))
    body = (
        Launch("mul", (x, w, t)),
        Launch("relu", (t, u)),
        Launch("mul", (Slice("arena", second, FLOAT32, (2, 4)), w, y)),
        Copy(Slice("output", 0, FLOAT32, (2, 4)), z),
    )
    outputs = (ProgramTensor("y", FLOAT32, (8,)), ProgramTensor("z", FLOAT32, (2, 4)))
    inputs, constants = (ProgramTensor("x", FLOAT32, (8,)),), (ProgramTensor("w", FLOAT32, (8,)),)
    return Program("p", inputs, outputs, constants, (mul, relu), body, arena)


@pytest.mark.parametrize("run", [evaluate_program, interpret_program])
def test_launches_and_copies_run_in_order(run: Callable[..., dict[str, np.ndarray]]) -> None:
    found = run(program(), INPUTS, CONSTANTS)
    expected = np.maximum(X * W, 0) * W
    np.testing.assert_array_equal(found["y"], expected)
    np.testing.assert_array_equal(found["z"], expected.reshape(2, 4))


def test_floats_are_promoted_inside_functions_and_between_them() -> None:
    inputs = {"x": np.full(8, 1.0 + 2.0**-20, np.float32)}
    constants = {"w": np.full(8, 1.0 + 2.0**-20, np.float32)}
    found = evaluate_program(program(), inputs, constants, "float64")
    assert found["y"].dtype == np.float64
    assert np.all(found["y"] == (1.0 + 2.0**-20) ** 3)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2"])
def test_narrow_floats_between_functions_are_promoted_too(name: str) -> None:
    kind = dtype(name)
    a = te.placeholder((8,), "float32", name="a")
    b = te.placeholder((8,), kind, name="b")
    third = te.compute((8,), lambda i: te.cast(a[i] / 3.0, kind), name="n")
    tripled = te.compute((8,), lambda i: te.cast(b[i], "float32") * 3.0, name="w")
    x, y = (Slice(space, 0, FLOAT32, (8,)) for space in ("input", "output"))
    narrow = Slice("arena", 0, kind, (8,))
    made = Program(
        "p",
        (ProgramTensor("x", FLOAT32, (8,)),),
        (ProgramTensor("y", FLOAT32, (8,)),),
        (),
        (te.func(a, third, name="narrow"), te.func(b, tripled, name="wide")),
        (Launch("narrow", (x, narrow)), Launch("wide", (narrow, y))),
        8 * kind.bytes,
    )
    rounded = (X / np.float32(3)).astype(kind.numpy).astype(np.float32) * 3
    for run in (evaluate_program, interpret_program):
        np.testing.assert_array_equal(run(made, {"x": X}, {})["y"], rounded)
    exact = evaluate_program(made, {"x": X}, {}, "float64")["y"]
    np.testing.assert_allclose(exact, X, rtol=1e-15)


def test_a_tensor_whose_place_is_taken_too_early_shows() -> None:
    wrong = program(second=16)  # the two tensors overlap; the second launch reads what it writes
    right = evaluate_program(program(), INPUTS, CONSTANTS)["y"]
    swapped = Program(
        wrong.name,
        wrong.inputs,
        wrong.outputs,
        wrong.constants,
        wrong.functions,
        (wrong.body[0], wrong.body[1], wrong.body[0], wrong.body[2]),
        wrong.arena_bytes,
    )
    assert not np.array_equal(evaluate_program(swapped, INPUTS, CONSTANTS)["y"], right)


def test_what_is_read_before_it_is_written_is_nan() -> None:
    whole = program()
    part = Program(
        whole.name,
        whole.inputs,
        whole.outputs,
        whole.constants,
        whole.functions,
        whole.body[1:],
        whole.arena_bytes,
    )
    found = evaluate_program(part, INPUTS, CONSTANTS)
    assert np.all(np.isnan(found["y"]))


def test_an_output_that_nobody_writes_is_nan() -> None:
    whole = program()
    part = Program(
        whole.name,
        whole.inputs,
        whole.outputs,
        whole.constants,
        whole.functions,
        whole.body[:3],
        whole.arena_bytes,
    )
    assert np.all(np.isnan(evaluate_program(part, INPUTS, CONSTANTS)["z"]))


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(IRError) as caught:
        evaluate_program(program(), {"x": X.astype(np.float64)}, CONSTANTS)
    assert str(caught.value) == (
        "IRError: program: input 'x' of 'p' is float32[8]; got float64[8]. [program-array]"
    )
    with pytest.raises(IRError) as caught:
        interpret_program(program(), INPUTS, {})
    assert str(caught.value) == (
        "IRError: program: constant 'w' of 'p' is float32[8]; got none. [program-array]"
    )


def test_checks_are_words_beside_the_outputs() -> None:
    token, kind = np.array([0, 9, 3, 12, 1, 8]), np.array([0, 1, -1, 0, 0, 1])
    inputs = {"token": token, "kind": kind}
    outputs, words, _ = interpret_with_checks(embedding(), inputs, tables())
    assert np.array_equal(outputs["y"], expected(token, kind))
    assert words == (12, 2**64 - 1)
    assert np.array_equal(evaluate_program(embedding(), inputs, tables())["y"], outputs["y"])
    wide = evaluate_program(embedding(), inputs, tables(), "float64")["y"]
    assert np.allclose(wide, outputs["y"])
