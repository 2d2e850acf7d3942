"""What depends on constants alone is cut off into a function of its own."""

from __future__ import annotations

import numpy as np

from tilewright.codegen.lower.split_prepare import split_prepare
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse

TEXT = """
def f(A: float32[4, 8], B: constant(float32[8, 20]), D: constant(float32[20]),
      C: output(float32[4, 20])):
    P = alloc(float32[8, 20], "global")
    Q = alloc(float32[8, 20], "global")
    R = alloc(float32[4], "global")
    for k in range(8):
        for j in range(20):
            P[k, j] = B[k, j] * 2.0
    for i in parallel(4):
        R[i] = A[i, 0] * 2.0
    barrier()
    for k in range(8):
        for j in range(20):
            Q[k, j] = P[k, j] + 1.0
    barrier()
    for i in parallel(4):
        for j in range(20):
            C[i, j] = Q[i, j] + D[j] + R[i]
"""


def test_the_packing_of_constants_moves_to_prepare() -> None:
    parts = split_prepare(parse(TEXT))
    assert (
        str(parts.prepare)
        == """\
def f_prepare(B: constant(float32[8, 20]), Q: output(float32[8, 20])):
    P = alloc(float32[8, 20], "global")
    for k in range(8):
        for j in range(20):
            P[k, j] = B[k, j] * 2.0
    for k in range(8):
        for j in range(20):
            Q[k, j] = P[k, j] + 1.0"""
    )
    head, _, body = str(parts.run).partition("\n")
    assert head == (
        "def f(A: float32[4, 8], D: constant(float32[20]), Q: prepared(float32[8, 20]), "
        "C: output(float32[4, 20])):"
    )
    assert (
        body
        == """\
    R = alloc(float32[4], "global")
    for i in parallel(4):
        R[i] = A[i, 0] * 2.0
    barrier()
    for i in parallel(4):
        for j in range(20):
            C[i, j] = Q[i, j] + D[j] + R[i]"""
    )


def test_run_after_prepare_computes_what_the_function_does() -> None:
    func = parse(TEXT)
    rng = np.random.default_rng(0)
    a, b, d = (rng.standard_normal(s).astype(np.float32) for s in ((4, 8), (8, 20), (20,)))
    parts = split_prepare(func)
    assert parts.prepare is not None
    (packed,) = interpret(parts.prepare, b, checked=True, barriers=True)
    (result,) = interpret(parts.run, a, d, packed, checked=True, barriers=True)
    np.testing.assert_array_equal(result, interpret(func, a, b, d)[0])


def test_a_function_of_inputs_alone_is_its_own_run() -> None:
    func = parse(
        TEXT.replace("constant(", "(")
        .replace("B: (float32[8, 20])", "B: float32[8, 20]")
        .replace("D: (float32[20])", "D: float32[20]")
    )
    parts = split_prepare(func)
    assert parts.prepare is None
    assert parts.run is func


def test_a_buffer_that_inputs_reach_as_well_stays() -> None:
    func = parse(TEXT.replace("P[k, j] + 1.0", "P[k, j] + A[0, k]"))
    parts = split_prepare(func)
    assert parts.prepare is not None
    assert [p.name for p in parts.prepare.parameters] == ["B", "P"]
    assert [p.name for p in parts.run.parameters] == ["A", "D", "P", "C"]


def test_an_output_made_of_constants_is_computed_by_run() -> None:
    func = parse(
        "def f(B: constant(float32[4]), C: output(float32[4])):\n    for i in range(4):\n      "
        "  C[i] = B[i]\n"
    )
    assert split_prepare(func).prepare is None


def test_a_prefetch_of_a_constant_that_moved_is_dropped() -> None:
    text = TEXT.replace(
        "            C[i, j] = Q",
        '            prefetch(B[i, j], "read", 1)\n            C[i, j] = Q',
    )
    parts = split_prepare(parse(text))
    assert "prefetch" not in str(parts.run)
    assert str(parts.run) == str(split_prepare(parse(TEXT)).run)


def test_what_is_made_of_constants_for_nobody_goes() -> None:
    parts = split_prepare(
        parse("""
def f(X: float32[2], C: output(float32[2])):
    T = alloc(float32[1], "global")
    T[0] = 1.0
    for i in range(2):
        C[i] = X[i]
""")
    )
    assert parts.prepare is None
    assert "T" not in str(parts.run)
