"""Buffers know their size; an element is read at int64 indices."""

from __future__ import annotations

import pytest

from tilewright.tir.buffer import Alignment, Buffer
from tilewright.tir.dtype import FLOAT32, FLOAT64, INT32, INT64
from tilewright.tir.errors import IRError
from tilewright.tir.expr import Var
from tilewright.tir.text.printer import print_expr

X = Var("i")
A = Buffer("A", FLOAT32, (4, 8))
N = Buffer("N", INT32, (4,))


def test_a_buffer_knows_its_size() -> None:
    assert A.size == 32
    assert A.bytes == 128
    assert Buffer("s", FLOAT64, ()).size == 1
    assert Buffer("v", FLOAT32.with_lanes(8), (), "register").bytes == 32


def test_strides_are_dense_unless_they_are_aligned() -> None:
    assert Buffer("D", FLOAT32, (3, 4, 5)).strides == (20, 5, 1)
    assert Buffer("s", FLOAT32, ()).strides == ()


@pytest.mark.parametrize(
    ("aligned", "strides"),
    [
        ((Alignment(1, 8, 0),), (32, 8, 1)),
        ((Alignment(1, 8, 5),), (20, 5, 1)),
        ((Alignment(1, 8, 4),), (48, 12, 1)),
        ((Alignment(0, 7, 1),), (22, 5, 1)),
        ((Alignment(0, 16, 1), Alignment(1, 8, 1)), (49, 9, 1)),
    ],
)
def test_an_aligned_stride_is_the_least_that_leaves_the_offset(
    aligned: tuple[Alignment, ...], strides: tuple[int, ...]
) -> None:
    buffer = Buffer("D", FLOAT32, (3, 4, 5), aligned=aligned)
    assert buffer.strides == strides
    assert buffer.size == 60
    assert buffer.room == 3 * strides[0]
    assert buffer.bytes == 12 * strides[0]


@pytest.mark.parametrize("item", [(1, 8, 0), (-1, 8, 0), (0, 0, 0), (0, 8, 8), (0, 8, -1)])
def test_an_alignment_names_an_axis_before_the_last_one_and_a_remainder(
    item: tuple[int, int, int],
) -> None:
    axis, factor, offset = item
    with pytest.raises(IRError) as refusal:
        Buffer("A", FLOAT32, (4, 8), aligned=(Alignment(*item),))
    assert str(refusal.value) == (
        f"IRError: buffer: 'A' of 2 axes has Alignment(axis={axis}, factor={factor}, "
        f"offset={offset}); expected an axis before the last one and 0 <= offset < factor. "
        "[buffer-alignment]"
    )


def test_an_index_of_another_integer_type_is_cast_to_int64() -> None:
    loaded = A[N[X], 0]
    assert loaded.indices[0].dtype == INT64
    assert print_expr(loaded) == 'A[cast(N[i], "int64"), 0]'
