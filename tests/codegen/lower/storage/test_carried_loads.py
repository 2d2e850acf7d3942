"""What an iteration stores and the next one loads stays in a register."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.storage.carried_loads import CarriedLoads
from tilewright.schedule.proof.lowered.prove import prove_lowered
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse

HEAD = (
    "def f(X: float32[20], I: int64[20], Y: output(float32[20]), Z: output(float32[20, 16]),"
    " N: output(int8[20]), P: output(int64[20])):\n"
)


RAMP = "ramp(0, 1, 16)"


def written(*lines: str, kind: str = "range(19)") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"{HEAD}    for i in {kind}:\n{body}"


def carried(text: str) -> str:
    """The body of the function behind the pass."""
    return "\n".join(line[4:] for line in str(CarriedLoads()(parse(text))).splitlines()[1:])


def test_a_running_sum_stays_in_a_register() -> None:
    assert (
        carried(written("Y[i + 1] = Y[i] + X[i + 1]"))
        == """\
Y_last = alloc(float32[()], "register")
Y_last[()] = Y[0]
for i in range(19):
    Y_last[()] = Y_last[()] + X[i + 1]
    Y[i + 1] = Y_last[()]"""
    )


def test_vectors_and_two_values_that_need_each_other_do() -> None:
    text = carried(
        written(
            f"z: float32x16 = Z[i, {RAMP}]",
            f"Z[i + 1, {RAMP}] = z * z",
            "Y[18 - i] = Y[19 - i] + Y[19 - i]",
        )
    )
    assert (
        text
        == """\
Z_last = alloc(float32x16[()], "register")
Z_last[()] = Z[0, ramp(0, 1, 16)]
Y_last = alloc(float32[()], "register")
Y_last[()] = Y[19]
for i in range(19):
    z: float32x16 = Z_last[()]
    Z_last[()] = z * z
    Z[i + 1, ramp(0, 1, 16)] = Z_last[()]
    Y_last[()] = Y_last[()] + Y_last[()]
    Y[18 - i] = Y_last[()]"""
    )


def test_rows_that_are_apart_have_a_register_each_and_others_read_memory() -> None:
    text = carried(
        written(
            "Z[i + 1, 2] = Z[i, 2] + X[I[i]]",
            "Z[i + 1, 3] = Z[i, 3] + Z[i, 2] + Z[i + 1, 2] + Z[I[i], 3]",
        )
    )
    assert (
        text
        == """\
Z_last = alloc(float32[()], "register")
Z_last[()] = Z[0, 2]
Z_last_1 = alloc(float32[()], "register")
Z_last_1[()] = Z[0, 3]
for i in range(19):
    Z_last[()] = Z_last[()] + X[I[i]]
    Z[i + 1, 2] = Z_last[()]
    Z_last_1[()] = Z_last_1[()] + Z[i, 2] + Z[i + 1, 2] + Z[I[i], 3]
    Z[i + 1, 3] = Z_last_1[()]"""
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("Y[i + 1] = Y[i + 1] + X[i]",),  # of this iteration
        ("Y[i] = Y[i + 1] + X[i]",),  # of none before
        ("Y[0] = Y[0] + X[i]",),  # no running value, but a sum
        ("Y[i + 1] = select(1 <= i, Y[i], 0.0)",),  # the first iteration may not load
        ("Y[i + 1] = X[i]", "Z[i, 0] = Y[i]"),  # behind the store alone
        ("Y[i + 1] = Y[i]", "Y[i] = X[i]"),  # two stores
        ("Y[i + 1] = Y[I[i]]",),  # of any iteration
        ("j: int64 = I[i]", "Y[i + j + 1] = Y[i + j]"),  # a place that is another one each time
        ("P[i + P[i] + 1] = P[i - 1 + P[i - 1] + 1]",),  # a place that its own data decide
        ("Y[i + 1] = select(1 <= I[i] and Y[i] < 1.0, 2.0, 3.0)",),  # likewise as the first one
        (f"Z[i + 1, {RAMP}] = Z[i, ramp(0, 0, 16)]",),  # other lanes
        (
            f"Z[i + 1, {RAMP}] = masked(Z[i, {RAMP}], {RAMP} < broadcast(i, 16),"
            " broadcast(0.0, 16))",
        ),
        ("N[i + 1] = N[i]",),  # a variable would hold more bits
        ("if i < 5:", "    Y[i + 1] = Y[i] + X[i]"),
        (f"masked(Z[i + 1, {RAMP}], {RAMP} < broadcast(i, 16)) = Z[i, {RAMP}]",),
    ],
)
def test_what_is_no_running_value_stays_in_memory(lines: tuple[str, ...]) -> None:
    func = parse(written(*lines))
    assert CarriedLoads()(func) is func


def test_a_register_stays_what_it_is() -> None:
    text = (
        HEAD
        + """\
    R = alloc(float32[20], "register")
    R[0] = 0.0
    for i in range(19):
        R[i + 1] = R[i] + X[i]
    Y[0] = R[19]
"""
    )
    func = parse(text)
    assert CarriedLoads()(func) is func


@pytest.mark.parametrize("kind", ["parallel(19)", "range(1)"])
def test_other_loops_stay(kind: str) -> None:
    func = parse(written("Y[i + 1] = Y[i]", kind=kind))
    assert CarriedLoads()(func) is func


def test_values_are_the_same_and_the_code_is_proved() -> None:
    text = """\
def f(X: float32[3, 20], Y: output(float32[3, 20]), Z: output(int64[3, 20])):
    for p in parallel(3):
        Y[p, 0] = X[p, 0]
        Z[p, 19] = 1
        for i in range(19):
            x: float32 = X[p, i + 1]
            Y[p, i + 1] = select(Y[p, i] < x, Y[p, i] * 0.5 + Y[p, i], Y[p, i]) - x
            Z[p, 18 - i] = Z[p, 19 - i] * 3 + cast(Y[p, i + 1], "int64")
"""
    func = parse(text)
    made = CarriedLoads()(func)
    assert str(made).count("_last = alloc") == 2
    x = np.random.default_rng(0).standard_normal((3, 20), np.float32)
    for one, other in zip(interpret(func, x), interpret(made, x), strict=True):
        np.testing.assert_array_equal(one, other)
    assert prove_lowered(made).status == "proved"
