"""Every entry of the ISA tables is one short expression that a compiler accepts."""

from __future__ import annotations

import re

import pytest

from tilewright.codegen.c.dialect import C
from tilewright.codegen.isa.isa import Isa, isa
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.tir.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, DType
from tilewright.tir.dtype import dtype as as_dtype
from tilewright.tir.instructions.tensor_intrinsics import TENSOR_INTRINSICS
from tilewright.tir.intrinsics import ALL
from tilewright.tir.target.target import ISAS, Target

LONGEST = 120
# NEON's are compiled in test_neon.py
X86 = ("scalar", "avx2", "avx2+vnni", "avx512", "avx512+vnni+bf16")
POINTERS = {
    "load",
    "load_masked",
    "load_merged",
    "gather",
    "gather_masked",
    "store",
    "store_masked",
}


@pytest.mark.parametrize("name", X86)
def test_an_entry_is_one_short_expression_without_control_flow(name: str) -> None:
    for (operation, dtype), template in isa(Target.parse(f"c:{name}")).operations.items():
        text = template.format("a", "b", "c", "d")
        assert len(text) <= LONGEST, f"{operation} of {dtype}: {len(text)} characters"
        assert not re.search(r"\bfor\b|\bwhile\b|[{};]", text), f"{operation} of {dtype}: {text}"


@pytest.mark.parametrize("name", ["avx2", "avx512"])
def test_vectors_have_the_arithmetic_that_kernels_are_made_of(name: str) -> None:
    tables = isa(Target.parse(f"c:{name}"))
    for dtype in (t for t in tables.types if t.bits >= 32):
        if dtype.is_float:
            needed = {
                "add",
                "sub",
                "mul",
                "div",
                "fma",
                "min",
                "max",
                "sqrt",
                "abs",
                "round",
                "floor",
            }
        else:
            needed = {"add", "sub", "shift_left", "shift_left_by", "and", "or", "xor"}
        needed |= {
            "load",
            "load_masked",
            "store",
            "store_masked",
            "gather",
            "gather_masked",
            "blend",
        }
        assert [n for n in sorted(needed) if not tables.has(n, dtype)] == []


def test_each_declared_intrinsic_is_an_instruction_of_avx512_or_elementary() -> None:
    tables = isa(Target.parse("c:avx512"))
    for dtype in (FLOAT32.with_lanes(16), FLOAT64.with_lanes(8), FLOAT32, FLOAT64):
        missing = [i.name for i in ALL if not i.elementary and not tables.has(i.name, dtype)]
        assert missing == []


def test_each_tensor_intrinsic_is_an_instruction_of_its_target_alone() -> None:
    plain = isa(Target.parse("c:avx512"))
    for name, intrinsic in TENSOR_INTRINSICS.items():
        for target in (Target.parse(f"c:{name}") for name in intrinsic.targets):
            tables = isa(target)
            for lanes in intrinsic.lanes_on(target):
                dtype = intrinsic.define(lanes).outputs[0].type.with_lanes(lanes)
                assert (tables.has(name, dtype), plain.has(name, dtype)) == (True, False)
    assert not isa(Target.parse("c:avx2")).has("vpdpbusd", INT32.with_lanes(8))


def test_bytes_and_truths_are_loaded_widened_and_stored_beside_numbers_of_32_bits() -> None:
    tables = isa(Target.parse("c:avx512"))
    memory = ("load", "load_masked", "store", "store_masked")
    for lanes in (16, 8):
        truths = BOOL.with_lanes(lanes)
        assert all(tables.has(name, truths) for name in memory)
        for kind in ("int8", "uint8"):
            byte = as_dtype(kind).with_lanes(lanes)
            assert all(tables.has(name, byte) for name in (*memory, "blend", "cast_float32"))
            assert tables.has(f"cast_{kind}", INT32.with_lanes(lanes))
    short = isa(Target.parse("c:avx2"))
    assert all(short.has(name, BOOL.with_lanes(8)) for name in ("load", "store"))
    assert not short.has("load_masked", BOOL.with_lanes(8))


def test_scalar_has_no_vectors() -> None:
    tables = isa(ISAS["scalar"])
    assert (tables.types, tables.vector_bytes) == ({}, 0)


@pytest.mark.parametrize(
    ("name", "lanes", "data", "expected"),
    [
        ("avx512", 16, None, "__mmask16"),
        ("avx512", 8, None, "__mmask8"),
        ("avx2", 8, None, "__m256i"),
        ("avx2", 4, None, "__m256i"),
        ("avx2", 4, INT32.with_lanes(4), "__m128i"),
        ("avx2", 4, INT64.with_lanes(4), "__m256i"),
    ],
)
def test_masks_are_bits_or_vectors_as_wide_as_the_data(
    name: str, lanes: int, data: DType | None, expected: str
) -> None:
    assert isa(Target.parse(f"c:{name}")).mask_type(lanes, data) == expected


def _operands(tables: Isa, operation: str, dtype: DType) -> list[str]:
    """The C types of an entry's operands; of one that is a number in the text, the number."""
    scalar = C.type_of(dtype)
    vector = tables.types.get(dtype, scalar)
    if dtype.lanes == 1:
        return [scalar] * 3
    if dtype.is_bool:  # a mask, which is as wide as those that variables hold
        vector = tables.mask_type(dtype.lanes)
    mask = tables.mask_type(dtype.lanes, dtype)
    if operation in ("mask_all", "mask_both", "mask_either"):
        return ["int", mask]
    if operation in ("mask_first",):
        return ["int64_t"]
    if operation in ("mask_and", "mask_or", "mask_not", "mask_widen", "mask_narrow"):
        return [mask if operation != "mask_narrow" else "__m256i", mask]
    if operation == "broadcast":
        return [scalar]
    if operation in ("shift_left", "shift_right"):
        return [vector, "3"]
    if operation.startswith("lanes_"):
        return [vector, "1"]
    if operation in TENSOR_INTRINSICS:
        carried = TENSOR_INTRINSICS[operation].carried
        assert carried is not None
        return [vector, *[tables.types[carried.with_lanes(dtype.lanes)]] * 2]
    if operation in ("lookup", "lookup_high"):
        words = tables.types[INT32.with_lanes(dtype.lanes)]
        return [words, vector if operation == "lookup" else words]
    if operation in ("shuffle", "shuffle_one"):
        words = as_dtype(f"int{dtype.bits}").with_lanes(dtype.lanes)
        is_vector = tables.has("shuffle_order", dtype)
        return [vector, vector, tables.types[words] if is_vector else "0x1b", "0x5"]
    if operation in ("lookup_table", "shuffle_order"):
        return [", ".join("0" * dtype.lanes)]
    if operation.startswith("elements_"):
        return [", ".join("0" * (dtype.lanes * 32 // int(operation.removeprefix("elements_"))))]
    pointer = f"{scalar} *"
    if operation.startswith("load_bits_masked"):
        return [pointer, "uint64_t"]
    return {
        "blend": [mask, vector, vector],
        "blend_zero": [mask, vector],
        "load": [pointer],
        "load_masked": [pointer, mask],
        "load_merged": [pointer, mask, vector],
        "store": [pointer, vector],
        "store_masked": [pointer, mask, vector],
        "stream": [pointer, vector],
        "gather": [pointer, tables.types[INT32.with_lanes(dtype.lanes)]],
        "gather_masked": [pointer, tables.types[INT32.with_lanes(dtype.lanes)], mask, vector],
    }.get(operation, [vector] * 3)


def _is_number(text: str) -> bool:
    """Whether an operand is a number, or several."""
    return text[0].isdigit()


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", X86)
def test_a_compiler_accepts_every_entry(name: str) -> None:
    target = Target.parse(f"c:{name}")
    tables = isa(target)
    head = ["#include <immintrin.h>" if name != "scalar" else "", "#include <stdint.h>"]
    head += ["#include <stddef.h>", "#include <string.h>"]
    lines = list[str]()
    for number, ((operation, dtype), template) in enumerate(tables.operations.items()):
        types = _operands(tables, operation, dtype)
        used = [n for n in range(4) if f"{{{n}}}" in template]
        names = [types[n] if n < len(types) and _is_number(types[n]) else f"a{n}" for n in range(4)]
        listed = ", ".join(f"{types[n]} a{n}" for n in used if not _is_number(types[n])) or "void"
        text = template.format(*names)
        lines.append(f"void f{number}({listed}); void f{number}({listed}) {{ (void)({text}); }}")
    source = [*head, *C.definitions("\n".join(lines)), *lines]
    assert compile_shared("\n".join(source) + "\n", target).binary
