"""The tracer kernel: Y = gelu(X W + bias) in fp32 at the machine's peak, by schedule alone.

One schedule for every shape: W in panels of 48 columns, a tile of 8 x 48 accumulators, the
reduction in blocks of 1024, bias and GELU on the accumulators in the last block, the next block of
the panel prefetched while this one is used.
"""

from __future__ import annotations

from tilewright import PrimFunc, Schedule, te

SHAPES = ((128, 768, 3072), (127, 1021, 3072))  # M, N, K; the second with an edge in M and in N


def gelu_matmul(rows: int, columns: int, inner: int) -> PrimFunc:
    """Y[i, j] = gelu(sum over k of X[i, k] * W[k, j] + bias[j]), W and bias constant, GELU by
    erf.
    """
    x = te.placeholder((rows, inner), "float32", name="X")
    w = te.placeholder((inner, columns), "float32", name="W", constant=True)
    bias = te.placeholder((columns,), "float32", name="bias", constant=True)
    k = te.reduce_axis(inner, name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="C")

    def gelu(i: te.Expr, j: te.Expr) -> te.Expr:
        biased = c[i, j] + bias[j]
        return biased * 0.5 * (1.0 + te.erf(biased * 0.5**0.5))

    return te.func(x, w, bias, te.compute((rows, columns), gelu, name="Y"), name="gelu_matmul")


def fast(sch: Schedule) -> None:
    """The schedule."""
    sch.pack("W", width=48)
    i, j, k = sch.loops("C")
    i, ii = sch.split(i, (None, 8), tail="partition")
    j, jj, lane = sch.split(j, (None, 3, 16), tail="mask")
    block, k = sch.split(k, (None, 1024), tail="partition")
    chunk, step = sch.split(k, (None, 16))
    sch.reorder(j, block, i, chunk, step, ii, jj, lane)
    sch.unroll(ii)
    sch.unroll(jj)
    sch.vectorize(lane)
    sch.parallel(j)
    sch.stage("C", "C", i, "register")
    y, columns = sch.reverse_compute_at("Y", i, at="last")
    vectors, lane = sch.split(columns, (3, 16), tail="mask")
    sch.unroll(y)
    sch.unroll(vectors)
    sch.vectorize(lane)
    sch.prefetch("W_packed", at=block, spread=(i, chunk))
