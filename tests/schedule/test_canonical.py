"""The canonical form: what a schedule computes, without how."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.schedule.canonical import canonical_form, origin_of
from tilewright.schedule.schedule import Schedule
from tilewright.tir.errors import InternalError
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import evaluate

from .nests import NESTS, blur, conv, matmul, packed, softmax


def tiled(sch: Schedule) -> None:
    """Split, staged in registers, initialised by hand."""
    i, j, k = sch.loops("C")
    i0, i1 = sch.split(i, (None, 4), tail="partition")
    j0, j1 = sch.split(j, (None, 4), tail="mask")
    sch.reorder(i0, j0, k, i1, j1)
    sch.decompose_reduction("C", k)
    sch.stage("C", "C", j0, "register")
    sch.parallel(i0)


@pytest.mark.parametrize("func", [matmul(8, 6, 4), conv(4, 2), softmax(3, 4), blur(3, 4)])
def test_a_plain_function_is_its_own_canonical_form(func: PrimFunc) -> None:
    assert str(canonical_form(func)) == str(func)


def test_loops_copies_and_placed_initialisations_leave_no_trace() -> None:
    func = matmul(13, 10, 7)
    sch = Schedule(func).apply(tiled)
    assert str(sch.func) != str(func)
    assert str(canonical_form(sch.func)) == str(func)


def test_a_block_that_a_step_made_is_kept() -> None:
    sch = Schedule(blur(2, 3)).apply(lambda s: s.cache_read("Y", "B"))
    assert str(canonical_form(sch.func)) == (
        "def blur(X: float32[4, 5], Y: output(float32[2, 3])):\n"
        '    B = alloc(float32[4, 3], "global")\n'
        '    B_cache = alloc(float32[4, 3], "global")\n'
        "    for i in range(4):\n"
        "        for j in range(3):\n"
        '            with block("B", vi=spatial(4, i), vj=spatial(3, j)):\n'
        "                B[vi, vj] = X[vi, vj] + X[vi, vj + 1] + X[vi, vj + 2]\n"
        "    for i0 in range(4):\n"
        "        for i1 in range(3):\n"
        '            with block("B_cache", v0=spatial(4, i0), v1=spatial(3, i1)):\n'
        "                B_cache[v0, v1] = B[v0, v1]\n"
        "    for i in range(2):\n"
        "        for j in range(3):\n"
        '            with block("Y", vi=spatial(2, i), vj=spatial(3, j)):\n'
        "                Y[vi, vj] = B_cache[vi, vj] + B_cache[vi + 1, vj] + B_cache[vi + 2, vj]"
    )


def test_it_computes_what_the_function_did() -> None:
    func = packed(9, 20, 12, 8)
    sch = Schedule(func).apply(tiled_and_joined)
    rng = np.random.default_rng(0)
    arrays = {
        p.name: rng.integers(-2, 3, p.buffer.shape).astype(np.float32)
        for p in func.parameters
        if p.role != "output"
    }
    expected = evaluate(func, arrays)["Y"]
    np.testing.assert_array_equal(evaluate(canonical_form(sch.func), arrays)["Y"], expected)


def tiled_and_joined(sch: Schedule) -> None:
    """The result is computed where its sum is complete."""
    i, j, k = sch.loops("C")
    j0, j1 = sch.split(j, (None, 4), tail="partition")
    sch.reorder(i, j0, k, j1)
    sch.reverse_compute_at("Y", j0)


def test_each_family_stands_once() -> None:
    sch = Schedule(matmul(13, 10, 7)).apply(tiled)
    nest = lower_to_nest(sch.func)
    assert len([b for b in nest.blocks if b.family == "C"]) > 2
    assert [b.name for b in canonical_form(nest).blocks] == ["C"]


def test_storage_that_tensors_share_keeps_their_order() -> None:
    form = canonical_form(parse(NESTS["in place"][1]))
    assert [block.name for block in form.blocks] == ["M", "E", "S", "Y"]


def test_producers_stand_before_their_readers() -> None:
    text = """
def f(X: float32[4], Y: output(float32[4])):
    P = alloc(float32[4], "global")
    for i in range(4):
        with block("Y", vi=spatial(4, i)):
            Y[vi] = P[vi] + 1.0
    for i in range(4):
        with block("P", vi=spatial(4, i)):
            P[vi] = X[vi] * 2.0
"""
    assert [block.name for block in canonical_form(parse(text)).blocks] == ["P", "Y"]


def test_the_origin_is_found_through_any_number_of_stages() -> None:
    text = """
def f(X: float32[4], Y: output(float32[4])):
    P = alloc(float32[4], "thread", origin=X)
    Q = alloc(float32[4], "register", origin=P)
    for i in range(4):
        with block("P_in", v0=spatial(4, i), copy="X"):
            P[v0] = X[v0]
        with block("Q_in", v0=spatial(4, i), copy="X"):
            Q[v0] = P[v0]
        with block("Y", vi=spatial(4, i)):
            Y[vi] = Q[vi] + 1.0
"""
    func = parse(text)
    assert [origin_of(buffer).name for buffer in func.allocations] == ["X", "X"]
    assert str(canonical_form(func)) == (
        "def f(X: float32[4], Y: output(float32[4])):\n"
        "    for i in range(4):\n"
        '        with block("Y", vi=spatial(4, i)):\n'
        "            Y[vi] = X[vi] + 1.0"
    )


def test_blocks_that_read_each_other_have_no_canonical_form() -> None:
    text = """
def f(Y: output(float32[4])):
    P = alloc(float32[4], "global")
    for i in range(4):
        with block("P", vi=spatial(4, i)):
            P[vi] = Y[vi]
        with block("Y", vi=spatial(4, i)):
            Y[vi] = P[vi]
"""
    with pytest.raises(InternalError) as refusal:
        canonical_form(parse(text))
    assert str(refusal.value) == (
        "InternalError: canonical form: blocks 'P', 'Y' of 'f' read each other; expected producers "
        "and readers in some order. [canonical-cycle]\n"
        "  Hint: this is a defect of tilewright; please report it with the program that led here."
    )
