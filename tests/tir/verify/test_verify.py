"""tir/verify/verify.py: what each stage admits, and each broken invariant named with its text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import BFLOAT16, FLOAT32, INT32, INT64, UINT64, dtype
from tilewright.tir.expr import EQ, TRUE, Add, Call, Cast, Const, Expr, Let, Select, Var, const
from tilewright.tir.func import PrimFunc
from tilewright.tir.index_check import IndexCheck
from tilewright.tir.intrinsics import EXP
from tilewright.tir.lowered import Ramp, Reinterpret
from tilewright.tir.parsing.parser import parse, parse_stmt
from tilewright.tir.stmt import (
    Alloc,
    Block,
    For,
    ForKind,
    LetStmt,
    Parameter,
    Seq,
    Store,
)
from tilewright.tir.te import te
from tilewright.tir.verify.verify import SPECS, Stage, VerificationError, verify
from tilewright.tir.visit import transform

TENSOR = """
def f(A: float32[8], C: output(float32[8])):
    for i in range(8):
        with block("C", v=spatial(8, i)):
            C[v] = exp(A[v])
"""
SCHEDULED = """
def f(A: float32[8], C: output(float32[8])):
    R = alloc(float32[8], "register", origin=A)
    for i in parallel(3):
        prefetch(A[i * 3 + 3], "read", 1)
        for j in vectorized(3, tail="mask"):
            with block("R", v=spatial(8, i * 3 + j), copy="A"):
                where(i * 3 + j < 8)
                R[v] = A[v]
        for j in unrolled(3):
            if i < 3:
                with block("C", v=spatial(8, i * 3 + j), recomputed=True):
                    where(i * 3 + j < 8)
                    C[v] = exp(R[v])
"""
CONTRACTED = TENSOR.replace("exp(A[v])", "fma(A[v], A[v], 1.0)")
NEST = """
def f(A: float32[8], C: output(float32[8])):
    for i in parallel(8):
        with block("C_init", v=spatial(8, i), init="C"):
            C[v] = 0.0
    barrier()
    for i in range(8):
        with block("C", v=spatial(8, i)):
            C[v] = fma(A[v], A[v], C[v])
"""
LOWERED = """
def f(A: float32[8], C: output(float32[8])):
    r = alloc(float32x4[()], "register")
    for i in parallel(2):
        on: boolx4 = ramp(i * 4, 1, 4) < broadcast(7, 4)
        r[()] = masked(A[ramp(i * 4, 1, 4)], on, broadcast(0.0, 4))
        bits: int32x4 = reinterpret(r[()], "int32x4")
        masked(C[ramp(i * 4, 1, 4)], on) = select(on, reinterpret(bits, "float32x4"), r[()])
"""
TEXTS = {
    Stage.TENSOR: TENSOR,
    Stage.SCHEDULED: SCHEDULED,
    Stage.CONTRACTED: CONTRACTED,
    Stage.NEST: NEST,
    Stage.LOWERED: LOWERED,
}


@pytest.mark.parametrize("stage", Stage, ids=lambda stage: stage.value)
def test_each_stage_admits_its_own_functions(stage: Stage) -> None:
    verify(parse(TEXTS[stage]), stage)


@pytest.mark.parametrize("stage", Stage, ids=lambda stage: stage.value)
def test_each_stage_refuses_the_functions_of_the_stages_after_it(stage: Stage) -> None:
    order = list(Stage)
    for later in order[order.index(stage) + 1 :]:
        with pytest.raises(VerificationError):
            verify(parse(TEXTS[later]), stage)


def test_a_tensor_function_is_a_schedule_that_does_nothing() -> None:
    verify(parse(TENSOR), Stage.SCHEDULED)
    assert SPECS[Stage.TENSOR].nodes < SPECS[Stage.SCHEDULED].nodes


def test_what_te_makes_is_of_stage_tensor() -> None:
    a = te.placeholder((5, 7), "float32", name="A")
    k = te.reduce_axis(7)
    c = te.compute((5,), lambda i: te.max(a[i, k], axis=k), name="C")
    d = te.compute((5,), lambda i: te.select(c[i] > 0, c[i], te.exp(c[i])), name="D")
    verify(te.func(a, d, name="f"), Stage.TENSOR)


HINT = "\n  Hint: this is a defect of tilewright; please report it with the program that led here."
I = Var("i")  # noqa: E741
A, C = Buffer("A", FLOAT32, (8,)), Buffer("C", FLOAT32, (8,))
ZERO = const(0, INT64)


def message(func: PrimFunc, stage: Stage) -> str:
    with pytest.raises(VerificationError) as caught:
        verify(func, stage)
    text = str(caught.value)
    assert text.startswith("VerificationError: verify: ")
    assert text.endswith(HINT)
    return text.removeprefix("VerificationError: verify: ").removesuffix(HINT)


def function(body: object, *parameters: Parameter) -> PrimFunc:
    both = (Parameter(A, "input"), Parameter(C, "output"))
    return PrimFunc("f", parameters or both, body)  # type: ignore[arg-type]


def storing(value: Expr, index: Expr = ZERO, mask: Expr | None = None) -> PrimFunc:
    return function(Store(C, (index,), value, mask))


def refused(text: str, stage: Stage) -> str:
    return message(parse(text), stage)


def test_a_node_of_another_stage_is_named_with_its_text() -> None:
    assert refused(TENSOR.replace("exp(A[v])", "fma(A[v], A[v], 1.0)"), Stage.SCHEDULED) == (
        "'fma(A[v], A[v], 1.0)' is a node Fma, "
        "which stage scheduled does not admit. [verify-node]\n"
        "  in f, stage scheduled:\n"
        "      C[v] = fma(A[v], A[v], 1.0)"
    )


def test_long_statements_are_shown_by_their_first_lines() -> None:
    assert refused(NEST, Stage.LOWERED) == (
        '\'with block("C_init", v=spatial(8, i), init="C"):\' is a node Block, '
        "which stage lowered does not admit. [verify-node]\n"
        "  in f, stage lowered:\n"
        '      with block("C_init", v=spatial(8, i), init="C"):\n'
        "          C[v] = 0.0"
    )
    many = function(Seq((Store(C, (ZERO,), const(0.0, FLOAT32)),) * 7), Parameter(A, "input"))
    assert message(many, Stage.TENSOR).endswith("      ...")


def test_parameters_need_roles_and_an_output_at_the_end() -> None:
    store = Store(C, (ZERO,), const(0.0, FLOAT32))
    assert message(function(store, Parameter(C, "input")), Stage.TENSOR) == (
        "the parameters have roles input; "
        "expected inputs and constants, then at least one output. [verify-parameter]\n"
        "  in f, stage tensor:\n"
        "      C[0] = 0.0"
    )
    assert message(
        function(store, Parameter(C, "output"), Parameter(A, "input")), Stage.TENSOR
    ) == (
        "the parameters have roles output, input; expected outputs last. [verify-parameter-order]\n"
        "  in f, stage tensor:\n"
        "      C[0] = 0.0"
    )


def test_checks_come_after_the_results() -> None:
    word = Buffer("W", UINT64, ())
    check = Parameter(word, "output", IndexCheck("token", 8))
    store = Store(C, (ZERO,), const(0.0, FLOAT32))
    for parameters in ((check, Parameter(C, "output")), (check,)):
        assert message(function(store, *parameters), Stage.TENSOR) == (
            "a check stands among the results; expected results, then checks. "
            "[verify-check-order]\n"
            "  in f, stage tensor:\n"
            "      C[0] = 0.0"
        )


def test_variables_are_bound_before_use_and_once() -> None:
    assert message(storing(const(0.0, FLOAT32), Var("j")), Stage.LOWERED) == (
        "variable 'j' is used where nothing binds it. [verify-variable]\n"
        "  in f, stage lowered:\n"
        "      C[j] = 0.0"
    )
    loop = For(I, 8, ForKind.SERIAL, Store(C, (I,), Load(A, (I,))))
    assert message(function(Seq((loop, loop))), Stage.LOWERED) == (
        "variable 'i' is bound twice. [verify-bound]\n"
        "  in f, stage lowered:\n"
        "      for i in range(8):\n"
        "          C[i] = A[i]"
    )
    after = Seq((loop, Store(C, (I,), const(0.0, FLOAT32))))
    assert "variable 'i' is used where nothing binds it" in message(function(after), Stage.LOWERED)
    hidden = Let(I, ZERO, I)
    twice = storing(Load(A, (Add(hidden, I),)))
    assert "variable 'i' is used where nothing binds it" in message(twice, Stage.LOWERED)


def test_block_variables_do_not_reach_the_bindings() -> None:
    text = TENSOR.replace("spatial(8, i)", "spatial(8, i), w=spatial(8, i)")
    func = parse(text)
    block = func.blocks[0]
    crossed = replace(block, bindings=(block.bindings[0], block.iters[0].var))
    body = func.with_body(replace(func.body, body=crossed))  # type: ignore[type-var]
    assert "variable 'v' is used where nothing binds it" in message(body, Stage.TENSOR)


def test_buffers_are_declared_around_their_use_and_once() -> None:
    other = Buffer("T", FLOAT32, (8,))
    assert message(storing(Load(other, (ZERO,))), Stage.LOWERED) == (
        "buffer 'T' is used where it is not declared. [verify-buffer]\n"
        "  in f, stage lowered:\n"
        "      C[0] = T[0]"
    )
    store = Store(C, (ZERO,), const(0.0, FLOAT32))
    assert message(function(Alloc(C, store)), Stage.LOWERED) == (
        "buffer 'C' is declared twice. [verify-declared]\n"
        "  in f, stage lowered:\n"
        '      C = alloc(float32[8], "global")\n'
        "      C[0] = 0.0"
    )
    staged = Buffer("R", FLOAT32, (8,), "register", other)
    verify(function(Alloc(staged, store)), Stage.NEST)  # folding may have shared T's storage
    assert message(function(Alloc(staged, store)), Stage.SCHEDULED) == (
        "buffer 'R' stages 'T', which is not in scope. [verify-origin]\n"
        "  in f, stage scheduled:\n"
        '      R = alloc(float32[8], "register", origin=T)\n'
        "      C[0] = 0.0"
    )


def test_loops_have_kinds_tails_and_extents_of_their_stage() -> None:
    assert refused(TENSOR.replace("range", "parallel"), Stage.TENSOR) == (
        "loop 'i' is parallel, which stage tensor does not admit. [verify-loop]\n"
        "  in f, stage tensor:\n"
        "      for i in parallel(8):\n"
        '          with block("C", v=spatial(8, i)):\n'
        "              C[v] = exp(A[v])"
    )
    tail = NEST.replace("range(8)", 'range(8, tail="guard")')
    assert "loop 'i' is serial with tail guard" in refused(tail, Stage.NEST)
    negative = For(I, -1, ForKind.SERIAL, Store(C, (I,), const(0.0, FLOAT32)))
    assert message(function(negative), Stage.LOWERED) == (
        "loop 'i' is int64 and has extent -1; expected int64 and 0 or more. [verify-extent]\n"
        "  in f, stage lowered:\n"
        "      for i in range(-1):\n"
        "          C[i] = 0.0"
    )


def test_barriers_stand_at_the_root() -> None:
    text = NEST.replace("    barrier()\n", "").replace(
        "            C[v] = 0.0", "            C[v] = 0.0\n        barrier()"
    )
    assert refused(text, Stage.NEST).startswith("a barrier stands inside loop 'i' of threads;")


@pytest.mark.parametrize(
    ("stage", "old", "new", "problem"),
    [
        (Stage.TENSOR, '"C", v', '"C", recomputed=True, v', "a predicate or mark is not admitted"),
        (Stage.TENSOR, '"C", v', '"C_1", init="C", v', "role init is not admitted"),
        (Stage.SCHEDULED, '"C", v', '"C", family="", v', "it belongs to no family"),
    ],
)
def test_blocks_have_roles_and_marks_of_their_stage(
    stage: Stage, old: str, new: str, problem: str
) -> None:
    assert f": {problem}. [verify-block]\n" in refused(TENSOR.replace(old, new), stage)


def test_an_init_is_placed_before_the_nest() -> None:
    text = TENSOR.replace(
        "            C[v] =",
        "            with init():\n                C[v] = 0.0\n            C[v] =",
    )
    verify(parse(text), Stage.TENSOR)
    assert refused(text, Stage.NEST) == (
        "block 'C': its init is not placed. [verify-block]\n"
        "  in f, stage nest:\n"
        '      with block("C", v=spatial(8, i)):\n'
        "          with init():\n"
        "              C[v] = 0.0\n"
        "          C[v] = exp(A[v])"
    )


def test_names_of_blocks_are_unique_in_a_schedule_and_need_not_be_in_a_nest() -> None:
    text = TENSOR + TENSOR.split("\n", 2)[2]
    assert "block 'C': another block has this name" in refused(text, Stage.SCHEDULED)
    verify(parse(text), Stage.NEST)


def test_blocks_have_one_integer_binding_per_variable_and_store_alone() -> None:
    func = parse(TENSOR)
    block = func.blocks[0]

    def with_block(new: Block) -> PrimFunc:
        return func.with_body(replace(func.body, body=new))  # type: ignore[type-var]

    missing = with_block(replace(block, bindings=()))
    assert message(missing, Stage.TENSOR) == (
        "block 'C' has 1 iteration variables and 0 bindings. [verify-bindings]\n"
        "  in f, stage tensor:\n"
        "      C[v] = exp(A[v])"
    )
    wrong = with_block(replace(block, bindings=(const(0.0, FLOAT32),)))
    assert message(wrong, Stage.TENSOR) == (
        "block 'C' binds '0.0', of type float32; expected an integer. [verify-binding]\n"
        "  in f, stage tensor:\n"
        '      with block("C", v=spatial(8, 0.0)):\n'
        "          C[v] = exp(A[v])"
    )
    looping = with_block(replace(block, body=For(I, 1, ForKind.SERIAL, block.body)))
    assert message(looping, Stage.TENSOR) == (
        "block 'C' does more than store; expected stores alone. [verify-body]\n"
        "  in f, stage tensor:\n"
        '      with block("C", v=spatial(8, i)):\n'
        "          for i_1 in range(1):\n"
        "              C[v] = exp(A[v])"
    )


def test_conditions_are_truth_values() -> None:
    assert refused(
        TENSOR.replace("exp", "exp")
        .replace("        with", "        if i:\n          with")
        .replace("            C[v]", "              C[v]"),
        Stage.SCHEDULED,
    ) == (
        "condition 'i' is int64; expected bool. [verify-condition]\n"
        "  in f, stage scheduled:\n"
        "      if i:\n"
        '          with block("C", v=spatial(8, i)):\n'
        "              C[v] = exp(A[v])"
    )


def test_vectors_and_masks_belong_to_lowered_code() -> None:
    func = storing(const(0.0, FLOAT32), ZERO, TRUE)
    verify(func, Stage.LOWERED)
    assert message(func, Stage.NEST) == (
        "the access to 'C' has a mask, which stage nest does not admit. [verify-mask]\n"
        "  in f, stage nest:\n"
        "      masked(C[0], True) = 0.0"
    )
    wide = Const(0.0, FLOAT32.with_lanes(4))
    assert message(storing(wide), Stage.NEST) == (
        "'float32x4(0.0)' is float32x4; stage nest admits scalars only. [verify-lanes]\n"
        "  in f, stage nest:\n"
        "      C[0] = float32x4(0.0)"
    )


RAMP = Ramp(ZERO, 1, 4)
X4 = Const(0.0, FLOAT32.with_lanes(4))


@pytest.mark.parametrize(
    ("func", "problem"),
    [
        (storing(Load(A, ())), "'A' has 1 dimensions; expected as many indices, got 0"),
        (storing(Load(A, (X4,))), "an index of 'A' is float32x4; expected an integer"),
        (storing(X4), "'C' stores float32, and the value is float32x4"),
        (storing(const(0, INT32)), "'C' stores float32, and the value is int32"),
        (storing(X4, RAMP, TRUE), "the mask is bool; expected boolx4"),
        (
            storing(Load(A, (ZERO,), None, const(0.0, FLOAT32))),
            "the load of 'A' has a value for lanes that are off, and no mask",
        ),
        (
            storing(Load(A, (ZERO,), TRUE, const(0, INT64))),
            "the lanes that are off have type int64; expected float32",
        ),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_accesses_fit_their_buffer(func: PrimFunc, problem: str) -> None:
    assert message(func, Stage.LOWERED).startswith(f"{problem}. [verify-access]\n  in f, ")


def test_lanes_of_indices_agree() -> None:
    table = Buffer("T", FLOAT32, (8, 8))
    load = Load(table, (RAMP, Ramp(ZERO, 1, 8)))
    func = function(
        Store(C, (Ramp(ZERO, 1, 8),), load), Parameter(table, "input"), Parameter(C, "output")
    )
    assert "the indices of 'T' have lanes [4, 8]; expected one number" in message(
        func, Stage.LOWERED
    )


F0, I0, J0 = const(0.0, FLOAT32), const(0, INT32), ZERO
H0 = const(0.0, BFLOAT16)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (Add(F0, Const(0, INT32)), "the operands have types float32 and int32; expected one type"),
        (Add(TRUE, TRUE), "the operands are bool; expected numbers"),
        (Select(F0, F0, F0), "the condition is float32; expected bool"),
        (Select(TRUE, F0, I0), "the branches have types float32 and int32; expected one type"),
        (Reinterpret(J0, FLOAT32), "the value is int64; expected 32 bits"),
        (Reinterpret(H0, INT32), "the value is bfloat16; expected 32 bits"),
        (Reinterpret(F0, dtype("int4")), "the value is float32; expected 8 bits"),
        (
            Add(H0, H0),
            "the operands are bfloat16, which is only stored; expected a type to compute with",
        ),
        (
            Select(EQ(H0, H0), F0, F0),
            "the operands are bfloat16, which is only stored; expected a type to compute with",
        ),
        (Call(EXP, (H0,)), "the operands are bfloat16; expected floats of one type"),
        (Cast(X4, FLOAT32), "the value is float32x4; expected 1 lanes"),
        (Call(EXP, (I0,)), "the operands are int32; expected floats of one type"),
        (Call(EXP, (F0, F0)), "expected 1 arguments, got 2"),
        (
            Let(Var("x", INT32), F0, F0),
            "the variable and its value have types int32 and float32; expected one type",
        ),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_operands_have_one_type(value: Expr, problem: str) -> None:
    text = message(storing(value), Stage.LOWERED)
    assert f"' {problem}. [verify-type]\n  in f, stage lowered:\n      C[0] = " in text


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("1.0 // A[0]", "the operands are float32; expected integers"),
        ('cast(4 / 2, "float32")', "the operands are int64; expected floats"),
        ("select(not 3 == 4 and 3, A[0], A[1])", "the operands have types bool and int64"),
        ("select(3 or True, A[0], A[1])", "an operand is int64; expected bool"),
        ("select(not 3, A[0], A[1])", "the operand is int64; expected bool"),
        (
            "fma(A[0], A[1], 3)",
            "the operands are float32, float32, int64; expected floats of one type",
        ),
        ("A[ramp(A[0], 1, 4)]", "the base is float32; expected one integer"),
        ("broadcast(broadcast(A[0], 4), 4)", "the value is float32x4; expected 1 lanes"),
        (
            "lanes(broadcast(A[0], 4), 3, 2)",
            "the value is float32x4; it has no 2 lanes from lane 3 on",
        ),
    ],
)
def test_operators_have_operands_of_their_kind(value: str, problem: str) -> None:
    store = parse_stmt(f"C[0] = {value}", {"A": A, "C": C})
    assert problem in message(function(store), Stage.LOWERED)


def test_a_let_has_the_type_of_its_value() -> None:
    body = LetStmt(Var("x", INT32), ZERO, Store(C, (ZERO,), const(0.0, FLOAT32)))
    assert message(function(body), Stage.LOWERED) == (
        "variable 'x' is int32, and its value int64. [verify-let]\n"
        "  in f, stage lowered:\n"
        "      x: int32 = 0\n"
        "      C[0] = 0.0"
    )


def test_what_counts_is_said_of_the_points_of_a_reduction_by_their_own_variables() -> None:
    axis = te.reduce_axis(8, name="k")
    x = te.placeholder((8, 8), "float32", name="X")
    y = te.compute((8,), lambda i: te.sum(x[i, axis], axis=axis, where=axis < i), name="Y")
    func = te.func(x, y, name="f")
    verify(func, Stage.TENSOR)
    outside = transform(
        func.body,
        lambda n: replace(n, counts=n.bindings[1] < 3) if isinstance(n, Block) else n,
    )
    assert message(func.with_body(outside), Stage.TENSOR).splitlines()[0] == (
        "block 'Y' counts its points where 'k < 3' holds; expected a reduction, and a condition of "
        "its own iteration variables. [verify-counts]"
    )


def test_the_stores_of_a_block_go_to_different_buffers() -> None:
    x = te.placeholder((8,), "float32", name="X")
    func = te.func(x, te.compute((8,), lambda i: x[i], name="Y"), name="f")
    twice = transform(
        func.body, lambda n: replace(n, body=Seq((n.body, n.body))) if isinstance(n, Block) else n
    )
    assert message(func.with_body(twice), Stage.TENSOR).splitlines()[0] == (
        "block 'Y' stores twice to one buffer; expected stores to different buffers. "
        "[verify-body-buffers]"
    )
