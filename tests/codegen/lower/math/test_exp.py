"""codegen/lower/math/exp.py: the error that it promises, its range, its exceptions."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.expr import Call
from tilewright.tir.node import Node
from tilewright.tir.reference.array_expr import evaluate_expr
from tilewright.tir.visit import transform

LOWEST = {"float32": -87.33654, "float64": -708.3964185322641}
TOP = {"float32": 88.376, "float64": 709.436}
HIGHEST = {"float32": 88.72283, "float64": 709.782712893384}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_errors_stay_within_the_promise(kind, fused, expand, error_in_ulp, wider) -> None:
    exp = expand("exp", kind)
    main = np.linspace(LOWEST[kind], TOP[kind], 400_001).astype(kind)
    near = np.linspace(-1, 1, 100_001).astype(kind)
    top = np.linspace(TOP[kind], HIGHEST[kind], 50_001).astype(kind)
    usual, high = (1.2, 1.6) if fused else (1.5, 1.9)
    for x, bound in ((main, usual), (near, usual), (top, high)):
        assert error_in_ulp(exp(x, fused=fused), np.exp(wider(x))) <= bound


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_it_overflows_and_vanishes_where_it_must(kind, expand) -> None:
    exp, tiny = expand("exp", kind), np.finfo(kind).smallest_normal
    highest = np.array(HIGHEST[kind], dtype=kind)
    above = np.nextafter(highest, np.inf, dtype=kind) + np.spacing(highest) * 8
    assert np.isfinite(exp(highest[None]))[0]
    beyond = np.array([above, 2 * above, 1e30, np.inf], dtype=kind)
    assert np.isposinf(exp(beyond)).all()
    low = np.array([LOWEST[kind] * 1.001, -1000, -1e30, -np.inf], dtype=kind)
    assert exp(low).tolist() == [0, 0, 0, 0]
    assert exp(np.array([LOWEST[kind]], dtype=kind))[0] >= tiny * 0.999


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_nan_and_zero_keep_their_value(kind, expand) -> None:
    exp = expand("exp", kind)
    assert np.isnan(exp(np.array([np.nan], dtype=kind)))[0]
    assert exp(np.array([0.0, -0.0], dtype=kind)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("kind", "bias"), [("float32", 127), ("float64", 1023)])
def test_scale_is_given_exponents_of_normal_numbers(kind, bias, expand) -> None:
    exp = expand("exp", kind)

    def exponent_only(node: Node) -> Node:
        is_scale = isinstance(node, Call) and node.intrinsic.name == "scale"
        return node.arguments[1] if is_scale else node

    x = np.linspace(LOWEST[kind], 2 * HIGHEST[kind], 100_001).astype(kind)
    exponents = evaluate_expr(transform(exp.expr, exponent_only), {exp.variables[0]: x})
    assert exponents.min() >= 1 - bias
    assert exponents.max() <= bias
