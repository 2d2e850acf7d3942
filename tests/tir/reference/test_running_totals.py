"""tir/reference/running_totals.py: which scans are running totals, and that they have the values of
their steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.reference.definitions import definitions
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.reference.running_totals import running
from tilewright.tir.te import te
from tilewright.tir.te.te import Tensor

Element = Callable[[Tensor, Tensor, Expr, Expr], Expr]


def scan(element: Element, *, axis: int = 0, steps: int = 1, reverse: bool = False) -> PrimFunc:
    """A scan of a 5 by 6 tensor by an element of the state S, the input X and the indices."""
    x, s = te.placeholder((5, 6), "float32", name="X"), te.state((5, 6), "float32", name="S")
    shape = (steps, 6) if axis == 0 else (5, steps)
    first = te.compute(shape, lambda i, j: x[i, j] + 3.0, name="first")
    step = te.compute((5, 6), lambda i, j: element(s, x, i, j), name="step")
    return te.func(x, te.scan(first, step, s, axis=axis, reverse=reverse), name="scan")


TOTALS: dict[str, tuple[str, PrimFunc]] = {
    "sums": ("sum", scan(lambda s, x, i, j: s[i - 1, j] + x[i, j])),
    "products, the state behind": ("prod", scan(lambda s, x, i, j: x[i, j] * s[i - 1, j])),
    "largest along rows": (
        "max",
        scan(lambda s, x, i, j: te.maximum(s[i, j - 1], x[i, j]), axis=1),
    ),
    "smallest from the end": (
        "min",
        scan(lambda s, x, i, j: te.minimum(s[i + 1, j], x[i, j]), reverse=True),
    ),
    "sums of the elements before": ("sum", scan(lambda s, x, i, j: s[i - 1, j] + x[i - 1, j])),
}
OTHERS: dict[str, PrimFunc] = {
    "a factor": scan(lambda s, x, i, j: s[i - 1, j] * 0.5 + x[i, j]),
    "a difference": scan(lambda s, x, i, j: s[i - 1, j] - x[i, j]),
    "two steps back": scan(lambda s, x, i, j: s[i - 2, j] + x[i, j], steps=2),
    "two steps given": scan(lambda s, x, i, j: s[i - 1, j] + x[i, j], steps=2),
    "another column": scan(lambda s, x, i, j: s[i - 1, 5 - j] + x[i, j]),
    "the state twice": scan(lambda s, x, i, j: s[i - 1, j] + s[i - 1, 0]),
}


@pytest.mark.parametrize("name", TOTALS)
def test_a_step_combined_with_a_value_is_a_running_total(name: str) -> None:
    reducer, func = TOTALS[name]
    (definition,) = definitions(func)
    found = running(definition)
    assert found is not None
    assert found.reducer == reducer


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_scan_is_none(name: str) -> None:
    (definition,) = definitions(OTHERS[name])
    assert running(definition) is None


@pytest.mark.parametrize("name", [*TOTALS, *OTHERS])
def test_both_have_the_bits_of_their_steps(name: str) -> None:
    func = TOTALS[name][1] if name in TOTALS else OTHERS[name]
    x = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    np.testing.assert_array_equal(evaluate(func, [x])["S"], interpret(func, x)[0])


def test_a_plain_definition_is_none() -> None:
    x = te.placeholder((4,), "float32", name="X")
    (definition,) = definitions(te.func(x, te.compute((4,), lambda i: x[i], name="Y"), name="f"))
    assert running(definition) is None


def test_long_axes_are_evaluated_at_once() -> None:
    n = 1 << 20
    x, s = te.placeholder((n,), "float32", name="X"), te.state((n,), "float32", name="S")
    first = te.compute((1,), lambda i: x[i], name="first")
    step = te.compute((n,), lambda i: s[i - 1] + x[i], name="step")
    func = te.func(x, te.scan(first, step, s), name="sums")
    values = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    found = evaluate(func, [values])["S"]
    np.testing.assert_array_equal(found, np.add.accumulate(values))
