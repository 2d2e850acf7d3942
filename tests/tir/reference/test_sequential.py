"""tir/reference/sequential.py: chosen elements only, one rounding after the other."""

from __future__ import annotations

import numpy as np

from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.reference.definitions import definitions
from tilewright.tir.reference.sequential import dependencies, evaluate_at
from tilewright.tir.te import te


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


def test_elements_that_are_not_among_the_many_chosen_stay_zero() -> None:
    func = chain(4, 6, 3)
    (output,) = func.outputs
    listed, arrays = definitions(func), arrays_of(func)
    chosen = np.arange(output.size - 3)
    needed = dependencies(listed, {output: chosen})
    assert needed is not None
    found = evaluate_at(listed, dict(zip(func.inputs, arrays, strict=True)), needed)
    everything = {b: np.arange(b.size) for b in (*func.allocations, *func.outputs)}
    whole = evaluate_at(listed, dict(zip(func.inputs, arrays, strict=True)), everything)
    np.testing.assert_array_equal(found[output].flat[chosen], whole[output].flat[chosen])
    assert not found[output].flat[output.size - 3 :].any()


def windows(rows: int, channels: int, stride: int) -> PrimFunc:
    """Windows of three rows over the squares of a padded tensor."""
    x = te.placeholder((rows, channels), "float32", name="X")
    r, c = te.reduce_axis(3, name="r"), te.reduce_axis(channels, name="c")
    p = te.compute(
        (rows + 2, channels),
        lambda i, j: te.select(te.all_of(i >= 1, i <= rows), x[i - 1, j] * x[i - 1, j], 0.0),
        name="P",
    )
    y = te.compute(
        (rows // stride, 2),
        lambda i, j: te.sum(p[stride * i + r, c] * (1.0 + te.cast(j, "float32")), axis=(r, c)),
        name="Y",
    )
    return te.func(x, y, name="windows")


def test_what_windows_read_is_listed_for_few_and_for_all_of_them() -> None:
    for rows, channels, stride in ((8, 3, 2), (4, 512, 1)):
        func = windows(rows, channels, stride)
        (output,), (padded,) = func.outputs, func.allocations
        for chosen in (np.array([1, 2]), np.arange(output.size)):
            needed = dependencies(definitions(func), {output: chosen})
            assert needed is not None
            read = sorted({stride * (flat // 2) + r for flat in chosen for r in range(3)})
            expected = [row * channels + column for row in read for column in range(channels)]
            np.testing.assert_array_equal(needed[padded], expected)


def test_sums_of_many_points_and_steps_are_each_marked_once() -> None:
    a = te.placeholder((64, 1024), "float32", name="A")
    k = te.reduce_axis(1024, name="k")
    e = te.compute((64, 1024), lambda i, j: te.exp(a[i, j]), name="E")
    y = te.compute((64, 40), lambda i, j: te.sum(e[i, k] * e[j, k], axis=k), name="Y")
    func = te.func(a, y, name="gram")
    chosen = np.arange(40 * 40)  # rows 0 to 39, by columns 0 to 39: rows 0 to 39 of E
    needed = dependencies(definitions(func), {func.outputs[0]: chosen})
    assert needed is not None
    np.testing.assert_array_equal(needed[func.allocations[0]], np.arange(40 * 1024))
