"""tir/program/sizes_json.py: sizes as JSON and back; what nobody wrote is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tilewright.tir.dim import Dim
from tilewright.tir.errors import IRError
from tilewright.tir.json_reader import parse_json
from tilewright.tir.program.sizes_json import (
    dims_from_json,
    dims_to_json,
    shape_from_json,
    shape_to_json,
    size_from_json,
    size_to_json,
    sizes_from_json,
)
from tilewright.tir.sizes import AnySize, greatest, least, size_of

m, n = Dim("m", low=1, high=8, typical=4), Dim("n", low=0, high=64)
DIMS = {"m": m, "n": n}
M, N = size_of(m), size_of(n)


@pytest.mark.parametrize(
    "size",
    [7, M, M * N + 3 * N - 2, (N - 1) // 2 + 1, least(M * 8, N + 1), greatest(M, N) // 3 * 5],
    ids=str,
)
def test_a_size_comes_back(size: AnySize) -> None:
    data = parse_json(json.dumps(size_to_json(size)), "size")
    assert size_from_json(data, DIMS) == size


def test_dims_come_back_with_their_bounds() -> None:
    found = dims_from_json(parse_json(json.dumps(dims_to_json((m, n))), "dims"))
    assert [(d.name, d.low, d.high, d.usual) for d in found.values()] == [
        ("m", 1, 8, 4),
        ("n", 0, 64, 64),
    ]
    assert dims_from_json(None) == {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            [["m", 1, 8]],
            "json: dims[0] has 3 fields; expected a name, the least, the largest and the usual "
            "size. [json-dim-fields]",
        ),
        (
            [["m", 8, 1, 4]],
            "json: dims[0] is ['m', 8, 1, 4]; expected a name of its own, and bounds in order. "
            "[json-dim]",
        ),
    ],
)
def test_what_is_no_dim_is_refused(data: Any, message: str) -> None:
    with pytest.raises(IRError) as caught:
        dims_from_json(parse_json(json.dumps(data), "dims"))
    assert message in str(caught.value)


def test_a_shape_of_numbers_is_a_list_of_numbers() -> None:
    assert shape_to_json((2, 3)) == [2, 3]
    assert shape_to_json((M, 3)) == [[[1, "m"]], 3]


def test_sizes_of_several_axes_may_be_larger_together_than_an_array() -> None:
    data = parse_json(json.dumps(shape_to_json([M * 2**20, N * 2**20, 2**30])), "sizes")
    assert sizes_from_json(data, DIMS) == (M * 2**20, N * 2**20, 2**30)
    with pytest.raises(IRError, match="sizes is larger than"):
        shape_from_json(data, DIMS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[[1, "k"]]], "json: shape[0][0][1] names the size 'k', which nothing tells. [json-dim]"),
        ([-1], "json: shape[0] is -1; expected a whole number"),
        ([[["x", "m"]]], "json: shape[0][0][0] is 'x'; expected a coefficient. [json-value]"),
        ([1 << 40, 1 << 40], "json: shape is larger than 281474976710656 elements. [json-value]"),
        ([[[1, {"least": 3}]]], "json: shape[0][0][1].least is 3; expected a list"),
        ([[[1, {"most": []}]]], "expected an object with 'greatest'"),
    ],
)
def test_what_nobody_wrote_is_refused(data: Any, message: str) -> None:
    with pytest.raises(IRError) as caught:
        shape_from_json(parse_json(json.dumps(data), "shape"), DIMS)
    assert message in str(caught.value)


def test_a_size_that_is_too_deep_is_refused() -> None:
    inner: Any = [[1, "m"]]
    for _ in range(20):
        inner = [[1, {"quotient": inner, "divisor": 3}]]
    with pytest.raises(IRError, match="is too deep for a size"):
        shape_from_json(parse_json(json.dumps([inner]), "shape"), DIMS)


@pytest.mark.parametrize("dims", [[["m", 3, 2, 1]], [["m", 1, 2, 3], ["m", 1, 2, 3]]])
def test_dims_that_contradict_themselves_are_refused(dims: Any) -> None:
    with pytest.raises(IRError, match="expected a name of its own, and bounds in order"):
        dims_from_json(parse_json(json.dumps(dims), "dims"))
