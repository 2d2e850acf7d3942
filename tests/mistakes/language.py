"""Mistakes in definitions: what `te` refuses, as it is refused."""

from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright import te

A = te.placeholder((8, 8), "float32", name="A")
B = te.placeholder((8, 8), "float32", name="B")
E = te.placeholder((8, 8), "float8_e4m3fn", name="E")
Q = te.placeholder((300,), "int8", name="Q")
k = te.reduce_axis(8, name="k")
q = te.reduce_axis(300, name="q")


def adds_whole_tensors() -> object:
    """Tensors are added without indices"""
    return A + B


def multiplies_whole_tensors() -> object:
    """Tensors are multiplied as matrices"""
    return A @ B


def applies_numpy_to_a_tensor() -> object:
    """A function of NumPy takes a whole tensor"""
    return np.exp(A)


def applies_a_numpy_function_that_te_lacks() -> object:
    """A function of NumPy that te does not have takes an element"""
    return te.compute((8, 8), lambda i, j: np.cbrt(A[i, j]), name="C")


def branches_in_python() -> object:
    """Python's if takes a condition on an element"""
    return te.compute((8, 8), lambda i, j: A[i, j] if A[i, j] > 0 else 0.0, name="C")


def joins_conditions_with_and() -> object:
    """Python's `and` joins two conditions"""
    return te.compute((8, 8), lambda i, j: te.select(i > 0 and j > 0, A[i, j], 0.0), name="C")


def compares_with_python() -> object:
    """Two indices are compared with =="""
    return te.compute((8, 8), lambda i, j: te.select(i == j, 1.0, 0.0), name="C")


def calls_the_builtin_sum() -> object:
    """Python's sum takes a reduction"""
    return te.compute((8,), lambda i: sum(A[i, k] for _ in k), name="C")


def reads_with_too_few_indices() -> object:
    """A tensor of two dimensions is read with one index"""
    return te.compute((8,), lambda i: A[i], name="C")


def takes_too_few_indices() -> object:
    """The function takes fewer indices than the shape has"""
    return te.compute((8, 8), lambda i: A[i, i], name="C")


def reads_out_of_bounds() -> object:
    """A read leaves the tensor"""
    C = te.compute((8, 8), lambda i, j: A[i, j + 1], name="C")
    return tw.build(te.func(A, C, name="shifted"), "c:scalar")


def multiplies_bytes_of_two_types() -> object:
    """Signed bytes are multiplied by unsigned ones"""
    U = te.placeholder((300,), "uint8", name="U")
    return te.compute((1,), lambda i: te.sum(U[q] * Q[q], axis=q, dtype="int32"), name="C")


def indexes_with_a_float() -> object:
    """An index is a float"""
    return te.compute((8, 8), lambda i, j: A[i, j * 0.5], name="C")


def indexes_with_data() -> object:
    """An index is read from a tensor, unchecked"""
    C = te.compute((300,), lambda i: A[0, Q[i]], name="C")
    return te.func(A, Q, C, name="gather")


def mixes_types() -> object:
    """An integer meets a float"""
    return te.compute((8, 8), lambda i, j: A[i, j] + Q[i], name="C")


def multiplies_in_float8() -> object:
    """A float of 8 bits is computed with"""
    return te.compute((8, 8), lambda i, j: E[i, j] * E[j, i], name="C")


def names_an_unknown_type() -> object:
    """A type has the name of another library"""
    return te.placeholder((8,), "float", name="X")


def sums_where_it_may_wrap() -> object:
    """A sum of int8 may wrap"""
    return te.compute((1,), lambda i: te.sum(Q[q], axis=q), name="C")


def forgets_the_axis() -> object:
    """A sum names no axis"""
    return te.compute((8,), lambda i: te.sum(A[i, k]), name="C")


def reduces_over_an_index() -> object:
    """A sum runs over an index of the output"""
    return te.compute((8, 8), lambda i, j: te.sum(A[i, j], axis=j), name="C")


def uses_an_axis_outside_its_sum() -> object:
    """A reduction axis is used outside its sum"""
    return te.compute((8,), lambda i: te.sum(A[i, k], axis=k) + B[i, k], name="C")


def uses_an_axis_twice() -> object:
    """A sum runs over one axis twice"""
    return te.compute((1,), lambda i: te.sum(A[k, k], axis=(k, k)), name="C")


def forgets_a_scans_start() -> object:
    """A scan has no initial value"""
    S = te.state((8, 8), "float32", name="S")
    T = te.compute((8, 8), lambda t, j: S[t - 1, j] + A[t, j], name="T")
    return te.scan(None, T, S)


def lists_an_input_twice() -> object:
    """A function lists an input twice"""
    C = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="C")
    return te.func(A, A, C, name="twice")


def forgets_an_input() -> object:
    """A function does not list an input"""
    C = te.compute((8, 8), lambda i, j: A[i, j] + B[i, j], name="C")
    return te.func(A, C, name="add")


def scatters() -> object:
    """te.scatter_add is called"""
    return te.scatter_add(A, Q, B)


def clips_as_a_network_does() -> object:
    """te.relu6 is called"""
    return te.compute((8, 8), lambda i, j: te.relu6(A[i, j]), name="C")
