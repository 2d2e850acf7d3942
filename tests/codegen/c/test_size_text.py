"""codegen/c/size_text.py: sizes that a run decides, in C."""

from __future__ import annotations

from itertools import product

import pytest

from tests.linked import linked
from tilewright.codegen.c.size_text import size_names, size_text
from tilewright.runtime.toolchain.library import Library, ffi
from tilewright.tir.dim import Dim
from tilewright.tir.sizes import AnySize, greatest, least, size_in, size_of
from tilewright.tir.target.target import Target

m, n = Dim("m", low=1, high=8), Dim("n", low=0, high=64)
M, N = size_of(m), size_of(n)


def test_names_are_unlike_each_other() -> None:
    names = size_names((Dim("a b", high=1), Dim("a_b", high=1), Dim("a b", high=2)))
    assert len(set(names.values())) == 3
    assert all(name.startswith("size_") for name in names.values())


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (7, "7"),
        (M, "size_m"),
        (2 * M * N - 3, "2 * size_m * size_n + (-3)"),
        ((N + 1) // 2, "((size_n + 1) / 2)"),
        (least(M, 4), "((4) < (size_m) ? (4) : (size_m))"),
    ],
)
def test_a_size_is_an_expression(size: AnySize, text: str) -> None:
    assert size_text(size, size_names((m, n))) == text


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    "size",
    [M * N - 2 * M, (N - 9) // 4 + 30, greatest(M * 8, N, 20), least(N, 3 * M) // 2 * 5],
    ids=str,
)
def test_c_computes_what_the_size_is(size: AnySize) -> None:
    text = size_text(size, size_names((m, n)))
    source = (
        "#include <stdint.h>\nint64_t f(int64_t size_m, int64_t size_n);\n"
        f"int64_t f(int64_t size_m, int64_t size_n) {{ (void)size_m; return {text}; }}\n"
    )
    library = Library(linked([source], Target("c", "scalar")), name="size")
    f = ffi.cast("int64_t (*)(int64_t, int64_t)", library.entry("f"))
    for a, b in product(range(1, 9), range(0, 65, 7)):
        assert f(a, b) == size_in(size, {m: a, n: b})
