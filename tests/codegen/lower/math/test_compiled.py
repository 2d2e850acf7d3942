"""The C of every instruction set, vectors and scalars, gives the bits of the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.math import ExpandMath
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse

pytestmark = pytest.mark.sampled(5)

CALLS = ("exp(X[vi])", "exp2(X[vi])", "log(X[vi])", "tanh(X[vi])", "erf(X[vi])", "gelu(X[vi])")
CALLS += ("sin(X[vi])", "cos(X[vi])", "expm1(X[vi])", "log1p(X[vi])")
CALLS += ("pow(X[vi], X[vi])", "pow(X[vi], 0.7)", "pow(X[vi], 0.75)")
EDGES = (0.0, -0.0, 1.0, -1.0, 88.5, 89.0, -87.3, -87.4, -104.0, 1e-40, 1e30, -1e30)
EDGES += (128.0, -126.5, -149.0, -150.0)
EDGES += (-12.9, -13.0, -14.2, -14.3, 5.5, 6.0)
EDGES += (np.inf, -np.inf, np.nan)
NEST = """\
def f(X: float32[128], Y: output(float32[128])):
    for i in range(8):
        for v in {loop}(16):
            with block("Y", vi=spatial(128, i * 16 + v)):
                Y[vi] = {call}
"""


@pytest.mark.needs_cc
@pytest.mark.parametrize("loop", ["range", "vectorized"])
@pytest.mark.parametrize("call", CALLS)
def test_compiled_code_has_the_bits_of_the_interpreter(call, loop, check, target) -> None:
    random = np.random.default_rng(0).uniform(-20, 20, 128 - len(EDGES))
    values = np.concatenate([EDGES, random]).astype(np.float32)
    func = parse(NEST.format(call=call, loop=loop))
    (result,) = check(func, {"X": values}, rtol=3e-6, atol=2e-38)
    (expected,) = interpret(ExpandMath(target)(func), values)
    np.testing.assert_array_equal(result, expected)
