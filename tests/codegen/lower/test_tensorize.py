"""Tensorized nests become instructions: text, values beside the interpreter, refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen.c.build import build_artifact
from tilewright.codegen.lower.erase_blocks import EraseBlocks
from tilewright.codegen.lower.pipeline import lower
from tilewright.codegen.lower.tensorize import Tensorize
from tilewright.runtime.host import host
from tilewright.tir.errors import InternalError, TargetError
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.parser import parse
from tilewright.tir.printer import print_stmt
from tilewright.tir.target import Target, covers

from ..conftest import run_artifact

VNNI = Target.parse("c:avx512+vnni")
NEST = """
def dot(A: uint8[2, 12], B: int8[2, 3, LANES, 4], C: output(int32[2, WIDTH])):
    for i in range(2):
        for j in range(2):
            for l in vectorized(LANES):
                with block("C_init", vi=spatial(2, i), vj=spatial(WIDTH, j * LANES + l), init="C"):
                    C[vi, vj] = int32(7)
            for k in range(3):
                for l in tensorized(LANES, intrinsic="vpdpbusd"):
                    for q in range(4):
                        with block("C", vi=spatial(2, i), vj=spatial(WIDTH, j * LANES + l), vk=reduce(12, k * 4 + q)):
                            where(k <= i + 1)
                            C[vi, vj] = C[vi, vj] + cast(A[vi, vk], "int32") * cast(B[vj // LANES, vk // 4, vj % LANES, vk % 4], "int32")
"""  # noqa: E501


def nest(lanes: int = 16) -> PrimFunc:
    return parse(NEST.replace("LANES", str(lanes)).replace("WIDTH", str(2 * lanes)))


def arrays(func: PrimFunc) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    kinds = [(p.buffer.shape, p.dtype.numpy) for p in func.parameters if p.role == "input"]
    limits = [np.iinfo(kind) for _, kind in kinds]
    return [
        rng.integers(limit.min, limit.max, shape, kind, endpoint=True)
        for (shape, kind), limit in zip(kinds, limits, strict=True)
    ]


def test_a_nest_becomes_one_store_and_keeps_its_guard() -> None:
    text = print_stmt(Tensorize(VNNI)(EraseBlocks()(nest())).body)
    assert text.partition("for k in range(3):\n")[2] == (
        "            if k - i <= 1:\n"
        "                C[i, ramp(j * 16, 1, 16)] = vpdpbusd(C[i, ramp(j * 16, 1, 16)], "
        'broadcast(reinterpret(A[i, ramp(k * 4, 1, 4)], "int32"), 16), '
        "reinterpret(B[j, k, ramp(0, 1, 64) // broadcast(4, 64), ramp(0, 1, 64) % "
        'broadcast(4, 64)], "int32x16"))'
    )


@pytest.mark.parametrize("lanes", [16, 8, 4])
def test_lowered_code_has_the_values_of_the_loops(lanes: int) -> None:
    func = nest(lanes)
    values = arrays(func)
    (expected,) = interpret(func, *values)
    (result,) = interpret(lower(func, VNNI), *values, checked=True)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.needs_cc
@pytest.mark.parametrize("lanes", [16, 8, 4])
def test_compiled_code_has_them_too(lanes: int) -> None:
    if not covers(host().instructions, VNNI.instructions):
        pytest.skip("this machine has no AVX512-VNNI")
    func = nest(lanes)
    values = arrays(func)
    artifact = build_artifact(func, VNNI)
    (result,) = run_artifact(artifact, dict(zip(("A", "B"), values, strict=True)))
    np.testing.assert_array_equal(result, interpret(func, *values)[0])


def test_the_c_text_is_one_instruction_between_a_broadcast_and_a_load(
    golden: Callable[[str, str], None],
) -> None:
    golden("codegen/dot_bytes.c", build_artifact(nest(), VNNI).source)


def test_code_says_which_features_it_uses() -> None:
    plain = parse(str(nest()).replace('tensorized(16, intrinsic="vpdpbusd")', "range(16)"))
    assert str(build_artifact(nest(), VNNI).target) == "c:avx512+vnni"
    assert str(build_artifact(plain, VNNI).target) == "c:avx512"


@pytest.mark.parametrize("target", ["c:avx512", "c:avx2", "c:scalar"])
def test_a_target_without_the_instruction_is_refused(target: str) -> None:
    with pytest.raises(TargetError) as caught:
        lower(nest(), Target.parse(target))
    assert str(caught.value) == (
        f"TargetError: Tensorize: loop 'l' is computed by 'vpdpbusd', which '{target}' lacks; "
        "expected c:avx512+vnni. [lower-intrinsic]"
    )


def test_a_nest_that_is_another_one_by_now_is_a_defect() -> None:
    text = str(nest()).replace("q in range(4)", "q in range(2)")
    with pytest.raises(InternalError) as caught:
        Tensorize(VNNI)(EraseBlocks()(parse(text)))
    assert str(caught.value).splitlines()[0] == (
        "InternalError: tensorize: the nest of loop 'l' is no longer 'vpdpbusd': its loops are 'l' "
        "of 16, 'q' of 2; expected a loop of 16 or 8 or 4 lanes and, directly inside, one of 4 "
        "reduction points. [lower-tensorize]"
    )
