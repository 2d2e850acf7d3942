"""Mistakes in builds and in calls of a kernel, as they are refused."""

from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright import te

A = te.placeholder((4, 8), "float32", name="A")
W = te.placeholder((8, 8), "float32", name="W", constant=True)
k = te.reduce_axis(8, name="k")
C = te.compute((4, 8), lambda i, j: te.sum(A[i, k] * W[k, j], axis=k), name="C")
dense = te.func(A, W, C, name="dense")
w = np.ones((8, 8), np.float32)
a = np.ones((4, 8), np.float32)
kernel = tw.build(dense, "python", constants={"W": w})


def names_an_unknown_target() -> object:
    """A target does not exist"""
    return tw.build(dense, "llvm", constants={"W": w})


def misspells_a_target() -> object:
    """A target's instruction set is misspelt"""
    return tw.build(dense, "c:avx1024", constants={"W": w})


def builds_a_tensor() -> object:
    """A tensor is built, not a function"""
    return tw.build(C, "python")


def forgets_the_constants() -> object:
    """The constants are forgotten"""
    return tw.build(dense, "python")


def misspells_a_constant() -> object:
    """A constant is misspelt"""
    return tw.build(dense, "python", constants={"w": w})


def binds_a_constant_of_another_shape() -> object:
    """A constant has another shape"""
    return tw.build(dense, "python", constants={"W": w[:4]})


def binds_a_constant_of_another_type() -> object:
    """A constant has another type"""
    return tw.build(dense, "python", constants={"W": w.astype(np.float64)})


def allows_and_forbids() -> object:
    """strict=True together with allow="""
    return tw.build(dense, "python", constants={"W": w}, strict=True, allow=("vdpbf16ps",))


def misspells_an_option() -> object:
    """verify= has another value"""
    return tw.build(dense, "python", constants={"W": w}, verify="none")


def requires_what_was_not_tuned() -> object:
    """require_tuned=True without a log"""
    return tw.build(dense, "c:scalar", constants={"W": w}, require_tuned=True)


def passes_too_many() -> object:
    """A call passes the constant too"""
    return kernel(a, w, np.empty((4, 8), np.float32))


def passes_nothing() -> object:
    """A call passes too few arrays"""
    return kernel()


def passes_another_shape() -> object:
    """An array has another shape"""
    return kernel(a.T)


def passes_float64() -> object:
    """An array is float64, NumPy's default"""
    return kernel(np.ones((4, 8)))


def passes_a_list() -> object:
    """A list stands for an array"""
    return kernel([[1.0] * 8] * 4)


def passes_every_second_column() -> object:
    """An array has strides"""
    return kernel(np.ones((4, 16), np.float32)[:, ::2])


def writes_what_is_read_only() -> object:
    """The output is read-only"""
    out = np.empty((4, 8), np.float32)
    out.flags.writeable = False
    return kernel(a, out=out)


def writes_over_its_input() -> object:
    """The output is the input"""
    return kernel(a, out=a)


def writes_over_its_constant() -> object:
    """The output lies in the constant"""
    return kernel(a, out=w[:4])


def gives_an_output_of_another_type() -> object:
    """The output is float64"""
    return kernel(a, out=np.empty((4, 8)))


def misspells_an_argument() -> object:
    """A keyword is misspelt"""
    return kernel(X=a)
