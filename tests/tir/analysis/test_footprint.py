"""tir/analysis/footprint.py: the bytes that a loop touches while it runs once."""

from __future__ import annotations

import pytest

from tilewright.tir.analysis.footprint import footprint
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import For
from tilewright.tir.visit import statements


@pytest.mark.parametrize(
    ("line", "elements"),
    [
        ("Y[i] = X[i]", 4 + 4),
        ("Y[i] = X[i * 2]", 4 + 7),
        ("Y[i] = X[i * 3]", 4 + 8),  # not more than there are
        ("Y[i] = X[i] + X[0]", 4 + 4),  # the largest access, whichever comes first
        ("Y[i] = X[0] + X[i]", 4 + 4),
        ("Y[i] = X[i] + R[i]", 4 + 4),  # of registers nothing
        ("Y[i] = Y[i] + X[5]", 4 + 1),
    ],
)
def test_each_tensor_counts_as_the_box_around_its_largest_access(line: str, elements: int) -> None:
    func = parse(
        f"""
def f(X: float32[8], Y: output(float32[4])):
    R = alloc(float32[4], "register")
    for i in range(4):
        {line}
"""
    )
    (loop,) = (stmt for stmt in statements(func.body) if isinstance(stmt, For))
    assert footprint(loop) == 4 * elements
