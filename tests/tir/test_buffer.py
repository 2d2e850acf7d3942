"""Buffers know their size; an element is read at int64 indices."""

from __future__ import annotations

from tilewright.tir.buffer import Buffer
from tilewright.tir.dtype import FLOAT32, FLOAT64, INT32, INT64
from tilewright.tir.expr import Var
from tilewright.tir.printer import print_expr

X = Var("i")
A = Buffer("A", FLOAT32, (4, 8))
N = Buffer("N", INT32, (4,))


def test_a_buffer_knows_its_size() -> None:
    assert A.size == 32
    assert A.bytes == 128
    assert Buffer("s", FLOAT64, ()).size == 1
    assert Buffer("v", FLOAT32.with_lanes(8), (), "register").bytes == 32


def test_an_index_of_another_integer_type_is_cast_to_int64() -> None:
    loaded = A[N[X], 0]
    assert loaded.indices[0].dtype == INT64
    assert print_expr(loaded) == 'A[cast(N[i], "int64"), 0]'
