from __future__ import annotations

import pytest

from tilewright.tir.errors import IRError
from tilewright.tir.json_reader import Reader, parse_json

VALUES = '{"text": "a", "count": 3, "ratio": 0.5, "list": [1, 2], "type": "float32", "on": true}'


def test_it_reads_each_kind() -> None:
    data = parse_json(VALUES, "data")
    assert data["text"].text() == "a"
    assert data["count"].integer() == 3
    assert data["ratio"].number() == 0.5
    assert data["count"].number() == 3.0
    assert [item.integer() for item in data["list"].items()] == [1, 2]
    assert data["list"].shape() == (1, 2)
    assert str(data["type"].dtype()) == "float32"
    assert [name for name, _ in data.fields()][:2] == ["text", "count"]


@pytest.mark.parametrize(
    ("text", "method", "arguments"),
    [
        ('"aaa"', "text", (2,)),
        ("true", "integer", ()),
        ("1.0", "integer", ()),
        ("9", "integer", (8,)),
        ('"x"', "number", ()),
        ("true", "number", ()),
        ("[1, 2]", "items", (1,)),
        ('{"a": 1}', "fields", (0,)),
        ('"c"', "one_of", ("a", "b")),
        ("[1000000, 1000000, 1000000]", "shape", ()),
        (f"{[1] * 33}", "shape", ()),
        ('"float32x4"', "dtype", ()),
        ('"complex64"', "dtype", ()),
    ],
)
def test_it_refuses_what_is_out_of_bounds(
    text: str, method: str, arguments: tuple[object, ...]
) -> None:
    with pytest.raises(IRError):
        getattr(parse_json(text, "data"), method)(*arguments)


def test_an_error_names_the_place_and_the_value() -> None:
    with pytest.raises(IRError) as caught:
        next(parse_json('{"a": [{"b": "' + "x" * 99 + '"}]}', "file")["a"].items())["b"].integer(5)
    assert str(caught.value) == (
        f"IRError: json: file.a[0].b is '{'x' * 56}...; expected a whole number from 0 to 5. "
        "[json-value]"
    )


def test_null_is_none_and_everything_else_is_read() -> None:
    assert Reader(None, "x").or_none(Reader.integer) is None
    assert Reader(0, "x").or_none(Reader.integer) == 0
    with pytest.raises(IRError, match=r"x is 'a'; expected a whole number"):
        Reader("a", "x").or_none(Reader.integer)
