"""codegen/c/dialect.py: the types of elements."""

from __future__ import annotations

import pytest

from tilewright.codegen.c.dialect import C
from tilewright.tir.dtype import dtype

STORED = [
    ("float16", "uint16_t"),
    ("bfloat16", "uint16_t"),
    ("float8_e5m2", "uint8_t"),
    ("int4", "uint8_t"),
]


@pytest.mark.parametrize(
    ("name", "text"),
    [("float32", "float"), ("float64", "double"), ("bool", "uint8_t"), ("int8", "int8_t"), *STORED],
)
def test_the_type_of_an_element(name: str, text: str) -> None:
    assert C.type_of(dtype(name)) == text
