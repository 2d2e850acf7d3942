"""Element types of results: what torch.result_type says (of 2.13)."""

from __future__ import annotations

import pytest

from tilewright.graph.importers.aten.promotion import promoted_type
from tilewright.graph.types import TensorType


def _tensor(text: str) -> TensorType:
    """ "float32[2]" has an axis, "float32" none."""
    name, bracket, _ = text.partition("[")
    return TensorType(name, (2,) if bracket else ())


@pytest.mark.parametrize(
    ("tensors", "numbers", "expected"),
    [
        ("float32[2] float64", (), "float32"),
        ("int8[2] int64", (), "int8"),
        ("int64[2] float64", (), "float64"),
        ("bool[2] int8", (), "int8"),
        ("float16 float32", (), "float32"),
        ("float16[2] bfloat16[2]", (), "float32"),
        ("uint8[2] int8[2]", (), "int16"),
        ("int32[2] float16[2]", (), "float16"),
        ("int64[2]", (1.5,), "float32"),
        ("float16[2]", (1.5,), "float16"),
        ("float64", (1.5,), "float64"),
        ("bool[2]", (3,), "int64"),
        ("int8[2]", (3,), "int8"),
        ("int8", (True,), "int8"),
        ("int32 float16[2]", (2.0,), "float16"),
    ],
)
def test_result_types(tensors: str, numbers: tuple[object, ...], expected: str) -> None:
    assert promoted_type([_tensor(one) for one in tensors.split()], numbers) == expected
