from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from tilewright.runtime.engine.safetensors import (
    SafetensorsWriter,
    read_safetensors,
    stored_type,
)
from tilewright.tir.dtype import dtype
from tilewright.tir.errors import IRError

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "scalar": np.array(7, np.int64),
    "none": np.zeros((0, 4), np.float64),
    "flags": np.array([True, False, True]),
    "transposed": np.arange(6, dtype=np.int8).reshape(2, 3).T,
}


def written(arrays: dict[str, np.ndarray]) -> bytes:
    writer = SafetensorsWriter(arrays)
    data = b"".join(writer.pieces())
    assert len(data) == writer.size
    return data


def file_of(header: object, body: bytes = b"") -> memoryview:
    text = json.dumps(header).encode()
    return memoryview(len(text).to_bytes(8, "little") + text + body)


def test_arrays_survive() -> None:
    found = read_safetensors(memoryview(written(ARRAYS)))
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
        assert not found[name].flags.writeable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("float16", "F16"),
        ("bfloat16", "BF16"),
        ("float8_e4m3fn", "F8_E4M3"),
        ("float8_e5m2", "F8_E5M2"),
        ("float8_e4m3fnuz", "F8_E4M3FNUZ"),
        ("float8_e5m2fnuz", "F8_E5M2FNUZ"),
        ("float4_e2m1fn", "U8"),
        ("int4", "I8"),
        ("uint4", "U8"),
        ("int2", "I8"),
        ("uint2", "U8"),
    ],
)
def test_storage_types_survive_those_of_four_bits_as_bytes(name: str, shown: str) -> None:
    kind = dtype(name).numpy
    array = np.arange(6).astype(kind).reshape(2, 3)
    data = written({"a": array})
    length = int.from_bytes(data[:8], "little")
    assert json.loads(data[8 : 8 + length])["a"]["dtype"] == shown
    found = read_safetensors(memoryview(data))["a"]
    assert found.dtype == stored_type(kind)
    np.testing.assert_array_equal(found.view("u1"), array.view("u1"))


def test_every_array_starts_at_a_multiple_of_64_bytes() -> None:
    data = written(ARRAYS)
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    places = [header[name]["data_offsets"][0] + 8 + length for name in ARRAYS]
    assert all(place % 64 == 0 for place in places)


def test_the_layout_has_no_holes() -> None:
    data = written(ARRAYS)
    length = int.from_bytes(data[:8], "little")
    spans = sorted(e["data_offsets"] for e in json.loads(data[8 : 8 + length]).values())
    assert spans[0][0] == 0
    assert spans[-1][1] == len(data) - 8 - length
    assert all(a[1] == b[0] for a, b in pairwise(spans))


def entry(**changes: object) -> dict[str, object]:
    return {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}}


@pytest.mark.parametrize(
    "data",
    [
        memoryview(b""),
        memoryview(b"\xff" * 8),
        memoryview((1 << 62).to_bytes(8, "little") + b"{}"),
        file_of([]),
        file_of(entry(data_offsets=[0, 8]), b"1234567"),
        file_of(entry(data_offsets=[0, 9]), b"123456789"),
        file_of(entry(data_offsets=[8, 0]), b"12345678"),
        file_of(entry(data_offsets=[0]), b"12345678"),
        file_of(entry(data_offsets=[-8, 0]), b"12345678"),
        file_of(entry(shape=[1 << 40, 1 << 40]), b"12345678"),
        file_of(entry(shape=[-2]), b"12345678"),
        file_of(entry(dtype="F16"), b"12345678"),
        file_of(entry(dtype=["F32"]), b"12345678"),
    ],
)
def test_what_is_no_such_file_is_refused(data: memoryview) -> None:
    with pytest.raises(IRError):
        read_safetensors(data)


def test_the_error_names_the_array() -> None:
    with pytest.raises(IRError) as caught:
        read_safetensors(file_of(entry(data_offsets=[4, 12]), b"12345678"))
    assert str(caught.value) == ("IRError: weights: 'x' does not lie in the file. [weights-layout]")
