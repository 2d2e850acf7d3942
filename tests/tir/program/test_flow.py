from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.tir.errors import IRError
from tilewright.tir.program.evaluate import (
    TooManySteps,
    evaluate_program,
    interpret_program,
)
from tilewright.tir.program.flow import Iterations, is_open, taken, with_actions
from tilewright.tir.program.json import parse_program, program_text
from tilewright.tir.program.program import (
    Branch,
    Copy,
    LoopRow,
    Repeat,
    Slice,
    Sync,
    WriteIteration,
    actions,
    steps_text,
)

from ...looping_program import CONSTANTS, MADE, SUM, C, X, Y, expected, inputs, looping, vector

CASES = [(0, True), (1, False), (4, True), (-1, False)]


@pytest.mark.parametrize(("n", "c"), CASES)
def test_a_program_branches_and_loops_as_its_data_say(n: int, c: bool) -> None:
    program, given, wanted = looping(), inputs(n, c), expected(n, c)
    for run in (evaluate_program, interpret_program):
        found = run(program, given, CONSTANTS)
        for name, array in wanted.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-6)
    wide = evaluate_program(program, given, CONSTANTS, "float64")
    np.testing.assert_allclose(wide["zs"], wanted["zs"], rtol=1e-6)


def test_a_run_may_be_told_how_many_steps_it_may_take() -> None:
    with pytest.raises(TooManySteps):
        evaluate_program(looping(), inputs(1 << 40, True), CONSTANTS, most=100)


def test_it_prints_with_what_is_inside_indented() -> None:
    assert "\n".join(steps_text(looping().body[2:7])) == (
        "for i7 below input[0]: int64[()]:  # loop\n"
        "    add(output[0]: float32[4]; input[2]: float32[4]; arena[0]: float32[4])  # more\n"
        "    sync()\n"
        "    copy(arena[0]: float32[4] -> output[0]: float32[4])\n"
        "    sync()\n"
        "if input[1]: bool[()]:  # choice\n"
        "    double(output[0]: float32[4]; arena[64]: float32[4])  # twice\n"
        "else:\n"
        "    negate(output[0]: float32[4]; arena[64]: float32[4])  # less\n"
        "sync()\n"
        "for i8 below 3:  # all\n"
        "    add(arena[64]: float32[4]; input[3][2 - i8]: float32[4]; "
        "output[1][i8]: float32[4])  # row\n"
        "    sync()\n"
        "copy(constant[0]: bool[()] -> arena[192]: bool[()])"
    )


def test_a_text_of_it_is_read_back() -> None:
    text = program_text(looping())
    assert parse_program(text).body == looping().body
    assert program_text(parse_program(text)) == text


def test_a_text_with_steps_too_deep_is_refused() -> None:
    deep: Branch | Copy = Copy(X, Y)
    for _ in range(65):
        deep = Branch(C, (deep,), ())
    text = program_text(replace(looping(), body=(deep,)))
    with pytest.raises(IRError) as caught:
        parse_program(text)
    assert str(caught.value) == (
        "IRError: program: steps lie within each other more than 64 deep; expected no program of "
        "ours. [program-depth]"
    )


class Memory:
    """Conditions that are true so many times."""

    def __init__(self, **truths: int) -> None:
        self._left = truths

    def scalar(self, item: Slice, iterations: Iterations) -> int:
        self._left[item.space] -= 1
        return int(self._left[item.space] >= 0)


def test_the_steps_of_a_run_have_their_numbers_and_iterations() -> None:
    one, other, more = Copy(X, Y), Copy(X, SUM), Copy(SUM, Y)
    inner = Repeat(1, 2, None, (other, other, Sync()))
    body = (one, Repeat(0, None, SUM, (inner, more, Sync())), Branch(C, (one,), (more,)))
    found = [(t.number, dict(t.iterations)) for t in taken(body, Memory(arena=2, input=0))]
    loop = [(n, {0: i, 1: j}) for i in range(2) for j in range(2) for n in (1, 2)]
    assert found == [(0, {}), *loop[:4], (3, {0: 0}), *loop[4:], (3, {0: 1}), (5, {})]


def test_actions_are_changed_in_their_places() -> None:
    body = looping().body
    assert with_actions(body, lambda step: step) == body
    changed = with_actions(body, lambda step: Copy(X, Y))
    assert set(actions(changed)) == {Copy(X, Y)}
    assert [type(step) for step in changed] == [type(step) for step in body]


def test_only_loops_that_data_end_are_open() -> None:
    program = looping()
    assert is_open(program.body)
    assert not is_open([s for s in program.body if not isinstance(s, Repeat) or s.loop != 7])
    assert is_open([Branch(C, (), (Repeat(0, None, C, ()),))])


def test_a_row_of_a_row_lies_in_the_whole_array() -> None:
    item = vector("arena", 64, LoopRow(0, 5), LoopRow(1, 3, reverse=True))
    assert item.whole.shape == (5, 3, 4)
    assert item.reach == 5 * 3 * 16
    assert item.offset({0: 2, 1: 0}) == (2 * 3 + 2) * 16
    assert item.overlaps(Slice("arena", 64 + 14 * 16, item.dtype, (4,)))
    assert not item.overlaps(Slice("arena", 64 + 15 * 16, item.dtype, (4,)))
    assert WriteIteration(1, MADE).effects.written == (MADE,)
