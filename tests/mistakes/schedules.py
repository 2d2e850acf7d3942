"""Mistakes in schedules: steps that are refused, as they are refused."""

from __future__ import annotations

import tilewright as tw
from tilewright import te

A = te.placeholder((64, 64), "float32", name="A")
B = te.placeholder((64, 64), "float32", name="B")
k = te.reduce_axis(64, name="k")
C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
D = te.compute((64, 64), lambda i, j: te.maximum(C[i, j], 0.0), name="D")
matmul = te.func(A, B, D, name="matmul")


def uses_a_stale_loop() -> object:
    """A loop is used after it was split"""
    sch = tw.Schedule(matmul)
    i = sch.loops("C")[0]
    sch.split(i, (None, 8))
    sch.parallel(i)


def vectorizes_a_reduction() -> object:
    """A reduction is vectorised"""
    sch = tw.Schedule(matmul)
    sch.vectorize(sch.loops("C")[2])


def runs_a_reduction_in_parallel() -> object:
    """A reduction runs in parallel"""
    sch = tw.Schedule(matmul)
    sch.parallel(sch.loops("C")[2])


def splits_by_zero() -> object:
    """A loop is split by 0"""
    sch = tw.Schedule(matmul)
    sch.split(sch.loops("C")[0], (None, 0))


def splits_by_a_number() -> object:
    """split takes a number"""
    sch = tw.Schedule(matmul)
    sch.split(sch.loops("C")[0], 8)


def splits_with_factor() -> object:
    """split takes factor=, as in TVM"""
    sch = tw.Schedule(matmul)
    sch.split(sch.loops("C")[0], factor=8)


def splits_into_too_few() -> object:
    """The factors of a split do not cover the loop"""
    sch = tw.Schedule(matmul)
    sch.split(sch.loops("C")[0], (4, 5))


def names_a_loop_by_text() -> object:
    """A loop is given by its name"""
    sch = tw.Schedule(matmul)
    sch.split("i", (None, 8))


def tiles() -> object:
    """sch.tile is called"""
    sch = tw.Schedule(matmul)
    i, j, _ = sch.loops("C")
    sch.tile(i, j, 8, 8)


def misspells_a_step() -> object:
    """A step is misspelt"""
    sch = tw.Schedule(matmul)
    sch.vectorise(sch.loops("D")[1])


def indexes_the_schedule() -> object:
    """A schedule is indexed by a tensor, as in TVM"""
    sch = tw.Schedule(matmul)
    sch[C].vectorize(sch.loops("C")[1])


def names_an_unknown_block() -> object:
    """A block does not exist"""
    sch = tw.Schedule(matmul)
    sch.loops("c")


def gives_cache_write_a_scope() -> object:
    """cache_write takes a scope, as in TVM"""
    sch = tw.Schedule(matmul)
    sch.cache_write("C", "local")


def computes_a_block_at_itself() -> object:
    """A block is computed at a loop of its own"""
    sch = tw.Schedule(matmul)
    sch.compute_at("C", sch.loops("C")[0])


def reorders_a_loop_twice() -> object:
    """reorder names a loop twice"""
    sch = tw.Schedule(matmul)
    i, j, _ = sch.loops("C")
    sch.reorder(j, i, j)


def fuses_loops_apart() -> object:
    """Loops that are not nested in each other are fused"""
    sch = tw.Schedule(matmul)
    sch.fuse(sch.loops("C")[0], sch.loops("D")[0])


def inlines_an_output() -> object:
    """The output is inlined"""
    sch = tw.Schedule(matmul)
    sch.compute_inline("D")


def forgets_to_wrap_the_function() -> object:
    """A schedule is made of a tensor"""
    return tw.Schedule(D)


def binds_for_a_cpu() -> object:
    """A loop is bound to a GPU's threads, and built for a CPU"""
    sch = tw.Schedule(matmul)
    sch.bind(sch.loops("D")[0], "threadIdx.x")
    return tw.build(sch, "c:avx2")
