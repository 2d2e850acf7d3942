from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright import te
from tilewright.tir.analysis.decides import decides
from tilewright.tir.expr import Expr


def of(body: Callable[[Expr], Expr], kind: str = "float32") -> bool:
    x = te.placeholder((4,), kind, name="x")
    return decides(te.func(x, te.compute((4,), lambda i: body(x[i]), name="y"), name="f"))


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (lambda v: v * 2.0 + 1.0, "float32", False),
        (te.exp, "float32", False),
        (lambda v: te.maximum(v, 0.0), "float32", False),
        (lambda v: te.cast(v, "float64"), "float32", False),
        (lambda v: te.select(v < 3, v, 3), "int32", False),
        (lambda v: te.select(v < 3.0, v, 1.0), "float32", True),
        (lambda v: te.cast(v, "int32"), "float32", True),
        (te.floor, "float32", True),
        (te.round, "float32", True),
    ],
)
def test_a_function_decides_where_it_compares_floats_or_makes_whole_numbers_of_them(
    body: Callable[[Expr], Expr], kind: str, expected: bool
) -> None:
    assert of(body, kind) is expected
