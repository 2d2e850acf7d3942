"""Elements that are too high are computed in parts, to the same bits; what cannot be is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest

import tilewright as tw
from tilewright.tir.analysis.expr_size import MOST_HEIGHT, height
from tilewright.tir.errors import IRError
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.te import te
from tilewright.tir.te.te import Tensor
from tilewright.tir.visit import stores

X = te.placeholder((6,), "float32", name="X")
A = te.placeholder((4, 6), "float32", name="A")
DATA = np.linspace(-2, 3, 6, dtype=np.float32)
TABLE = np.arange(24, dtype=np.float32).reshape(4, 6)


def function(element: Callable[[Expr], Expr], *inputs: Tensor) -> PrimFunc:
    y = te.compute((6,), element, name="Y")
    return te.func(*(inputs or (X,)), y, name="f")


def tallest(func: PrimFunc) -> int:
    return max(height(store.value) for block in func.blocks for store in stores(block.body))


def rounded(value: Expr, steps: int) -> Expr:
    """A chain in which every step rounds."""
    for n in range(steps):
        value = te.maximum(value * 1.01, -1.5) if n % 2 else value + 0.1
    return value


def numbers(steps: int) -> np.ndarray:
    value = DATA
    for n in range(steps):
        value = (
            np.maximum(value * np.float32(1.01), np.float32(-1.5))
            if n % 2
            else value + np.float32(0.1)
        )
    return value


@pytest.mark.parametrize("steps", [10, 100, 5000])
def test_a_chain_of_any_length_has_the_bits_of_one_step_after_the_other(steps: int) -> None:
    func = function(lambda i: rounded(X[i], steps))
    assert tallest(func) <= MOST_HEIGHT
    assert (len(func.blocks) == 1) == (steps == 10)
    np.testing.assert_array_equal(evaluate(func, [DATA])["Y"], numbers(steps))


def test_a_part_stands_between_its_input_and_what_reads_it() -> None:
    func = function(lambda i: reduce(lambda a, b: a + b, [X[i]] * 100))
    assert [block.name for block in func.blocks] == ["Y_part", "Y"]
    assert evaluate(func, [DATA])["Y"].tolist() == reduce(np.add, [DATA] * 100).tolist()


@pytest.mark.needs_cc
def test_a_kernel_of_a_chain_has_the_bits_of_the_chain() -> None:
    kernel = tw.build(function(lambda i: rounded(X[i], 300)), strict=True)
    np.testing.assert_array_equal(kernel(DATA), numbers(300))


@pytest.mark.slow
@pytest.mark.needs_cc
def test_a_kernel_of_a_chain_of_five_thousand_steps_has_its_bits() -> None:
    kernel = tw.build(function(lambda i: rounded(X[i], 5000)), strict=True)
    np.testing.assert_array_equal(kernel(DATA), numbers(5000))


def test_a_value_that_grows_by_doubling_is_cut_before_it_is_written_out() -> None:
    def doubled(i: Expr) -> Expr:
        value: Expr = X[i]
        for _ in range(40):
            value = value + value
        return value

    np.testing.assert_array_equal(
        evaluate(function(doubled), [DATA])["Y"], DATA * np.float32(2**40)
    )


def test_parts_of_a_reduced_value_run_over_the_axes_that_they_mention() -> None:
    k = te.reduce_axis(4, name="k")
    y = te.compute((6,), lambda i: te.sum(rounded(X[i], 100) * A[k, i], axis=k), name="Y")
    func = te.func(X, A, y, name="f")
    assert [len(block.iters) for block in func.blocks] == [1, 1, 2]
    wanted = numbers(100).astype(np.float64) * TABLE.sum(axis=0)
    np.testing.assert_allclose(evaluate(func, [DATA, TABLE])["Y"], wanted, rtol=1e-6)


def test_parts_of_a_symbolic_size_keep_it() -> None:
    n = te.dim("n", 1, 6)
    x = te.placeholder((n,), "float32", name="X")
    y = te.compute((n,), lambda i: rounded(x[i], 200), name="Y")
    found = evaluate(te.func(x, y, name="f"), [DATA[:4]])["Y"]
    np.testing.assert_array_equal(found, numbers(200)[:4])


def test_a_branch_becomes_a_part_where_it_reads_nothing_outside() -> None:
    def leaky(i: Expr) -> Expr:
        value: Expr = X[i]
        for _ in range(90):
            value = te.select(value < 0, value * 0.5, value)
        return value

    func = function(leaky)
    assert tallest(func) <= MOST_HEIGHT
    wanted = np.where(DATA < 0, DATA * np.float32(0.5) ** 90, DATA)
    np.testing.assert_array_equal(evaluate(func, [DATA])["Y"], wanted)


def test_an_index_that_is_a_long_sum_is_put_in_order() -> None:
    func = function(lambda i: X[reduce(lambda a, _: a + 1, range(5000), i) - 5000])
    assert str(func) == str(function(lambda i: X[i]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("count", [17, 100, 5000])
def test_many_conditions_are_a_tree(count: int) -> None:
    everything = te.all_of(*(X[n % 6] > -3.0 for n in range(count)))
    something = te.any_of(*(X[n % 6] > 9.0 for n in range(count)))
    assert max(height(everything), height(something)) < MOST_HEIGHT
    func = function(lambda i: te.select(te.all_of(everything, ~something), X[i], 0.0))
    np.testing.assert_array_equal(evaluate(func, [DATA])["Y"], DATA)


def chosen(i: Expr) -> Expr:
    """A chain of branches that read outside but for their conditions."""
    value: Expr = X[i]
    for n in range(100):
        value = te.select(i < n % 6, X[i - n], value + 1.0)
    return value


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "branches": (
        lambda: function(chosen),
        "IRError: te.compute: the element of 'Y' is 202 levels high; expected at most 64, or parts "
        "of it that can be computed without its conditions. [te-height]\n"
        "  Hint: give parts of it a te.compute of their own; of a long chain of te.select make a "
        "tree: te.select(i < n // 2, first half, second half).",
    ),
    "tensors": (
        lambda: tw.build(te.func(X, stages(202), name="f"), "c"),
        "IRError: build: 'f' computes 201 tensors besides its outputs; expected at most 200. "
        "[build-tensors]\n"
        "  Hint: make several functions, each the input of the next; tw.compile does so with a "
        "model.\n"
        "  Hint: a te.compute may hold many operations: its expression is cut where it is high.",
    ),
}


def stages(count: int) -> Tensor:
    tensor = X
    for n in range(count):
        read = tensor
        tensor = te.compute((6,), lambda i, read=read: read[i] + 1.0, name=f"T{n}")
    return tensor


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_taken_in_parts_is_refused_by_name(case: str) -> None:
    make, text = REFUSED[case]
    with pytest.raises(IRError) as refusal:
        make()
    assert str(refusal.value) == text


@pytest.mark.needs_cc
def test_a_function_of_many_tensors_is_built() -> None:
    kernel = tw.build(te.func(X, stages(120), name="f"))
    np.testing.assert_array_equal(kernel(np.zeros(6, np.float32)), np.full(6, 120, np.float32))
