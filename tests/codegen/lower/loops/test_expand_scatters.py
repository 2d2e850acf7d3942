"""codegen/lower/loops/expand_scatters.py: the loops of a scatter: text, values on each instruction
set and any number of threads, and what the proof says of faults that are planted in them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.lower.loops import expand_scatters
from tilewright.codegen.lower.loops.expand_scatters import ExpandScatters
from tilewright.codegen.lower.lower import lower, lower_to_nest
from tilewright.codegen.lower.threads.place_barriers import SHARED_ELEMENTS
from tilewright.driver.check.check import CheckError
from tilewright.driver.check.unproved import ProofError
from tilewright.schedule.proof.lowered.prove import prove_lowered
from tilewright.schedule.verdict import Verdict
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.scatter import COMBININGS, ScatterFunction
from tilewright.tir.stmt import NOTHING, Barrier, Extern, For, ForKind, Stmt
from tilewright.tir.target.target import Target
from tilewright.tir.visit import substitute

from ....isas import HERE

AVX2 = Target.parse("c:avx2")


def scattered(
    shape: tuple[int, ...],
    given: tuple[int, ...],
    held: int,
    axis: int,
    how: str,
    kind: str = "float32",
) -> PrimFunc:
    """A scatter of updates of shape `given`, whose first `held` axes have places."""
    x = te.placeholder(shape, kind, name="X")
    u = te.placeholder(given, kind, name="U")
    count = len(shape) - len(given) + 1
    places = tuple(te.placeholder(given[:held], "int32", name=f"P{n}") for n in range(count))
    y = te.scatter(x, u, places, axis=axis, combining=how, name="Y")
    return te.func(x, u, *places, y, name="scattered")


def arrays_of(func: PrimFunc) -> list[np.ndarray]:
    """Some places lie outside."""
    rng = np.random.default_rng(5)
    found = []
    for parameter in func.parameters:
        shape, kind = parameter.buffer.shape, parameter.dtype.numpy
        if parameter.role != "input":
            continue
        if parameter.name.startswith("P"):
            found.append(rng.integers(-2, max(func.parameters[0].buffer.shape) + 2, shape))
        elif kind.kind == "f":
            found.append(rng.standard_normal(shape))
        else:
            found.append(rng.integers(-9, 9, shape) % 2)
        found[-1] = found[-1].astype(kind)
    return found


def text_of(func: str) -> str:
    return str(ExpandScatters(AVX2)(parse(func)))


def test_updates_behind_the_first_axis_are_those_of_a_row() -> None:
    digest = ScatterFunction("add", 1).digest
    head = "X: float32[3, 20], U: float32[2, 5], P: int32[2, 5], Y: output(float32[3, 20])"
    assert (
        text_of(
            f"""
def f({head}):
    extern("tw_scatter_add_at_1", "{digest}", (X, U, P), (Y,))
"""
        )
        == f"""\
def f({head}):
    for i0 in range(3):
        for vector in range(2):
            for lane in vectorized(8):
                Y[i0, vector * 8 + lane] = X[i0, vector * 8 + lane]
        for vector in range(1):
            for lane in vectorized(4):
                Y[i0, 16 + (vector * 4 + lane)] = X[i0, 16 + (vector * 4 + lane)]
        if i0 < 2:
            for u1 in range(5):
                at0: int64 = max(min(cast(P[i0, u1], "int64"), 19), 0)
                Y[i0, at0] = Y[i0, at0] + U[i0, u1]"""
    )


def test_rows_at_places_along_two_axes_are_vectors() -> None:
    digest = ScatterFunction("none", 0).digest
    head = "X: float32[3, 4, 8], U: float32[6, 8], P: int32[6], Q: int32[6]"
    assert (
        text_of(
            f"""
def f({head}, Y: output(float32[3, 4, 8])):
    extern("tw_scatter_none_at_0", "{digest}", (X, U, P, Q), (Y,))
"""
        )
        == f"""\
def f({head}, Y: output(float32[3, 4, 8])):
    for i0 in range(3):
        for i1 in range(4):
            for vector in range(1):
                for lane in vectorized(8):
                    Y[i0, i1, vector * 8 + lane] = X[i0, i1, vector * 8 + lane]
    for u0 in range(6):
        at0: int64 = max(min(cast(P[u0], "int64"), 2), 0)
        at1: int64 = max(min(cast(Q[u0], "int64"), 3), 0)
        for vector in range(1):
            for lane in vectorized(8):
                Y[at0, at1, vector * 8 + lane] = U[u0, vector * 8 + lane]"""
    )


FORMS = {
    "elements": ((9, 21, 2), (7, 30, 2), 3, 1),
    "rows": ((40, 21), (100, 21), 1, 0),
    "a part of each row": ((40, 21), (100, 13), 1, 0),
    "columns": ((40, 21), (100, 13), 2, 0),
    "along two axes": ((6, 7, 5), (30, 5), 1, 0),
    "numbers": ((77,), (200,), 1, 0),
    "one row": ((1, 77), (1, 200), 2, 1),
    "rows of one": ((77, 1), (200, 1), 1, 0),
    "many numbers": ((SHARED_ELEMENTS + 77,), (900,), 1, 0),
    "many rows": ((300, 70), (900, 70), 1, 0),
    "many columns": ((300, 96), (900, 96), 2, 0),
    "many rows with their own": ((300, 70), (290, 90), 2, 1),
}


@pytest.mark.needs_cc
@pytest.mark.sampled(6)
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("how", COMBININGS)
@pytest.mark.parametrize("form", FORMS)
def test_compiled_it_has_the_bits_of_the_reference(form: str, how: str, target: str) -> None:
    func = scattered(*FORMS[form], how)
    kernel = tw.build(func, target)
    assert str(kernel.proof).startswith("proved")
    arrays = arrays_of(func)
    np.testing.assert_array_equal(kernel(*arrays), evaluate(func, arrays)["Y"])


@pytest.mark.needs_cc
@pytest.mark.sampled(6)
@pytest.mark.parametrize("how", COMBININGS)
@pytest.mark.parametrize("kind", ["float64", "float16", "bfloat16", "int8", "uint8", "int64"])
def test_of_other_types_too(kind: str, how: str) -> None:
    func = scattered((9, 21), (7, 30), 2, 1, how, kind)
    arrays = arrays_of(func)
    for target in ("python", HERE[0]):
        found = tw.build(func, target)(*arrays)
        np.testing.assert_array_equal(found, evaluate(func, arrays)["Y"])


@pytest.mark.needs_cc
def test_truth_values_are_written() -> None:
    func = scattered((40, 21), (100, 21), 1, 0, "none", "bool")
    arrays = arrays_of(func)
    found = tw.build(func)(*arrays)
    np.testing.assert_array_equal(found, evaluate(func, arrays)["Y"])


def unguarded(self: object, place: Expr, axis: int) -> Expr:
    """A place as it is."""
    return te.cast(place, "int64")


def beyond(self: expand_scatters._Scatter, place: Expr, axis: int) -> Expr:
    """A guard that lets one place too many pass."""
    return te.maximum(te.minimum(te.cast(place, "int64"), self.x.shape[axis]), 0)


def below(self: expand_scatters._Scatter, place: Expr, axis: int) -> Expr:
    """A guard that ends at -1."""
    return te.maximum(te.minimum(te.cast(place, "int64"), self.x.shape[axis] - 1), -1)


def proof_of(form: str) -> Verdict:
    return prove_lowered(lower(lower_to_nest(scattered(*FORMS[form], "add")), AVX2))


@pytest.mark.parametrize("guard", [unguarded, beyond, below])
def test_a_guard_that_is_wrong_has_no_proof(
    monkeypatch: pytest.MonkeyPatch, guard: Callable[..., Expr]
) -> None:
    assert proof_of("rows").status == "proved"
    monkeypatch.setattr(expand_scatters._Scatter, "_inside", guard)
    verdict = proof_of("rows")
    assert verdict.status == "unknown"
    assert "P4 of 'scattered', lowered" in str(verdict)
    with pytest.raises(ProofError):
        tw.build(scattered(*FORMS["rows"], "add"), AVX2, verify="off")


def plant(monkeypatch: pytest.MonkeyPatch, change: Callable[[Stmt], Stmt]) -> None:
    update = expand_scatters._Scatter._update
    monkeypatch.setattr(
        expand_scatters._Scatter, "_update", lambda self, known: change(update(self, known))
    )


def shared_out(stmt: Stmt) -> Stmt:
    assert isinstance(stmt, For)
    return For(stmt.var, stmt.extent, ForKind.PARALLEL, stmt.body)


def test_threads_that_share_out_the_updates_have_no_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch, shared_out)
    verdict = proof_of("many rows")
    assert verdict.status == "unknown"
    assert "P5 of 'scattered', lowered" in str(verdict)
    with pytest.raises(ProofError):
        tw.build(scattered(*FORMS["many rows"], "add"), AVX2, verify="off")


@pytest.mark.parametrize("form", ["many rows", "many numbers"])
def test_a_barrier_that_is_missing_has_no_proof(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    assert proof_of(form).status == "proved"
    monkeypatch.setattr(expand_scatters, "Barrier", lambda: NOTHING)
    verdict = proof_of(form)
    assert verdict.status == "unknown"
    assert "two statements with no barrier between them write" in str(verdict)
    with pytest.raises(ProofError):
        tw.build(scattered(*FORMS[form], "add"), AVX2, verify="off")


def reversed_order(stmt: Stmt) -> Stmt:
    assert isinstance(stmt, For)
    body = substitute(stmt.body, {stmt.var: stmt.extent - 1 - stmt.var})
    return For(stmt.var, stmt.extent, stmt.kind, body)


@pytest.mark.needs_cc
def test_an_order_that_is_wrong_is_found_by_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, reversed_order)
    func = scattered((5,), (40,), 1, 0, "none")
    arrays = arrays_of(func)
    kernel = tw.build(func, "c:scalar", verify="off")
    assert not np.array_equal(kernel(*arrays), evaluate(func, arrays)["Y"])
    with pytest.raises(CheckError) as error:
        tw.build(func, "c:scalar")
    assert "[check-differs]" in str(error.value)


def test_only_what_threads_share_out_has_a_barrier() -> None:
    many, few = scattered(*FORMS["many numbers"], "add"), scattered(*FORMS["numbers"], "add")
    for func, expected in ((many, 1), (few, 0)):
        (call,) = (block.body for block in func.blocks)
        assert isinstance(call, Extern)
        body = ExpandScatters(AVX2)(func.with_body(call)).body
        assert sum(isinstance(one, Barrier) for one in body.children()) == expected
