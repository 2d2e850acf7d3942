"""The helpers that expressions call, against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.c.frame import prelude
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.runtime.toolchain.library import Library, ffi
from tilewright.tir.target.target import ISAS, Target

pytestmark = pytest.mark.needs_cc


def test_a_source_has_the_header_of_its_vectors_and_its_helpers() -> None:
    text = prelude(ISAS["scalar"], "y = tw_div(a, b);")
    assert text.count(" tw_div(") == 1
    assert "immintrin" not in text
    assert "immintrin" in prelude(Target.parse("c:avx2"), "")


def _run(kind: str, expression: str, inputs: list[np.ndarray], result: np.ndarray) -> np.ndarray:
    body = f"for (int64_t i = 0; i < {len(result)}; i++) y[i] = {expression};"
    declared = " ".join(
        f"const {kind} *{name} = args[{n}];" for n, name in enumerate("abc"[: len(inputs)])
    )
    head = "void f(void *const *args, const struct tw_team *team, int thread, int threads)"
    unused = "(void)team, (void)thread, (void)threads;"
    result_pointer = f"{kind} *y = args[{len(inputs)}];"
    helpers = prelude(ISAS["scalar"], body)
    source = f"{helpers}\n{head} {{ {unused} {declared} {result_pointer} {body} }}\n"
    library = Library(compile_shared(source, ISAS["scalar"]), name="helpers")
    pointers = [ffi.from_buffer("char[]", array) for array in (*inputs, result)]
    library.entry("f")(ffi.new("void *[]", pointers), ffi.NULL, 0, 1)
    return result


def test_floor_division_rounds_down_for_every_sign() -> None:
    pairs = [(a, b) for a in (-7, -6, -1, 0, 1, 6, 7) for b in (-3, -1, 1, 3)]
    a, b = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    quotient = _run("int64_t", "tw_floordiv(a[i], b[i])", [a, b], np.empty(len(a), np.int64))
    rest = _run("int64_t", "tw_floormod(a[i], b[i])", [a, b], np.empty(len(a), np.int64))
    np.testing.assert_array_equal(quotient, a // b)
    np.testing.assert_array_equal(rest, a % b)
