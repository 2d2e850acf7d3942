"""Passes behind the proof of the nest that are wrong: the build refuses what they make."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.lower import split_prepare
from tilewright.codegen.lower.threads import merge_threads
from tilewright.codegen.lower.vector import fold_masks
from tilewright.codegen.lower.vector.vector_body import VectorBody
from tilewright.tir.analysis.linear import Ranges
from tilewright.tir.expr import LE, LT, TRUE, Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.lowered import Broadcast
from tilewright.tir.node import Node
from tilewright.tir.stmt import Barrier, Seq, seq


def shifted() -> PrimFunc:
    x = te.placeholder((64,), "float32", name="X")
    y = te.compute((197,), lambda i: te.select(te.all_of(i >= 8, i < 72), x[i - 8], 0.0), name="Y")
    return te.func(x, y, name="shifted")


def guarded() -> PrimFunc:
    x = te.placeholder((64,), "float32", name="X")
    w = te.placeholder((64,), "float32", name="W")
    y = te.compute(
        (30, 40), lambda i, j: te.select(te.all_of(i >= 8, j >= 3), x[i - 8], w[j]), name="Y"
    )
    return te.func(x, w, y, name="guarded")


def ragged() -> PrimFunc:
    x = te.placeholder((5, 40), "float32", name="X")
    return te.func(x, te.compute((5, 40), lambda i, j: x[i, j] + 1.0, name="Y"), name="ragged")


def turned() -> PrimFunc:
    a = te.placeholder((64, 64), "float32", name="A")
    b = te.placeholder((64, 80), "float32", name="B", constant=True)
    p = te.compute((80, 64), lambda i, j: b[j, i] * 2.0, name="P")
    q = te.compute((64, 64), lambda i, j: a[i, j] + p[i, j], name="Q")
    y = te.compute((64, 64), lambda i, j: q[j, i] + p[i, j], name="Y")
    return te.func(a, b, y, name="turned")


def vectors(sch: tw.Schedule) -> None:
    sch.vectorize(sch.loops("Y")[-1])


def threads(sch: tw.Schedule) -> None:
    for block in ("P", "Q", "Y"):
        sch.parallel(sch.loops(block)[0])


def built(make: Callable[[], PrimFunc], steps: Callable[[tw.Schedule], None]) -> tw.Kernel:
    constants = {b.name: np.ones(b.shape, np.float32) for b in make().constants}
    what = tw.Schedule(make()).apply(steps)
    return tw.build(what, "c:avx512", constants=constants, verify="off")


def refusal(make: Callable[[], PrimFunc], steps: Callable[[tw.Schedule], None]) -> str:
    with pytest.raises(tw.TilewrightError) as caught:
        built(make, steps)
    return str(caught.value)


def test_a_load_that_loses_its_mask_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert built(shifted, vectors).proof
    load = VectorBody._load
    monkeypatch.setattr(VectorBody, "_load", lambda body, item, on: load(body, item, None))
    assert refusal(shifted, vectors) == (
        "InternalError: proof: lowering broke 'shifted': P4: 'shifted', lowered, loads X[-1]; "
        "'X' has shape [64]; Y(i=0, lane=7). [proof-lowered]\n"
        "  Hint: this is a defect of tilewright; please report it with the program that led here."
    )


def test_a_guarded_load_that_is_taken_for_safe_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert built(guarded, vectors).proof
    monkeypatch.setattr(VectorBody, "_is_safe", lambda *given: True)
    assert "P4: 'guarded', lowered, loads X[-8]; 'X' has shape [64]; X(i=0)." in refusal(
        guarded, vectors
    )


def test_a_mask_that_is_folded_too_early_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert built(ragged, vectors).proof
    compare = fold_masks._compare

    def nearly(expr: LT | LE, a: Expr, b: Expr, ranges: Ranges) -> Expr:
        (_, high), (low, _) = (fold_masks._of_all(side, ranges) for side in (a, b))
        if high is not None and low is not None and high < low + 8:
            return Broadcast(TRUE, expr.dtype.lanes)
        return compare(expr, a, b, ranges)

    monkeypatch.setattr(fold_masks, "_compare", nearly)
    assert refusal(ragged, vectors).splitlines()[:2] == [
        "InternalError: proof: lowering broke 'ragged': P4: 'ragged', lowered, loads X[0, 40]; "
        "'X' has shape [5, 40]; Y(i=0, lane=8). [proof-lowered]",
        "  and P4: 'ragged', lowered, stores to Y[0, 40]; 'Y' has shape [5, 40]; Y(i=0, lane=8)",
    ]


def test_a_barrier_that_is_lost_with_prepare_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert built(turned, threads).proof
    monkeypatch.setattr(split_prepare, "PlaceBarriers", lambda: lambda func: func)
    assert "P5: two statements with no barrier between them write and read Q[" in refusal(
        turned, threads
    )


def tiles(sch: tw.Schedule) -> None:
    """A tile of P for each block, which its threads compute and others of them use."""
    i, j = sch.loops("Q")
    sch.bind(i, "blockIdx.x")
    sch.compute_at("P", i)
    for loop in (sch.loops("P")[-1], j):
        sch.bind(loop, "threadIdx.x")
    sch.set_scope("P", "shared")


def mirrored() -> PrimFunc:
    x = te.placeholder((8, 32), "float32", name="X")
    p = te.compute((8, 32), lambda i, j: x[i, j] * 2.0, name="P")
    q = te.compute((8, 32), lambda i, j: p[i, 31 - j], name="Q")
    return te.func(x, q, name="mirrored")


def test_a_barrier_that_is_lost_when_loops_of_threads_are_merged_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def on_gpu() -> tw.Kernel:
        return tw.build(tw.Schedule(mirrored()).apply(tiles), "cuda:sm_80", verify="off")

    assert on_gpu().proof
    merged = merge_threads._merged

    def forgetful(node: Node) -> Node:
        if isinstance(node, Seq):
            node = seq(*(stmt for stmt in node.body if not isinstance(stmt, Barrier)))
        return merged(node)

    monkeypatch.setattr(merge_threads, "_merged", forgetful)
    with pytest.raises(tw.TilewrightError) as caught:
        on_gpu()
    assert str(caught.value).splitlines()[0] == (
        "InternalError: proof: lowering broke 'mirrored': P5: two threads with no barrier between "
        "them write and read P[0, 16]; P(i=7, j=16) and Q(i=7, j=15). [proof-lowered]"
    )


def test_a_kernel_says_what_was_proved_of_what() -> None:
    assert str(built(ragged, vectors).proof).splitlines()[1:] == [
        "  P1 to P5 of the nest before vectorising, against the function's own blocks",
        "  P4 and P5 once more of the lowered code",
    ]
