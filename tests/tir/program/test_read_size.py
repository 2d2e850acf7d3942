"""A size that a run computes: what a program with one means, as JSON, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tilewright.runtime.arrays import Array
from tilewright.tir.dim import Dim
from tilewright.tir.dtype import FLOAT32, INT64
from tilewright.tir.errors import IRError
from tilewright.tir.program.evaluate import evaluate_program, interpret_program
from tilewright.tir.program.json import parse_program, program_text
from tilewright.tir.program.program import (
    Branch,
    Copy,
    Launch,
    Program,
    ProgramTensor,
    ReadSize,
    Slice,
    Step,
    Sync,
)
from tilewright.tir.program.syncs import place_syncs, verify_program
from tilewright.tir.sizes import size_of
from tilewright.tir.te import te

COUNT = Dim("count", low=0, high=5)
K = Slice("input", 1, INT64, ())
KEPT = Slice("arena", 64, INT64, ())
X = Slice("input", 0, FLOAT32, (5,))
Y = Slice("output", 0, FLOAT32, (size_of(COUNT),))


def program(*steps: Step, arena_bytes: int = 128) -> Program:
    """The first `count` numbers twice, in steps."""
    n = te.dim("n", 0, 5)
    x = te.placeholder(5, "float32", name="x")
    y = te.compute(n, lambda i: x[i] + x[i], name="y")
    func = te.func(x, y, name="twice", sizes=(n,))
    return Program(
        "sizes",
        (ProgramTensor("x", FLOAT32, (5,)), ProgramTensor("k", INT64, ())),
        (ProgramTensor("y", FLOAT32, Y.shape),),
        (),
        (func,),
        steps,
        arena_bytes,
    )


READ = ReadSize(COUNT, KEPT)
TWICE = Launch("twice", (X, Y), "", (size_of(COUNT),))
WHOLE = (Copy(K, KEPT), Sync(), READ, TWICE)


def inputs(count: int) -> dict[str, Array]:
    return {"x": np.arange(5, dtype=np.float32), "k": np.array(count)}


def refused(*steps: Step) -> str:
    with pytest.raises(IRError) as caught:
        verify_program(program(*steps))
    return str(caught.value)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_what_follows_is_as_large_as_the_run_says(count: int) -> None:
    made = program(*WHOLE)
    verify_program(made)
    for run in (evaluate_program, interpret_program):
        (y,) = run(made, inputs(count), {}).values()
        assert y.tolist() == [2.0 * n for n in range(count)]


def test_a_program_comes_back_from_its_text() -> None:
    made = program(*WHOLE)
    read = parse_program(program_text(made))
    assert str(read) == str(made)
    assert "size(count = arena[64]: int64[()])" in str(read)
    (y,) = interpret_program(read, inputs(3), {}).values()
    assert y.tolist() == [0, 2, 4]


def test_threads_wait_for_the_number_that_is_a_size() -> None:
    made = place_syncs(program(Copy(K, KEPT), READ, TWICE))
    assert made.body == WHOLE
    with pytest.raises(IRError) as caught:
        verify_program(program(Copy(K, KEPT), READ, TWICE))
    assert caught.value.code == "program-sync"


def test_a_size_out_of_its_bounds_ends_an_evaluation() -> None:
    with pytest.raises(IRError) as caught:
        evaluate_program(program(*WHOLE), inputs(6), {})
    assert str(caught.value) == (
        "IRError: program: the size 'count' is 6; expected 0 to 5. [program-size-found]"
    )


@pytest.mark.parametrize(
    "steps",
    [
        (ReadSize(COUNT, X),),
        (ReadSize(COUNT, K), ReadSize(COUNT, K)),
    ],
)
def test_what_is_no_single_number_and_what_is_known_already_is_no_size(
    steps: Sequence[Step],
) -> None:
    last = steps[-1]
    assert isinstance(last, ReadSize)
    assert refused(*steps) == (
        f"IRError: program: 'size(count = {last.source})' reads a size; expected one int64, "
        "outside of branches and loops, and each size once. [program-read-size]"
    )


def test_a_size_is_not_read_in_a_branch() -> None:
    made = program(Branch(Slice("input", 2, te.const(True, "bool").dtype, ()), (READ,), ()))
    inputs_ = (*made.inputs, ProgramTensor("b", te.const(True, "bool").dtype, ()))
    with pytest.raises(IRError) as caught:
        verify_program(replace(made, inputs=inputs_))
    assert caught.value.code == "program-read-size"


def test_a_size_is_read_before_it_is_taken() -> None:
    assert refused(TWICE, ReadSize(COUNT, K)) == (
        "IRError: program: 'twice(input[0]: float32[5]; output[0]: float32[count])' takes the size "
        "'count', which nothing before it tells. [program-size-early]"
    )
