"""tir/interpreter/checks.py: errors planted in programs, each found by a checked run and named."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.interpreter.interpreter import InterpreterError, interpret
from tilewright.tir.parsing.parser import parse

ROWS = np.arange(24, dtype="f4").reshape(4, 6)
ROW = np.arange(6, dtype="f4")


def found(text: str, *arrays: np.ndarray, barriers: bool = False) -> str:
    """What a checked run of a program says."""
    with pytest.raises(InterpreterError) as caught:
        interpret(parse(text), *arrays, checked=True, barriers=barriers)
    return str(caught.value)


def passes(text: str, *arrays: np.ndarray, barriers: bool = False) -> np.ndarray:
    """The output of a program in which a checked run finds nothing."""
    (result,) = interpret(parse(text), *arrays, checked=True, barriers=barriers)
    return result


def test_a_missing_guard_reads_beyond_the_tensor() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            for i in range(2):
                for j in range(4):
                    GUARD
                        y[i * 4 + j] = a[i * 4 + j]
    """
    assert found(text.replace("GUARD", "if i < 2:"), ROW) == (
        "InterpreterError: interpreter: 'a'[6] is read at i = 1, j = 2; "
        "expected indices inside its shape [6]. [interpreter-bounds]\n"
        "  in f:\n"
        "      y[i * 4 + j] = a[i * 4 + j]"
    )
    assert np.array_equal(passes(text.replace("GUARD", "if i * 4 + j < 6:"), ROW), ROW)


def test_an_index_outside_its_dimension_is_found_though_the_address_is_inside() -> None:
    text = """
        def f(a: float32[4, 6], y: output(float32[4, 6])):
            for i in range(4):
                for j in range(6):
                    y[i, j] = a[i - 1, j + 6]
    """
    assert found(text, ROWS) == (
        "InterpreterError: interpreter: 'a'[-1, 6] is read at i = 0, j = 0; "
        "expected indices inside its shape [4, 6]. [interpreter-bounds]\n"
        "  in f:\n"
        "      y[i, j] = a[i - 1, j + 6]"
    )


def test_bounds_of_vectors_are_checked_in_the_lanes_that_are_on() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            for i in range(2):
                masked(y[ramp(i * 4, 1, 4)], ramp(i * 4, 1, 4) < broadcast(LIMIT, 4)) = \
masked(a[ramp(i * 4, 1, 4)], ramp(i * 4, 1, 4) < broadcast(6, 4), broadcast(0.0, 4))
    """
    assert np.array_equal(passes(text.replace("LIMIT", "6"), ROW), ROW)
    assert "'y'[6] is written at i = 1; expected" in found(text.replace("LIMIT", "7"), ROW)


def test_a_read_before_the_first_write_is_found() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            t = alloc(float32[6], "global")
            for i in range(COUNT):
                t[i] = a[i]
            for i in range(6):
                y[i] = t[i] + 1.0
    """
    assert found(text.replace("COUNT", "5"), ROW) == (
        "InterpreterError: interpreter: 't'[5] is read at i = 5 before it is written. "
        "[interpreter-uninitialised]\n"
        "  in f:\n"
        "      y[i] = t[i] + 1.0"
    )
    assert np.array_equal(passes(text.replace("COUNT", "6"), ROW), ROW + 1)


def test_storage_is_fresh_each_time_its_alloc_is_entered() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            for i in range(6):
                t = alloc(float32[1], "register")
                if i == 0:
                    t[0] = a[i]
                y[i] = t[0] * 2.0
    """
    assert "'t'[0] is read at i = 1 before it is written" in found(text, ROW)


def test_a_copy_of_what_is_not_initialised_is_not_either() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            t = alloc(float32[6], "global")
            r = alloc(float32[6], "global")
            for i in range(6):
                r[i] = t[i]
            for i in range(6):
                LATER
            for i in range(6):
                y[i] = r[i] - 1.0
    """
    assert "'r'[0] is read at i = 0 before" in found(text.replace("LATER", "t[i] = a[i]"), ROW)
    assert np.array_equal(passes(text.replace("LATER", "r[i] = a[i]"), ROW), ROW - 1)


def test_vectors_carry_per_lane_whether_they_are_initialised() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            t = alloc(float32[8], "global")
            r = alloc(float32[8], "global")
            for i in range(6):
                t[i] = a[i]
            r[ramp(0, 1, 8)] = masked(t[ramp(0, 1, 8)], broadcast(True, 8), broadcast(0.0, 8))
            for i in range(6):
                y[i] = r[i + SHIFT] + 0.0
    """
    assert np.array_equal(passes(text.replace("SHIFT", "0"), ROW), ROW)
    assert "'r'[6] is read at i = 5 before" in found(text.replace("SHIFT", "1"), ROW)
    direct = (
        text.replace("r[i + SHIFT] + 0.0", "1.0")
        .replace("masked(t", "min(t")
        .replace(", broadcast(True, 8), broadcast", ", broadcast")
    )
    assert "'t'[6] is read before it is written" in found(direct, ROW)


def test_register_vectors_are_initialised_as_a_whole() -> None:
    text = """
        def f(a: float32[4], y: output(float32[4])):
            r = alloc(float32x4[2], "register")
            r[0] = a[ramp(0, 1, 4)]
            s = alloc(float32x4[()], "register")
            s[()] = masked(r[INDEX], broadcast(True, 4), broadcast(0.0, 4))
            y[ramp(0, 1, 4)] = s[()] + broadcast(1.0, 4)
    """
    assert np.array_equal(passes(text.replace("INDEX", "0"), ROW[:4]), ROW[:4] + 1)
    assert "'r'[1] is read before it is written" in found(text.replace("INDEX", "1"), ROW[:4])


def test_an_output_with_a_hole_is_found() -> None:
    text = """
        def f(a: float32[4, 6], y: output(float32[4, 6])):
            for i in range(4):
                for j in range(6):
                    if i < 3 or j != 5:
                        y[i, j] = a[i, j]
    """
    assert found(text, ROWS) == (
        "InterpreterError: interpreter: output 'y'[3, 5] is never written; "
        "expected all 24 elements, got 23. [interpreter-unwritten]\n"
        "  in f:"
    )


def test_an_output_may_have_holes_where_that_is_said() -> None:
    func = parse("def f(y: output(float32[2])):\n    y[0] = 1.0\n")
    (y,) = interpret(func, checked=True, whole=False)
    assert y[0] == 1


def test_two_parallel_iterations_that_write_one_element_race() -> None:
    text = """
        def f(a: float32[4, 6], y: output(float32[6])):
            for j in range(6):
                y[j] = 0.0
            for i in KIND(4):
                for j in range(6):
                    y[j] = y[j] + a[i, j]
    """
    assert np.array_equal(passes(text.replace("KIND", "range"), ROWS), ROWS.sum(0))
    assert found(text.replace("KIND", "parallel"), ROWS) == (
        "InterpreterError: interpreter: iteration i = 0 writes 'y'[0] and iteration i = 1 reads it "
        "at i = 1, j = 0, with no barrier between; expected iterations that may run at once "
        "to touch different elements. [interpreter-race]\n"
        "  in f:\n"
        "      y[j] = y[j] + a[i, j]"
    )
    assert "iteration i = 0 writes 'y'[0]" in found(text.replace("KIND", "vectorized"), ROWS)


def test_a_write_after_reads_of_other_iterations_races() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            t = alloc(float32[7], "global")
            for i in range(7):
                t[i] = 1.0
            for i in parallel(6):
                y[i] = t[i] + t[6 - i]
                if i == 5:
                    t[1] = 2.0
    """
    assert "iteration i = 1 reads 't'[1] and iteration i = 5 writes it at i = 5" in found(text, ROW)


def test_storage_inside_a_parallel_loop_is_private_and_outside_it_is_shared() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            OUTER
            for i in parallel(6):
                INNER
                t[0] = a[i]
                y[i] = t[0] * 2.0
    """
    alloc = 't = alloc(float32[1], "thread")'
    private = text.replace("OUTER", "").replace("INNER", alloc)
    shared = text.replace("OUTER", alloc).replace("INNER", "")
    assert np.array_equal(passes(private, ROW), ROW * 2)
    assert "iteration i = 0 writes 't'[0] and iteration i = 1 writes it" in found(shared, ROW)


def test_loops_in_parallel_loops_are_watched_on_their_own() -> None:
    text = """
        def f(a: float32[4, 6], y: output(float32[4, 6])):
            for i in parallel(4):
                t = alloc(float32[6], "thread")
                for j in vectorized(6):
                    t[INDEX] = a[i, j]
                for j in vectorized(6):
                    y[i, j] = t[5 - j] + 0.0
    """
    assert np.array_equal(passes(text.replace("INDEX", "j"), ROWS), ROWS[:, ::-1])
    assert "iteration j = 1 writes it" in found(text.replace("INDEX", "j // 2"), ROWS)


TWO_LOOPS = """
    def f(a: float32[6], y: output(float32[6])):
        t = alloc(float32[6], "global")
        for i in parallel(6):
            t[i] = a[i]
        BETWEEN
        for j in parallel(6):
            y[j] = t[INDEX] + 0.0
"""


def test_a_missing_barrier_is_found_where_barriers_alone_order_threads() -> None:
    bare = TWO_LOOPS.replace("BETWEEN", "").replace("INDEX", "5 - j")
    assert np.array_equal(passes(bare, ROW), ROW[::-1])
    assert found(bare, ROW, barriers=True) == (
        "InterpreterError: interpreter: iteration 5 of a parallel loop over 6 writes 't'[5] and "
        "iteration 0 of a parallel loop over 6 reads it at j = 0, with no barrier between; "
        "expected iterations that may run at once to touch different elements. [interpreter-race]\n"
        "  in f:\n"
        "      y[j] = t[5 - j] + 0.0"
    )
    parted = TWO_LOOPS.replace("BETWEEN", "barrier()").replace("INDEX", "5 - j")
    assert np.array_equal(passes(parted, ROW, barriers=True), ROW[::-1])


def test_the_same_iteration_of_equal_loops_needs_no_barrier() -> None:
    text = TWO_LOOPS.replace("BETWEEN", "").replace("INDEX", "j")
    assert np.array_equal(passes(text, ROW, barriers=True), ROW)


def test_the_serial_part_needs_a_barrier_before_a_parallel_loop() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            t = alloc(float32[6], "global")
            for i in range(6):
                t[i] = a[i] * 2.0
            BETWEEN
            for i in parallel(6):
                y[i] = t[i] + 0.0
    """
    message = found(text.replace("BETWEEN", ""), ROW, barriers=True)
    assert "the serial part writes 't'[0] and iteration 0 of a parallel loop over 6" in message
    assert np.array_equal(passes(text.replace("BETWEEN", "barrier()"), ROW, barriers=True), ROW * 2)


def test_lanes_are_watched_where_barriers_order_threads_too() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            for j in vectorized(6):
                t = alloc(float32[1], "register")
                t[0] = a[j]
                y[INDEX] = t[0] + 0.0
    """
    assert np.array_equal(passes(text.replace("INDEX", "j"), ROW, barriers=True), ROW)
    assert "iteration j = 1 writes it" in found(text.replace("INDEX", "0"), ROW, barriers=True)


BLOCK = """
    def f(a: float32[6], y: output(float32[6])):
        for i in range(3):
            for j in range(4):
                with block("y", v=spatial(6, VALUE)MARKS):
                    where(i * 4 + j < LIMIT)
                    y[v] = a[v] * 2.0
"""


def blocks(value: str, limit: int, marks: str = "") -> str:
    return BLOCK.replace("VALUE", value).replace("LIMIT", str(limit)).replace("MARKS", marks)


def test_a_point_that_runs_twice_is_found_with_both_iterations() -> None:
    assert np.array_equal(passes(blocks("i * 4 + j", 6), ROW), ROW * 2)
    assert found(blocks("(i * 4 + j) % 6", 12), ROW) == (
        "InterpreterError: interpreter: block 'y' runs its point (v = 0) twice, "
        "at i = 0, j = 0 and at i = 1, j = 2; "
        "expected once, or a block marked recomputed. [interpreter-twice]\n"
        "  in f:\n"
        "      y[v] = a[v] * 2.0"
    )
    again = blocks("(i * 4 + j) % 6", 12, ", recomputed=True")
    assert np.array_equal(passes(again, ROW), ROW * 2)


def test_a_point_outside_the_domain_is_found_unless_the_block_is_padded() -> None:
    assert found(blocks("i * 4 + j", 7), ROW) == (
        "InterpreterError: interpreter: block 'y' runs at v = 6 at i = 1, j = 2; "
        "expected 0 to 5, or a block marked padded. [interpreter-domain]\n"
        "  in f:\n"
        "      y[v] = a[v] * 2.0"
    )
    assert "'a'[6] is read" in found(blocks("i * 4 + j", 7, ", padded=True"), ROW)


def test_the_parts_of_a_family_share_their_points() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            for i in range(4):
                with block("y", v=spatial(6, i)):
                    y[v] = a[v] + 1.0
            for i in range(2):
                with block("y_edge", v=spatial(6, i + FIRST), family="y"):
                    y[v] = a[v] + 1.0
    """
    assert np.array_equal(passes(text.replace("FIRST", "4"), ROW), ROW + 1)
    assert "block 'y_edge' runs its point (v = 3) twice" in found(text.replace("FIRST", "3"), ROW)


def test_copies_and_placed_inits_may_run_again() -> None:
    text = """
        def f(a: float32[6], y: output(float32[6])):
            for n in range(2):
                for i in range(6):
                    with block("y_init", v=spatial(6, i), init="y"):
                        y[v] = 0.0
                for i in range(6):
                    with block("y_copy", v=spatial(6, i), copy="a"):
                        y[v] = a[v]
    """
    assert np.array_equal(passes(text, ROW), ROW)
