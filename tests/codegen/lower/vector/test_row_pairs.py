"""Rows of products meet in pairs: the text, what stays, values by the interpreter, a refusal."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.vector.row_pairs import RowPairs
from tilewright.tir.errors import InternalError
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.text.printer import print_stmt

HEAD = """
def f(A: int8[3, 24], B: int8[3, 4, 8], C: output(int32[{rows}, 4])):
"""
WEIGHTS = (
    "reinterpret(B[{k}, ramp(0, 1, 32) // broadcast(8, 32), ramp(0, 1, 32) % broadcast(8, 32)], "
    '"int64x4")'
)


def product(row: int, k: str = "k", sums: str = "") -> str:
    own = sums or f"S{row}[()]"
    read = f'broadcast(reinterpret(A[{row}, ramp({k} * 8, 1, 8)], "int64"), 4)'
    return f"{own} = smmla({own}, {read}, {WEIGHTS.format(k=k)})"


def function(rows: int, *body: str) -> PrimFunc:
    """Sums of some rows in registers, a text between their start and what is stored."""
    lines = [
        *(f'S{row} = alloc(int32x4[()], "register")' for row in range(rows)),
        *(f"S{row}[()] = broadcast(int32({row}), 4)" for row in range(rows)),
        *body,
        *(f"C[{row}, ramp(0, 1, 4)] = S{row}[()]" for row in range(rows)),
    ]
    return parse(HEAD.format(rows=rows) + "\n".join(f"    {line}" for line in lines))


def masked(row: int) -> str:
    """A product whose last lane keeps what it has."""
    own, value = product(row).split(" = ")
    return f"{own} = select(ramp(0, 1, 4) < broadcast(3, 4), {value}, {own})"


def loop(*rows: int, last: str = "") -> list[str]:
    lines = ["for k in range(3):", *(f"    {product(row)}" for row in rows)]
    return [*lines, f"    {last}"] if last else lines


def test_two_rows_share_what_an_instruction_has_of_each() -> None:
    text = print_stmt(RowPairs()(function(2, *loop(0, 1))).body)
    inside = text.partition("for k in range(3):\n")[2].splitlines()
    columns = [
        "reinterpret(B[k, ramp("
        f'{8 * n}, 1, 8) // broadcast(8, 8), ramp({8 * n}, 1, 8) % broadcast(8, 8)], "int64")'
        for n in range(4)
    ]
    first, second = (f'reinterpret(A[{row}, ramp(k * 8, 1, 8)], "int64")' for row in (0, 1))
    rows = f"vector({first}, {first}, {second}, {second})"
    assert [line.strip() for line in inside[:2]] == [
        f"S0_{end}[()] = smmla(S0_{end}[()], {rows}, vector({a}, {b}, {a}, {b}))"
        for end, (a, b) in (("lower", columns[:2]), ("upper", columns[2:]))
    ]
    assert inside[2].strip() == "S0[()] = shuffle(S0_lower[()], S0_upper[()], 0, 1, 4, 5)"
    assert inside[3].strip() == "S1[()] = shuffle(S0_lower[()], S0_upper[()], 2, 3, 6, 7)"


BODIES = {
    "two rows": (2, loop(0, 1), 1),
    "a row that is left": (3, loop(0, 1, 2), 2),
    "one row": (1, loop(0), 1),
    "several steps without a loop": (
        2,
        [product(row, str(k)) for k in range(3) for row in (0, 1)],
        1,
    ),
    "other things between": (
        2,
        [product(0, "0"), product(1, "0"), "S1[()] = S1[()] + S0[()]", *loop(1, 0)],
        2,
    ),
    "a loop around a loop": (2, ["for h in range(2):", *(f"    {x}" for x in loop(0, 1))], 1),
    "a loop that asks for memory": (
        2,
        loop(0, 1, last='prefetch(B[k + 1, 0, 0], "read", 1)'),
        1,
    ),
    "some lanes": (2, ["for k in range(3):", *(f"    {masked(row)}" for row in (0, 1))], 1),
    "a condition": (2, ["for k in range(3):", "    if k < 2:", f"        {product(0)}"], 1),
}


@pytest.mark.parametrize("name", BODIES)
def test_values_stay_and_sums_are_taken_apart_once(name: str) -> None:
    rows, body, count = BODIES[name]
    func = function(rows, *body)
    made = RowPairs()(func)
    assert str(made).count("_lower = alloc") == count
    assert "broadcast(reinterpret" not in str(made)
    rng = np.random.default_rng(0)
    for low, high in ((-128, 127), (-128, -128), (127, 127)):
        a, b = (rng.integers(low, high, s, np.int8, endpoint=True) for s in ((3, 24), (3, 4, 8)))
        (wanted,), (found,) = interpret(func, a, b), interpret(made, a, b, checked=True)
        np.testing.assert_array_equal(found, wanted)


def test_sums_in_memory_that_a_loop_chooses_are_taken_apart_in_it() -> None:
    body = ["for k in range(3):", f"    {product(0, 'k', 'C[k, ramp(0, 1, 4)]')}"]
    func = parse(HEAD.format(rows=3) + "\n".join(f"    {x}" for x in ["C[0, 0] = int32(0)", *body]))
    text = print_stmt(RowPairs()(func).body)
    assert text.index("for k in range(3)") < text.index("_lower = alloc")


def test_a_function_without_such_products_stays() -> None:
    func = parse(
        "def f(A: int32[4], B: output(int32[4])):\n    for i in range(4):\n        B[i] = A[i]\n"
    )
    assert RowPairs()(func) is func


def test_an_operand_that_lanes_do_not_share_is_a_defect() -> None:
    text = f"S0[()] = smmla(S0[()], {WEIGHTS.format(k='0')}, {WEIGHTS.format(k='0')})"
    with pytest.raises(InternalError) as caught:
        RowPairs()(function(1, text))
    assert str(caught.value).startswith("InternalError: row_pairs: 'S0' gets smmla(S0[()], ")
    assert "expected a row that all lanes share, and columns in memory. [lower-row-pairs]" in str(
        caught.value
    )
