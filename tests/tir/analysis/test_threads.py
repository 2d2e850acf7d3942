"""tir/analysis/threads.py: which threads of a block run what."""

from __future__ import annotations

from tilewright.tir.analysis.threads import done_by_first, has_threads, joined_by, kept_by_all
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import For, Seq
from tilewright.tir.visit import statements

X, Y = "threadIdx.x", "threadIdx.y"
FUNC = parse("""
def f(A: float32[8, 4], Z: output(float32[8])):
    for b in bound(1, axis="blockIdx.x"):
        P = alloc(float32[8, 4], "register")
        S = alloc(float32[8], "register")
        M = alloc(float32[8], "register")
        D = alloc(float32[1], "register")
        for i in bound(8, axis="threadIdx.y"):
            for j in bound(4, axis="threadIdx.x"):
                with block("P", vi=spatial(8, i), vj=spatial(4, j)):
                    P[vi, vj] = A[vi, vj]
        for u in bound(8, axis="threadIdx.y"):
            with block("S_init", vi=spatial(8, u), init="S"):
                S[vi] = 0.0
            for k in bound(4, axis="threadIdx.x"):
                with block("S", vi=spatial(8, u), vk=reduce(4, k)):
                    S[vi] = S[vi] + P[vi, vk]
        with block("D", vi=spatial(1, 0)):
            D[vi] = A[0, 0]
        for v in bound(8, axis="threadIdx.y"):
            with block("M", vi=spatial(8, v)):
                M[vi] = S[vi] + D[0]
            with block("Z", vi=spatial(8, v)):
                Z[vi] = M[vi]
""")


def test_a_buffer_is_kept_along_the_axes_of_the_loops_that_come_to_it() -> None:
    kept = {buffer.name: axes for buffer, axes in kept_by_all(FUNC.body).items()}
    assert kept == {"P": {X, Y}, "S": {X, Y}, "M": {Y}, "D": {Y}}


def test_what_all_threads_make_is_made_of_what_all_have() -> None:
    """M is read by each thread along x; so all of them make it, of D, which all have then too."""
    text = str(FUNC).replace(
        'with block("Z", vi=spatial(8, v)):\n                Z[vi] = M[vi]',
        'for w in bound(1, axis="threadIdx.x"):\n                with block("Z", vi=spatial(8, v)):'
        "\n                    Z[vi] = M[vi]",
    )
    kept = {buffer.name: axes for buffer, axes in kept_by_all(parse(text).body).items()}
    assert kept["M"] == kept["D"] == {X, Y}


def test_the_threads_of_a_loop_that_is_reduced_over_join() -> None:
    loops = {n.var.name: n for n in statements(FUNC.body) if isinstance(n, For)}
    joined = {name: block.name for name, x in loops.items() if (block := joined_by(x))}
    assert joined == {"k": "S"}
    assert has_threads(loops["b"])


def test_what_stands_outside_of_loops_of_an_axis_is_done_by_the_first_thread_or_by_all() -> None:
    func = parse("""
def f(X: float32[4], Y: output(float32[4])):
    R = alloc(float32[()], "register")
    for k in range(4):
        Y[k] = X[k]
        R[()] = X[k]
        if X[k] < 1.0:
            Y[k] = 2.0
            R[()] = 3.0
        for t in bound(4, axis="threadIdx.x"):
            Y[t] = R[()]
""")
    kept = kept_by_all(func.body)
    (loop,) = (node for node in statements(func.body) if isinstance(node, For) and not node.axis)
    assert isinstance(loop.body, Seq)
    found = [done_by_first(stmt, frozenset({X, Y}), kept) for stmt in loop.body.body]
    assert found == [{X, Y}, {Y}, frozenset(), frozenset()]
