"""tir/sequential.py: chosen elements only, one rounding after the other."""

from __future__ import annotations

import numpy as np

from tilewright.tir import te
from tilewright.tir.definitions import definitions
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.sequential import dependencies, evaluate_at


def chain(rows: int, columns: int, steps: int) -> PrimFunc:
    """exp of a matrix product, then the sums of neighbours."""
    a = te.placeholder((rows, steps), "float32", name="A")
    b = te.placeholder((steps, columns), "float32", name="B")
    k, t = te.reduce_axis(steps, name="k"), te.reduce_axis(2, name="t")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    e = te.compute((rows, columns), lambda i, j: te.tanh(c[i, j]), name="E")
    shape = (rows, columns - 1)
    y = te.compute(shape, lambda i, j: te.sum(e[i, j + t], axis=t), name="Y")
    return te.func(a, b, y, name="chain")


def arrays_of(func: PrimFunc) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(b.shape).astype(np.float32) for b in func.inputs]


def test_only_what_the_chosen_elements_need_is_listed() -> None:
    func = chain(4, 6, 3)
    (output,) = func.outputs
    needed = dependencies(definitions(func), {output: np.array([0, 8])})
    assert needed is not None
    by_name = {buffer.name: list(flat) for buffer, flat in needed.items()}
    assert by_name == {"Y": [0, 8], "E": [0, 1, 9, 10], "C": [0, 1, 9, 10]}


def test_what_costs_more_than_the_budget_is_not_listed() -> None:
    func = chain(4, 6, 3)
    wanted = {func.outputs[0]: np.array([0, 8])}
    cost = 2 * 2 + 4 + 4 * 3
    assert dependencies(definitions(func), wanted, cost) is not None
    assert dependencies(definitions(func), wanted, cost - 1) is None


def test_values_have_the_bits_of_the_interpreter() -> None:
    for func in (chain(4, 6, 40), chain(1, 2, 300), chain(20, 30, 40)):
        arrays = arrays_of(func)
        inputs = dict(zip(func.inputs, arrays, strict=True))
        everything = {b: np.arange(b.size) for b in (*func.allocations, *func.outputs)}
        found = evaluate_at(definitions(func), inputs, everything)
        (expected,) = interpret(func, *arrays)
        c = found[next(b for b in func.allocations if b.name == "C")]
        a, b = arrays
        total = np.zeros(c.shape, dtype=np.float32)
        for k in range(a.shape[1]):
            total += a[:, k : k + 1] * b[k]
        np.testing.assert_array_equal(c, total)
        np.testing.assert_allclose(found[func.outputs[0]], expected, rtol=0, atol=3e-7)


def test_elements_that_are_not_chosen_stay_zero() -> None:
    func = chain(4, 6, 3)
    (output,) = func.outputs
    arrays = arrays_of(func)
    needed = dependencies(definitions(func), {output: np.array([7])})
    assert needed is not None
    found = evaluate_at(definitions(func), dict(zip(func.inputs, arrays, strict=True)), needed)
    (expected,) = interpret(func, *arrays)
    result = found[output].reshape(-1)
    assert list(np.flatnonzero(result)) == [7]
    np.testing.assert_allclose(result[7], expected.reshape(-1)[7], rtol=0, atol=3e-7)
