"""The passes in order: verified before and after, timed, named in errors."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.pipeline import lower, lowering_passes, run_passes
from tilewright.codegen.lower.unroll import Unroll
from tilewright.tir.errors import TargetError
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target import Target
from tilewright.tir.verify.verify import VerificationError

AVX2 = Target.parse("c:avx2")
TEXT = (
    "def f(A: float32[9], C: output(float32[9])):\n    for i in unrolled(9):\n        C[i] = A[i]\n"
)


def test_each_pass_is_watched_in_order() -> None:
    seen: list[str] = []

    def watch(name: str, func: PrimFunc, seconds: float) -> None:
        assert seconds >= 0
        seen.append(name)

    result = lower(parse(TEXT), AVX2, watch=watch)
    assert seen == [type(step).__name__ for step in lowering_passes(AVX2)]
    assert len(str(result).splitlines()) == 10


def test_an_error_names_its_pass_first() -> None:
    with pytest.raises(TargetError, match=r"^TargetError: Unroll: unroll: loops 'i' "):
        run_passes(parse(TEXT), (Unroll(AVX2, max_steps=4),))


def test_a_function_of_another_stage_is_refused() -> None:
    func = parse(
        "def f(A: float32[16], C: output(float32[16])):\n    C[ramp(0, 1, 16)] = A[ramp(0, 1, "
        "16)]\n"
    )
    with pytest.raises(VerificationError):
        lower(func, AVX2)
    assert lower(func, AVX2, checked=False).name == "f"
