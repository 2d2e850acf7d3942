"""Tensorized nests become instructions: text, values beside the interpreter, refusals."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen.c.build import build_artifact
from tilewright.codegen.lower.loops.erase_blocks import EraseBlocks
from tilewright.codegen.lower.lower import lower
from tilewright.codegen.lower.vector.tensorize import Tensorize
from tilewright.runtime.machine.host import host
from tilewright.tir.buffer import Buffer
from tilewright.tir.errors import InternalError, TargetError
from tilewright.tir.func import PrimFunc
from tilewright.tir.instructions.tensor_intrinsics import (
    TENSOR_INTRINSICS,
    tensor_intrinsic,
)
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.names import FEATURES
from tilewright.tir.target.target import Target, covers
from tilewright.tir.text.printer import print_stmt

from ...conftest import run_artifact

ON = [  # each instruction with each target that has it
    (name, Target.parse(f"c:{one}")) for name, i in TENSOR_INTRINSICS.items() for one in i.targets
]
VNNI, AVX_VNNI = (target for name, target in ON if name == "vpdpbusd")
TYPES = {
    "vpdpbusd": ("uint8", "int8", "int32"),
    "vpdpwssd": ("int16", "int16", "int32"),
    "vpmaddwd": ("int16", "int16", "int32"),
    "vdpbf16ps": ("bfloat16", "bfloat16", "float32"),
    "usdot": ("uint8", "int8", "int32"),
    "sdot": ("int8", "int8", "int32"),
    "udot": ("uint8", "uint8", "int32"),
    "smmla": ("int8", "int8", "int32"),
    "usmmla": ("uint8", "int8", "int32"),
    "ummla": ("uint8", "uint8", "int32"),
}
START = {name: "0.0" if of[-1] == "float32" else "int32(7)" for name, of in TYPES.items()}
NEST = """
def dot(A: {a}[2, {depth}], B: {b}[2, 3, {lanes}, {points}], C: output({c}[2, {width}])):
    for i in range(2):
        for j in range(2):
            for l in vectorized({lanes}):
                with block("C_init", vi=spatial(2, i), vj=spatial({width}, j * {lanes} + l), init="C"):
                    C[vi, vj] = {start}
            for k in range(3):
                for l in tensorized({lanes}, intrinsic="{name}"):
                    for q in range({points}):
                        with block("C", vi=spatial(2, i), vj=spatial({width}, j * {lanes} + l), vk=reduce({depth}, k * {points} + q)):
                            where(k <= i + 1)
                            C[vi, vj] = C[vi, vj] + cast(A[vi, vk], "{c}") * cast(B[vj // {lanes}, vk // {points}, vj % {lanes}, vk % {points}], "{c}")
"""  # noqa: E501

each = pytest.mark.parametrize(("name", "target"), ON)
every = pytest.mark.parametrize("lanes", [16, 8, 4])
each_of_each = pytest.mark.parametrize(
    ("name", "target", "lanes"),
    [
        (name, target, lanes)
        for name, target in ON
        for lanes in tensor_intrinsic(name).lanes_on(target)
    ],
)


def nest(lanes: int = 0, name: str = "vpdpbusd") -> PrimFunc:
    """The nest of an intrinsic, of as many lanes as it may have where nobody says how many."""
    points, lanes = tensor_intrinsic(name).points, lanes or tensor_intrinsic(name).lanes[0]
    a, b, c = TYPES[name]
    sizes = {"lanes": lanes, "width": 2 * lanes, "points": points, "depth": 3 * points}
    return parse(NEST.format(name=name, a=a, b=b, c=c, start=START[name], **sizes))


def arrays(func: PrimFunc) -> list[np.ndarray]:
    """Any integers; floats whose sums are exact."""
    rng = np.random.default_rng(0)
    return [integers(rng, b) if b.type.is_integer else eighths(rng, b) for b in func.inputs]


def integers(rng: np.random.Generator, buffer: Buffer) -> np.ndarray:
    kind = buffer.type.numpy
    limit = np.iinfo(kind)
    return rng.integers(limit.min, limit.max, buffer.shape, kind, endpoint=True)


def eighths(rng: np.random.Generator, buffer: Buffer) -> np.ndarray:
    return (rng.integers(-64, 64, buffer.shape) / 8).astype(buffer.type.numpy)


def small(func: PrimFunc) -> list[np.ndarray]:
    """Factors whose products are the smallest normal number, then about 2**-150, so that sums fall
    on either side of it; zeros and subnormal numbers among them.
    """
    rng = np.random.default_rng(0)
    made = []
    for b in func.inputs:
        depth = np.arange(6).reshape((6,) if len(b.shape) == 2 else (3, 1, 2))
        values = np.ldexp(rng.uniform(1, 2, b.shape), -75 - rng.integers(0, 2, b.shape))
        values = np.where(rng.random(b.shape) < 0.2, rng.choice([0.0, 1e-39], b.shape), values)
        values = np.where(depth < 2, np.where(depth == 0, 2.0**-63, 0.0), values)
        made.append((values * rng.choice([-1, 1], b.shape)).astype(b.type.numpy))
    return made


def need(target: Target) -> None:
    if not covers(host().instructions, target.instructions):
        pytest.skip(f"this machine has no {target.instructions}")


def test_a_nest_becomes_one_store_and_keeps_its_guard() -> None:
    text = print_stmt(Tensorize(VNNI)(EraseBlocks()(nest())).body)
    assert text.partition("for k in range(3):\n")[2] == (
        "            if k - i <= 1:\n"
        "                C[i, ramp(j * 16, 1, 16)] = vpdpbusd(C[i, ramp(j * 16, 1, 16)], "
        'broadcast(reinterpret(A[i, ramp(k * 4, 1, 4)], "int32"), 16), '
        "reinterpret(B[j, k, ramp(0, 1, 64) // broadcast(4, 64), ramp(0, 1, 64) % "
        'broadcast(4, 64)], "int32x16"))'
    )


@each_of_each
def test_lowered_code_has_the_values_of_the_loops(lanes: int, name: str, target: Target) -> None:
    func = nest(lanes, name)
    values = arrays(func)
    (expected,) = interpret(func, *values)
    (result,) = interpret(lower(func, target), *values, checked=True)
    np.testing.assert_array_equal(result, expected)


WORDS = """
def dot(A: int8[24], W: int32[3, 16], C: output(int32[16])):
    for l in vectorized(16):
        C[l] = int32(7)
    for k in range(3):
        for h in range(2):
            for l in tensorized(16, intrinsic="vpdpbusd"):
                for q in range(4):
                    {guard}C[l] = C[l] + cast(A[k * 8 + h * 4 + q], "int32") * ((W[k, l] >> cast(q * 8 + h * 4, "int32")) & int32(15))
"""  # noqa: E501


@pytest.mark.parametrize(
    ("guard", "operand"),
    [
        ("", " W[k, ramp(0, 1, 16)] >>"),
        ("if l < 11: ", " W[k, ramp(0, 1, 16)] >>"),  # of lanes that are off, too: they are there
    ],
)
def test_numbers_of_few_bits_are_taken_out_of_words(guard: str, operand: str) -> None:
    func = parse(WORDS.format(guard=guard))
    text = print_stmt(Tensorize(VNNI)(func).body)
    assert 'broadcast(reinterpret(A[ramp(k * 8 + h * 4, 1, 4)], "int32"), 16)' in text
    assert ' >> broadcast(cast(h * 4, "int32"), 16) & broadcast(int32(252645135), 16)' in text
    rng = np.random.default_rng(0)
    data, words = (integers(rng, buffer) for buffer in func.inputs)
    words[:, 11:] = 0 if guard else words[:, 11:]
    (expected,) = interpret(parse(WORDS.format(guard="")), data, words)
    (found,) = interpret(lower(func, VNNI), data, words, checked=True)
    np.testing.assert_array_equal(found, expected)
    assert operand in text


def test_words_that_are_not_there_are_not_read() -> None:
    short = WORDS.format(guard="if l < 11: ").replace("int32[3, 16]", "int32[3, 11]")
    text = print_stmt(Tensorize(VNNI)(parse(short)).body)
    assert "masked(W[k, ramp(0, 1, 16)], ramp(0, 1, 16) < broadcast(11, 16)) >>" in text


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@each_of_each
def test_compiled_code_has_them_too(lanes: int, name: str, target: Target) -> None:
    need(target)
    func = nest(lanes, name)
    values = arrays(func)
    artifact = build_artifact(func, target)
    (result,) = run_artifact(artifact, dict(zip(("A", "B"), values, strict=True)))
    np.testing.assert_array_equal(result, interpret(func, *values)[0])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@every
def test_compiled_code_takes_subnormal_numbers_as_zero_like_lowered_code(
    lanes: int, compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here: its code is compared where it is installed")
    monkeypatch.setenv("CC", compiler)
    target = Target.parse("c:avx512+bf16")
    need(target)
    func = nest(lanes, "vdpbf16ps")
    values = small(func)
    (expected,) = interpret(lower(func, target), *values)
    named = dict(zip(("A", "B"), values, strict=True))
    (result,) = run_artifact(build_artifact(func, target), named)
    assert result.tobytes() == expected.tobytes()
    (loops,) = interpret(func, *values)
    assert 0 < np.count_nonzero(expected) < np.count_nonzero(loops)


@pytest.mark.parametrize(
    ("name", "target", "file"),
    [
        ("vpdpbusd", "avx512+vnni", "dot_bytes"),
        ("vpdpbusd", "avx2+vnni", "dot_bytes_avx2"),
        ("vpdpwssd", "avx512+vnni", "dot_int16"),
        ("vpmaddwd", "avx2", "dot_int16_avx2"),
        ("vdpbf16ps", "avx512+bf16", "dot_bfloat16"),
        ("usdot", "neon+i8mm", "dot_bytes_neon"),
        ("sdot", "neon+dotprod", "dot_signed_bytes_neon"),
        ("udot", "neon+dotprod", "dot_unsigned_bytes_neon"),
        ("smmla", "neon+i8mm", "rows_signed_bytes_neon"),
        ("usmmla", "neon+i8mm", "rows_bytes_neon"),
        ("ummla", "neon+i8mm", "rows_unsigned_bytes_neon"),
    ],
)
def test_the_c_text_is_one_instruction_between_a_broadcast_and_a_load(
    name: str, target: str, file: str, golden: Callable[[str, str], None]
) -> None:
    one = Target.parse(f"c:{target}")
    func = nest(tensor_intrinsic(name).lanes_on(one)[0], name)
    golden(f"codegen/{file}.c", build_artifact(func, one).source)


@each
def test_code_says_which_features_it_uses(name: str, target: Target) -> None:
    lanes = tensor_intrinsic(name).lanes_on(target)[0]
    func = nest(lanes, name)
    tensorized = f'tensorized({lanes}, intrinsic="{name}")'
    plain = parse(str(func).replace(tensorized, f"range({lanes})"))
    whole = Target("c", target.isa, features=FEATURES[target.isa])
    assert build_artifact(func, whole).target == target
    assert str(build_artifact(plain, whole).target) == f"c:{target.isa}"


@pytest.mark.parametrize(
    ("name", "lacking"),
    [
        (name, lacking)
        for name, intrinsic in TENSOR_INTRINSICS.items()
        for lacking in ("c:avx512", "c:avx2", "c:scalar", "c:neon")
        if not intrinsic.is_on(Target.parse(lacking))
    ],
)
def test_a_target_without_the_instruction_is_refused(lacking: str, name: str) -> None:
    with pytest.raises(TargetError) as caught:
        lower(nest(name=name), Target.parse(lacking))
    assert str(caught.value) == (
        f"TargetError: Tensorize: loop 'l' is computed by '{name}', which '{lacking}' lacks; "
        f"expected {tensor_intrinsic(name).needs}. [lower-intrinsic]\n"
        "  Hint: a Target names features of the machine; without them, vectorize the loop."
    )


def test_more_lanes_than_a_register_holds_are_refused() -> None:
    with pytest.raises(TargetError) as caught:
        lower(nest(16), AVX_VNNI)
    assert str(caught.value) == (
        "TargetError: Tensorize: 'vpdpbusd' computes 16 lanes of loop 'l', more than a register of "
        "'c:avx2+vnni' holds; expected 8 or 4. [lower-lanes]\n"
        "  Hint: schedule for the target: Schedule(func, target) refuses such a step."
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


def test_elements_that_are_there_for_some_values_of_a_loop_are_refused() -> None:
    text = str(nest()).replace("where(k <= i + 1)", "where(k * 4 + q < i + 9)")
    with pytest.raises(TargetError) as caught:
        build_artifact(parse(text), VNNI)
    assert str(caught.value) == (
        "TargetError: c: which elements of 'A' are taken depends on 'i' and 'k'; expected a "
        "condition that is known here. [c-undecided-mask]\n"
        '  Hint: cut the loops of the condition (tail="mask"), or unroll them.'
    )
