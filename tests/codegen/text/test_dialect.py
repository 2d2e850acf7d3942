"""codegen/text/dialect.py: the helpers of a source, in the words of each language."""

from __future__ import annotations

import re

import pytest

from tilewright.codegen.c.dialect import C
from tilewright.codegen.cuda.dialect import CUDA
from tilewright.codegen.text.dialect import Dialect
from tilewright.tir.dtype import dtype

DIALECTS = (C, CUDA)


def test_a_source_has_the_helpers_that_it_calls_and_no_others() -> None:
    texts = C.definitions("y = tw_floormod(a, b) + tw_unknown(d);")
    named = [re.findall(r"tw_\w+", text)[0] for text in texts]
    assert named == ["tw_rest", "tw_upward", "tw_floormod"]
    assert CUDA.definitions("y = a + b;") == []


def test_a_helper_is_written_in_the_words_of_its_dialect() -> None:
    body = "tw_shift_left(a, 3)"
    assert C.definitions(body) == [
        "static inline uint64_t tw_shift_left(uint64_t a, uint64_t count)\n"
        "{\n    return count < 64 ? a << count : 0;\n}\n"
    ]
    kind = "unsigned long long"
    assert CUDA.definitions(body) == [
        f"static __device__ __forceinline__ {kind} tw_shift_left({kind} a, {kind} count)\n"
        "{\n    return count < 64 ? a << count : 0;\n}\n"
    ]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_each_helper_is_one_short_expression(dialect: Dialect) -> None:
    for name, helper in dialect.helpers.items():
        (*_, text) = dialect.definitions(f"{name}()")
        assert f" {name}(" in text
        assert "$" not in text
        assert len(helper.expression) <= 60


def test_the_types_of_elements_in_cuda() -> None:
    names = ("float32", "bool", "int8", "int64", "float16", "int4")
    assert [CUDA.type_of(dtype(name)) for name in names] == [
        "float",
        "unsigned char",
        "signed char",
        "long long",
        "unsigned short",
        "unsigned char",
    ]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_an_entry_is_never_called_like_a_helper(dialect: Dialect) -> None:
    names = [name.removeprefix("tw_") for name in dialect.helpers]
    symbols = [dialect.entry_symbol(name) for name in (*names, "matmul")]
    assert symbols[-1] == "tw_matmul"
    assert not set(symbols) & set(dialect.helpers)
    assert len(set(symbols)) == len(symbols)
