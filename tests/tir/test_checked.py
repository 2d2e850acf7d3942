"""Checked indices: what te.func makes of them, in every evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tir.checked import checks_of, has_checks, without_checks
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.error_bound import reference
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.te import te
from tilewright.tir.text.canonical import workload_key
from tilewright.tir.text.equal import equal
from tilewright.tir.text.printer import print_expr
from tilewright.tir.verify.verify import Stage, verify

TABLE = te.placeholder((10, 3), "float32", name="T")
TOKENS = te.placeholder((4,), "int32", name="N")


def embedding(what: str = "token") -> PrimFunc:
    y = te.compute((4, 3), lambda i, j: TABLE[te.checked(TOKENS[i], 10, what=what), j], name="Y")
    return te.func(TABLE, TOKENS, y, name="embedding")


def test_a_check_is_one_more_output_and_the_index_is_clamped() -> None:
    text = """\
def embedding(T: float32[10, 3], N: int32[4], Y: output(float32[4, 3]), Y_check: check(uint64[()], 10, "token")):
    for i in range(4):
        for j in range(3):
            with block("Y", vi=spatial(4, i), vj=spatial(3, j)):
                Y[vi, vj] = T[max(min(cast(N[vi], "int64"), 9), 0), vj]
    for i in range(4):
        with block("Y_check", vi=reduce(4, i)):
            with init():
                Y_check[()] = uint64(0)
            Y_check[()] = max(Y_check[()], cast(cast(N[vi], "int64"), "uint64"))"""  # noqa: E501
    func = embedding()
    verify(func, Stage.TENSOR)
    assert str(func) == text
    assert equal(parse(text), func)
    assert parse(text).parameters[-1].check == func.parameters[-1].check


def test_what_a_check_is_called_is_a_name_its_range_is_not() -> None:
    one, other = embedding("token"), embedding('the "word"')
    assert equal(one, other)
    assert workload_key(one) == workload_key(other)
    assert equal(parse(str(other)), other)
    assert not equal(one, parse(str(one).replace("uint64[()], 10", "uint64[()], 11")))


def test_interpreter_evaluator_and_reference_agree_on_table_and_word() -> None:
    func = embedding()
    rng = np.random.default_rng(0)
    table = rng.standard_normal((10, 3)).astype(np.float32)
    for tokens, word in (([0, 9, 4, 4], 9), ([0, 10, 4, 11], 11), ([0, 3, -1, 12], 2**64 - 1)):
        given = np.array(tokens, np.int32)
        expected = table[np.clip(given, 0, 9)]
        y, check = interpret(func, table, given, checked=True)
        assert np.array_equal(y, expected)
        assert int(check) == word
        found = evaluate(func, [table, given])
        assert np.array_equal(found["Y"], expected)
        assert int(found["Y_check"]) == word
        assert reference(func, [table, given]).compare([y, check])


def test_a_branch_that_is_not_taken_reports_nothing() -> None:
    def element(i: te.Var, j: te.Var) -> te.Expr:
        row = TABLE[te.checked(TOKENS[i], 10), j]
        return te.select(TOKENS[i] < 0, 0.0, row)

    y = te.compute((4, 3), element, name="Y")
    func = te.func(TABLE, TOKENS, y, name="padded")
    table = np.ones((10, 3), np.float32)
    y_, check = interpret(func, table, np.array([-7, 2, -1, 3], np.int32))
    assert int(check) == 3
    assert y_[:, 0].tolist() == [0, 1, 0, 1]
    assert int(interpret(func, table, np.array([-7, 2, 10, 3], np.int32))[1]) == 10


def test_conditions_guard_what_stands_behind_them() -> None:
    i = te.Var("i")
    inner = te.checked(TOKENS[i], 10)
    last = te.all_of(TOKENS[i] >= 0, TABLE[inner, 0] < 1.0)
    first = te.any_of(TOKENS[i] < 0, TABLE[inner, 0] < 1.0)
    for condition, text in ((last, "int32(0) <= N[i]"), (first, "not N[i] < int32(0)")):
        ((check, used),) = checks_of(condition)
        assert check.extent == 10
        assert print_expr(used).startswith(f"select({text}, cast(")


def test_a_checked_index_inside_of_another_is_a_check_of_its_own() -> None:
    order = te.placeholder((6,), "int64", name="O")
    y = te.compute(
        (4, 3),
        lambda i, j: TABLE[te.checked(order[te.checked(TOKENS[i], 6, what="slot")], 10), j],
        name="Y",
    )
    func = te.func(TABLE, TOKENS, order, y, name="twice")
    assert [p.check.what for p in func.parameters if p.check] == ["index", "slot"]
    table = np.zeros((10, 3), np.float32)
    _, outer, inner = interpret(
        func, table, np.array([0, 1, 2, 9], np.int32), np.array([0, 1, 2, 3, 4, 77])
    )
    assert (int(outer), int(inner)) == (77, 9)  # the clamped slot is the last, which holds 77


def test_checks_inside_of_a_reduction_cover_its_axis() -> None:
    k = te.reduce_axis(4, name="k")
    y = te.compute((3,), lambda j: te.sum(TABLE[te.checked(TOKENS[k], 10), j], axis=k), name="Y")
    func = te.func(TABLE, TOKENS, y, name="bag")
    table = np.ones((10, 3), np.float32)
    total, word = interpret(func, table, np.array([1, 2, 3, 55], np.int32))
    assert total.tolist() == [4, 4, 4]
    assert int(word) == 55


def test_one_check_for_an_index_that_is_used_twice_and_none_where_nothing_is_computed() -> None:
    def twice(i: te.Var, j: te.Var) -> te.Expr:
        row = te.checked(TOKENS[i], 10)
        return TABLE[row, j] * TABLE[row, 2 - j]

    func = te.func(TABLE, TOKENS, te.compute((4, 3), twice, name="Y"), name="f")
    assert len(func.outputs) == 2
    nothing = te.compute((0, 3), lambda i, j: TABLE[te.checked(TOKENS[i], 10), j], name="Y")
    assert len(te.func(TABLE, TOKENS, nothing, name="f").outputs) == 1


def test_an_index_without_an_axis_is_checked_once() -> None:
    y = te.compute((3,), lambda j: TABLE[te.checked(TOKENS[2], 10), j], name="Y")
    func = te.func(TABLE, TOKENS, y, name="one")
    assert func.block("Y_check").iters == ()
    table = np.ones((10, 3), np.float32)
    assert int(interpret(func, table, np.array([0, 0, 30, 0], np.int32))[1]) == 30


def test_a_check_of_an_intermediate_tensor_is_an_output_of_the_function() -> None:
    row = te.compute((4, 3), lambda i, j: TABLE[te.checked(TOKENS[i], 10), j], name="R")
    y = te.compute((4, 3), lambda i, j: row[i, j] * 2.0, name="Y")
    func = te.func(TABLE, TOKENS, y, name="scaled")
    assert [p.name for p in func.parameters] == ["T", "N", "Y", "R_check"]


def test_plain_expressions_have_no_checks_and_stay_the_same_object() -> None:
    i = te.Var("i")
    plain = TABLE[te.clamp_index(TOKENS[i], 10), 0]
    assert not has_checks(plain)
    assert without_checks(plain) is plain
    assert checks_of(plain) == ()
    checked = TABLE[te.checked(TOKENS[i], 10), 0]
    assert print_expr(checked) == 'T[checked(cast(N[i], "int64"), 10, "index"), 0]'
    assert without_checks(checked) == plain


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint64", "int64"])
def test_every_integer_type_is_checked_and_clamped(kind: str) -> None:
    tokens = te.placeholder((4,), kind, name="N")
    y = te.compute((4, 3), lambda i, j: TABLE[te.checked(tokens[i], 10), j], name="Y")
    func = te.func(TABLE, tokens, y, name="f")
    given = np.array([0, 9, 10, 100], kind)
    table = np.arange(30, dtype=np.float32).reshape(10, 3)
    out, word = interpret(func, table, given)
    assert int(word) == 100
    assert np.array_equal(out, table[[0, 9, 9, 9]])


def test_what_is_checked_against_a_size_that_a_call_decides_counts_where_it_lies_outside() -> None:
    n = te.dim("n", 1, 10)
    table = te.placeholder((n,), "float32", name="T")
    y = te.compute((4,), lambda i: table[te.checked(TOKENS[i], n, what="token")], name="Y")
    text = """\
def pick(n: dim(1, 10), T: float32[n], N: int32[4], Y: output(float32[4]), Y_check: check(uint64[()], "n", "token")):
    for i in range(4):
        with block("Y", vi=spatial(4, i)):
            Y[vi] = T[max(min(cast(N[vi], "int64"), n - 1), 0)]
    for i in range(4):
        with block("Y_check", vi=reduce(4, i)):
            with init():
                Y_check[()] = uint64(0)
            Y_check[()] = max(Y_check[()], select(0 <= cast(N[vi], "int64") and cast(N[vi], "int64") < n, uint64(0), cast(cast(N[vi], "int64"), "uint64")))"""  # noqa: E501
    func = te.func(table, TOKENS, y, name="pick")
    verify(func, Stage.TENSOR)
    assert str(func) == text
    assert equal(parse(text), func)
    assert equal(parse(text.replace('"n"', '"rows"')), func)  # a name, as that of the value
    assert workload_key(parse(text.replace('"n"', '"rows"'))) == workload_key(func)
    assert not equal(parse(text.replace('"n"', "10")), func)
    rows = np.arange(10, dtype=np.float32)
    for size, tokens, word in ((10, [9, 0, 3, 9], 0), (3, [2, 3, 9, 0], 9), (3, [7, -1, 0, 0], -1)):
        given = np.array(tokens, np.int32)
        found, worst = interpret(func, rows[:size], given, checked=True)
        assert found.tolist() == np.clip(given, 0, size - 1).tolist()
        assert int(worst) == word & (1 << 64) - 1
        assert reference(func, [rows[:size], given]).compare([found, worst])


def test_any_value_is_outside_of_an_axis_without_elements() -> None:
    n = te.dim("n", 0, 10)
    table = te.placeholder((n,), "float32", name="T")

    def element(i: te.Var) -> te.Expr:
        return te.select(n > 0, table[te.checked(TOKENS[i], n)], -1.0)

    func = te.func(table, TOKENS, te.compute((4,), element, name="Y"), name="pick")
    for size, word in ((0, (1 << 64) - 1), (1, 0)):
        given, rows = np.zeros(4, np.int32), np.ones(size, np.float32)
        found, worst = interpret(func, rows, given, checked=True)
        assert found.tolist() == [1.0 if size else -1.0] * 4
        assert int(worst) == word
