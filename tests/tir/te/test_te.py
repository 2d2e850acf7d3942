"""tir/te/te.py: from tensors to the plain loop nest; each refusal with its whole text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.dtype import BOOL, FLOAT32, INT64
from tilewright.tir.errors import IRError
from tilewright.tir.expr import Const
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.te import te
from tilewright.tir.text.printer import print_expr
from tilewright.tir.verify.verify import Stage, verify


def tensor(*shape: int, name: str = "A", dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name=name)


def matmul(m: int, n: int, k: int) -> PrimFunc:
    a, b = tensor(m, k), tensor(k, n, name="B")
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.func(a, b, c, name="matmul")


def test_a_reduction_becomes_one_block_with_its_initialisation_inside() -> None:
    assert str(matmul(3, 4, 5)) == (
        "def matmul(A: float32[3, 5], B: float32[5, 4], C: output(float32[3, 4])):\n"
        "    for i in range(3):\n"
        "        for j in range(4):\n"
        "            for k in range(5):\n"
        '                with block("C", vi=spatial(3, i), vj=spatial(4, j), vk=reduce(5, k)):\n'
        "                    with init():\n"
        "                        C[vi, vj] = 0.0\n"
        "                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"
    )
    verify(matmul(3, 4, 5), Stage.TENSOR)


def test_intermediates_are_allocated_and_constants_marked() -> None:
    x = tensor(4, name="X")
    w = te.placeholder((4,), "float32", name="W", constant=True)
    p = te.compute((4,), lambda i: x[i] * w[i], name="P")
    y = te.compute((4,), lambda i: p[i] + 1.0, name="Y")
    func = te.func(x, w, y, name="f")
    assert str(func) == (
        "def f(X: float32[4], W: constant(float32[4]), Y: output(float32[4])):\n"
        '    P = alloc(float32[4], "global")\n'
        "    for i in range(4):\n"
        '        with block("P", vi=spatial(4, i)):\n'
        "            P[vi] = X[vi] * W[vi]\n"
        "    for i in range(4):\n"
        '        with block("Y", vi=spatial(4, i)):\n'
        "            Y[vi] = P[vi] + 1.0"
    )
    assert [p.role for p in func.parameters] == ["input", "constant", "output"]


def test_names_are_made_unique_by_appending_numbers() -> None:
    a, b, c = tensor(2), tensor(2), tensor(2, name="A_1")
    y = te.compute((2,), lambda i: a[i] + b[i] + c[i], name="A")
    func = te.func(a, b, c, y, name="f")
    assert [p.name for p in func.parameters] == ["A", "A_1", "A_1_1", "A_2"]


def test_an_output_may_be_read_by_another_output() -> None:
    x = tensor(3, name="X")
    p = te.compute((3,), lambda i: x[i] * 2.0, name="P")
    q = te.compute((3,), lambda i: p[i] + 1.0, name="Q")
    func = te.func(x, q, p, name="f")
    assert not func.allocations
    assert [block.name for block in func.blocks] == ["P", "Q"]
    arrays = interpret(func, np.arange(3, dtype="f4"), checked=True)
    np.testing.assert_array_equal(arrays, [[1, 3, 5], [0, 2, 4]])


def test_axes_take_the_names_of_the_element_function_or_numbers() -> None:
    x = tensor(2, 3, 4, name="X")
    y = te.compute((2, 3, 4), lambda n, *rest: x[n, rest[0], rest[1]], name="Y")
    assert y.computation is not None
    assert [axis.name for axis in y.computation.axes] == ["n", "i0", "i1"]


def test_shapes_of_no_and_of_one_dimension_work() -> None:
    x = te.placeholder(3, "float32", name="X")
    k = te.reduce_axis(3)
    total = te.compute((), lambda: te.sum(x[k], axis=k), name="T")
    func = te.func(x, total, name="f")
    (result,) = interpret(func, np.ones(3, "f4"), checked=True)
    assert result.shape == ()
    assert result == 3


def test_a_chain_of_two_thousand_tensors_becomes_a_function() -> None:
    first = last = tensor(1)
    for number in range(2000):
        last = te.compute((1,), lambda i, t=last: t[i] + 1.0, name=f"t{number}")
    func = te.func(first, last, name="f")
    assert len(func.blocks) == 2000


REDUCERS = [
    (te.sum, np.sum, "A[vi] + X[vi, vk]", "0.0"),
    (te.prod, np.prod, "A[vi] * X[vi, vk]", "1.0"),
    (te.min, np.min, "min(A[vi], X[vi, vk])", 'float("inf")'),
    (te.max, np.max, "max(A[vi], X[vi, vk])", 'float("-inf")'),
    (te.max_any, np.max, "max_any(A[vi], X[vi, vk])", 'float("-inf")'),
]


@pytest.mark.parametrize(("reduce", "meaning", "combined", "identity"), REDUCERS)
def test_each_reducer_combines_from_its_identity(
    reduce: Callable[..., te.Expr], meaning: Callable[..., object], combined: str, identity: str
) -> None:
    x, k = tensor(3, 5, name="X"), te.reduce_axis(5, name="k")
    a = te.compute((3,), lambda i: reduce(x[i, k], axis=k), name="A")
    func = te.func(x, a, name="f")
    assert f"A[vi] = {combined}" in str(func)
    assert f"A[vi] = {identity}\n" in str(func)
    values = np.random.default_rng(0).integers(-3, 4, (3, 5)).astype("f4")
    np.testing.assert_array_equal(interpret(func, values)[0], meaning(values, axis=1))


@pytest.mark.parametrize("kind", ["int32", "uint8", "int64"])
def test_the_identities_of_integers_are_the_ends_of_their_range(kind: str) -> None:
    x, k = tensor(4, name="X", dtype=kind), te.reduce_axis(4)
    info = np.iinfo(kind)
    for reduce, value in ((te.min, info.max), (te.max, info.min)):
        y = te.compute((), lambda f=reduce: f(x[k], axis=k), name="Y")
        (result,) = interpret(te.func(x, y, name="f"), np.full(4, value, kind))
        assert result == value


def test_two_axes_reduce_in_the_order_given() -> None:
    x = tensor(2, 3, name="X")
    r, s = te.reduce_axis(2, name="r"), te.reduce_axis(3, name="s")
    y = te.compute((), lambda: te.sum(x[r, s], axis=(s, r)), name="Y")
    assert [it.var.name for it in te.func(x, y, name="f").blocks[0].iters] == ["vs", "vr"]


A, N = tensor(3, 4), tensor(3, name="N", dtype="int32")
K = te.reduce_axis(4, name="k")
C = te.compute((3, 4), lambda i, j: A[i, j] + 1.0, name="C")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (te.select(A[0, 0] < 1.0, A[0, 0], 0.0), "select(A[0, 0] < 1.0, A[0, 0], 0.0)"),
        (te.select(A[0, 0] < 1.0, 0.0, A[0, 0]), "select(A[0, 0] < 1.0, 0.0, A[0, 0])"),
        (te.cast(A[0, 0], "int32"), 'cast(A[0, 0], "int32")'),
        (te.cast(A[0, 0], "float32"), "A[0, 0]"),
        (te.maximum(A[0, 0], 0.0), "max(A[0, 0], 0.0)"),
        (te.minimum(A[0, 0], 0.0), "min(A[0, 0], 0.0)"),
        (te.maximum(0.0, A[0, 0]), "max(0.0, A[0, 0])"),
        (te.min_any(A[0, 0], 0.0), "min_any(A[0, 0], 0.0)"),
        (te.pow(2.0, A[0, 0]), "pow(2.0, A[0, 0])"),
        (7 // N[0], "int32(7) // N[0]"),
        (7 % N[0], "int32(7) % N[0]"),
        (te.eq(3, N[0]), "int32(3) == N[0]"),
        (te.pow(A[0, 0], 2.0), "pow(A[0, 0], 2.0)"),
        (te.logical_not(te.eq(N[0], 3)), "not N[0] == int32(3)"),
        (te.ne(N[0], 3), "N[0] != int32(3)"),
        (te.exp(A[0, 0]), "exp(A[0, 0])"),
        (te.log(A[0, 0]), "log(A[0, 0])"),
        (te.tanh(A[0, 0]), "tanh(A[0, 0])"),
        (te.erf(A[0, 0]), "erf(A[0, 0])"),
        (te.gelu(A[0, 0]), "gelu(A[0, 0])"),
        (te.sqrt(A[0, 0]), "sqrt(A[0, 0])"),
        (te.abs(A[0, 0]), "abs(A[0, 0])"),
        (te.round(A[0, 0]), "round(A[0, 0])"),
        (te.floor(A[0, 0]), "floor(A[0, 0])"),
        (te.const(2, "float32"), "2.0"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_each_builder_makes_its_node(expr: te.Expr, text: str) -> None:
    assert print_expr(expr) == text


def test_conditions_are_truth_values_and_constants_keep_their_type() -> None:
    assert te.eq(N[0], 3).dtype == BOOL
    assert te.all_of(N[0] < 3, N[0] >= 0).dtype == BOOL
    assert te.const(1, "int64") == Const(1, INT64)
    assert te.const(1, "float32") == Const(1.0, FLOAT32)


REFUSALS: dict[Callable[[], object], str] = {
    lambda: te.placeholder((3, -1), "float32", name="A"): (
        "IRError: te: shape (3, -1) of 'A' holds -1; expected integers of 0 or more. [te-shape]"
    ),
    lambda: te.reduce_axis(-2): (
        "IRError: te: shape (-2,) of 'k' holds -2; expected integers of 0 or more. [te-shape]"
    ),
    lambda: te.compute((3,), lambda i: 1.0, name="C"): (
        "IRError: te.compute: the element of 'C' is 1.0; expected an expression. [te-element]\n"
        "  Hint: te.const(value, dtype) makes a constant tensor."
    ),
    lambda: te.compute((3,), lambda i: te.sum(A[i, K], axis=K) * 2.0, name="C"): (
        "IRError: te.compute: 'C' has a reduction inside its expression; expected it at the top. "
        "[te-nested-reduce]\n"
        "  Hint: give the reduction a te.compute of its own and read its result; a schedule can "
        "fuse the two."
    ),
    lambda: te.compute((3, 4), lambda i: A[i, 0], name="C"): (
        "IRError: te.compute: the element function of 'C' takes 1 index; expected 2. [te-rank]\n"
        "  Hint: lambda i0, i1: ..."
    ),
    lambda: list(te.reduce_axis(4, name="k")): (
        "IRTypeError: te: Python iterates over axis 'k'; expected a reduction over it. "
        "[te-axis-iterated]\n"
        "  Hint: te.sum(x, axis=k), as te.max, te.min, te.prod, te.argmax."
    ),
    lambda: te.sum(A[0, 0]): (
        "IRError: te.sum: axis is (); expected at least one reduction axis. [te-axis-none]\n"
        "  Hint: k = te.reduce_axis(extent) makes one; axis=k or axis=(k1, k2)."
    ),
    lambda: te.sum(A[0, 0], axis=(3,)): (
        "IRError: te.sum: axis is 3; expected a reduction axis. [te-axis]\n"
        "  Hint: k = te.reduce_axis(extent) makes one; axis=k or axis=(k1, k2)."
    ),
    lambda: te.all(A[0, 0] < 1.0, A[0, 1] < 1.0): (
        "IRError: te.all: axis is A[0, 1] < 1.0; expected a reduction axis. [te-axis]\n"
        "  Hint: k = te.reduce_axis(extent) makes one; axis=k or axis=(k1, k2).\n"
        "  Hint: te.all_of(a, b) joins conditions."
    ),
    lambda: te.select(A[0, 0] < 1.0, 1.0, 2.0): (
        "IRTypeError: te.select: the operands are 1.0, 2.0; expected an expression. [te-operand]\n"
        "  Hint: an element of a tensor is an expression: A[i, j]; te.const(value, dtype) gives a "
        "number its type."
    ),
    lambda: te.exp(A): (
        "IRTypeError: te.exp: the operands are Tensor A: float32[3, 4]; expected an expression. "
        "[te-operand]\n"
        "  Hint: an element of a tensor is an expression: A[i, j]; te.const(value, dtype) gives a "
        "number its type."
    ),
    lambda: A + A: (
        "IRTypeError: te: tensors 'A' and 'A' stand where numbers are expected; expected elements. "
        "[te-tensor-operand]\n"
        '  Hint: te.compute((3, 4), lambda i, j: A[i, j] + A[i, j], name="C")'
    ),
    lambda: te.select(N[0], A[0, 0], 0.0): (
        "IRTypeError: te.select: the condition is type int32; expected an expression of type bool. "
        "[te-condition]\n"
        "  Hint: te.ne(x, 0) is the condition that x is not 0; i < n compares."
    ),
    lambda: te.all_of(N[0] < 3, True): (
        "IRTypeError: te.all_of: the condition is True; expected an expression of type bool. "
        "[te-condition]\n"
        "  Hint: te.eq(a, b) compares values, as te.ne(a, b) does; a == b and a != b compare how "
        "two expressions are written."
    ),
    lambda: te.maximum(A[0, 0], N[0]): (
        "IRError: maximum: the operands have types float32 and int32; expected one type. "
        "[expr-types]\n"
        "  Hint: te.cast(x, 'float32') converts one of them."
    ),
    lambda: te.sum(N[K] < 3, axis=K): (
        "IRError: te.sum: the operand has type bool; expected numbers. [te-number]\n"
        "  Hint: te.cast(x, 'int32') makes 0 and 1 of a truth value."
    ),
    lambda: (N[0] < 3) + (N[1] < 3): (
        "IRError: add: the operands have type bool; expected numbers. [expr-bool-operand]\n"
        "  Hint: te.all_of and te.any_of combine truth values; te.cast(x, 'int32') makes 0 and 1."
    ),
    lambda: te.exp(N[0]): (
        "IRError: te.exp: the argument has type int32; expected a float. [te-float]\n"
        "  Hint: te.cast(x, 'float32') converts it."
    ),
    lambda: te.func(C, A, name="f"): (
        "IRError: te.func: 'f' lists C, A; expected placeholders first and at least one computed "
        "tensor last. [te-func-order]"
    ),
    lambda: te.func(C, name="f"): (
        "IRError: te.func: 'f' reads placeholder 'A', which is not among its parameters. "
        "[te-func-missing]\n"
        "  Hint: te.func(A, C, name='f')"
    ),
    lambda: te.func(A, C, C, name="f"): (
        "IRError: te.func: 'f' lists 'C' twice; expected each tensor once. [te-func-twice]"
    ),
}


@pytest.mark.parametrize("build", REFUSALS, ids=[text.split("[")[-1] for text in REFUSALS.values()])
def test_what_has_no_meaning_is_refused(build: Callable[[], object]) -> None:
    with pytest.raises(IRError) as refusal:
        build()
    assert str(refusal.value) == REFUSALS[build]
