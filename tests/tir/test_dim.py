"""tir/dim.py: a dim in buffers, texts, bounds, equality, keys and the verifier."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.tir.analysis.bounds import bounds
from tilewright.tir.analysis.simplify import narrowed, simplify
from tilewright.tir.buffer import Buffer, array
from tilewright.tir.dim import Dim, dims_of, most
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.expr import Var
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.text.canonical import workload_key
from tilewright.tir.text.equal import equal
from tilewright.tir.text.printer import print_expr
from tilewright.tir.verify.verify import Stage, VerificationError, verify

TEXT = """
def f(n: dim(2, 9), A: float32[n, 3], B: output(float32[n, 3])):
    for i in range(9):
        for j in range(3):
            with block("B", vi=spatial(n, i), vj=spatial(3, j)):
                B[vi, vj] = A[vi, vj]
"""
n = Dim("n", low=2, high=9)


def test_a_buffer_has_room_for_the_upper_bound() -> None:
    buffer = array("A", FLOAT32, (n, 3))
    assert (buffer.shape, buffer.extents, buffer.size) == ((9, 3), (n, 3), 27)
    assert dims_of((4, 3)) == ()
    assert [most(extent) for extent in (n, 3)] == [9, 3]


def test_what_is_known_of_a_dim_are_its_bounds() -> None:
    i = Var("i")
    assert bounds(n * 2 + 1, {}) == (5, 19)
    assert bounds(n, {n: (None, 4)}) == (2, 4)
    assert print_expr(simplify(i - n < -3)) == "i + 3 < n"
    assert print_expr(simplify(n - 1 < 9)) == "True"
    assert narrowed({}, n < 5)[n] == (None, 4)


def test_functions_are_equal_up_to_the_names_of_dims_and_keep_their_bounds() -> None:
    func = parse(TEXT)
    wider = parse(TEXT.replace("dim(2", "dim(1"))
    fixed = parse(TEXT.replace("n: dim(2, 9), ", "").replace("(n,", "(9,").replace("[n,", "[9,"))
    assert equal(func, parse(str(func)))
    assert not equal(func, wider)
    assert not equal(func, fixed)
    assert len({workload_key(f) for f in (func, wider, fixed)}) == 3
    other = parse(TEXT.replace("(n,", "(m,").replace("[n,", "[m,").replace("n: dim", "m: dim"))
    assert equal(func, other)
    assert workload_key(func) == workload_key(other)


def broken(change: str) -> PrimFunc:
    func = parse(TEXT)
    (block,) = func.blocks
    first, second = block.iters
    other = Dim("m", low=1, high=9)
    match change:
        case "axis":
            iters = (replace(first, dim=other), second)
        case "bound":
            iters = (replace(first, extent=8), second)
        case _:
            iters = block.iters
    body = func.body
    outer = replace(body, body=replace(body.body, body=replace(block, iters=iters)))  # type: ignore[attr-defined]
    if change == "input":
        a, b = func.parameters
        a = replace(a, buffer=Buffer("A", FLOAT32, (9, 3)))
        return PrimFunc("f", (a, b), outer)
    return func.with_body(outer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "axis",
            "verify: axis 'vi' has extent m, of at most 9; expected a dim of the function, and its "
            "upper bound. [verify-dim]",
        ),
        (
            "bound",
            "verify: axis 'vi' has extent n, of at most 8; expected a dim of the function, and its "
            "upper bound. [verify-dim]",
        ),
        (
            "input",
            "verify: no input has the size 'n'; expected one that tells it. [verify-dim-input]",
        ),
    ],
)
def test_the_verifier_knows_whose_dims_they_are(change: str, message: str) -> None:
    with pytest.raises(VerificationError) as caught:
        verify(broken(change), Stage.TENSOR)
    assert str(caught.value).splitlines()[0] == f"VerificationError: {message}"


def test_lowered_blocks_have_no_axes_of_dims() -> None:
    with pytest.raises(VerificationError, match=r"an axis of an extent that a call decides"):
        verify(parse(TEXT), Stage.NEST)
