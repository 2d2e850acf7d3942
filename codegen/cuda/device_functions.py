"""The functions that emitted CUDA C calls beside CUDA's own: what each is for NVRTC, and what it
means.

Inline PTX stands here and nowhere else. A source brings the definitions that it uses
(`cuda_definitions`), behind `__CUDACC__`; where it is emulated, `emulated_definitions` stand in
their place, which say the same in C++ over emulation.h: exact in bits but for the order in which a
matrix product sums, and for which NaN a conversion gives.

Fragments are those of the PTX ISA: lane l holds of A (16 rows) the rows l/4 and l/4+8, of B (8
columns) the column l/4, of C the rows l/4 and l/4+8 at columns 2*(l%4) and the next; 16-bit and
8-bit elements lie packed in registers of 32 bits, the first in the low bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .dialect import CUDA

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """One function. signature: C++, with the template's parameters in front where it has any. cuda,
    emulation: the body for NVRTC, and the one for the emulation, where `line` is the caller's.
    """

    name: str
    signature: str
    cuda: str
    emulation: str

    @property
    def cuda_definition(self) -> str:
        """As a source has it."""
        template, _, plain = self.signature.rpartition("> ")
        head = f"{template}>\n" if template else ""
        return f"{head}{CUDA.inline} {plain}\n{{\n{_indented(self.cuda)}\n}}"

    @property
    def emulated_definition(self) -> str:
        """As the emulation has it: the line of a call is one more argument, given by itself."""
        template, _, plain = self.signature.rpartition("> ")
        head = f"{template}>\n" if template else ""
        comma = "" if plain.endswith("()") else ", "
        plain = f"{plain[:-1]}{comma}int line = __builtin_LINE())"
        body = f"(void)line;\n{self.emulation}"
        return f"{head}TW_MEANING {plain}\n{{\n{_indented(body)}\n}}"


def cuda_definitions(source: str) -> str:
    """What stands before the kernels of a source that calls these functions; empty for none."""
    used = _used(source, lambda function: function.cuda)
    if not used:
        return ""
    return "\n\n".join(
        ("#ifdef __CUDACC__", *(function.cuda_definition for function in used), "#endif\n")
    )


def emulated_definitions(source: str) -> str:
    """What the emulation reads before a source."""
    used = _used(source, lambda function: function.emulation)
    return "\n\n".join(function.emulated_definition for function in used)


def _used(source: str, body: Callable[[DeviceFunction], str]) -> list[DeviceFunction]:
    """The functions that a source calls, those that these call among them, callees first."""
    wanted = set(_WORD.findall(source))
    found = []
    for function in reversed(DEVICE_FUNCTIONS):
        if function.name in wanted:
            found.append(function)
            wanted.update(_WORD.findall(body(function)))
    return found[::-1]


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


_CONVERSIONS = (
    DeviceFunction(
        "tw_half_from_float",
        "unsigned short tw_half_from_float(float x)",
        cuda='unsigned short h;\nasm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));\nreturn h;',
        emulation="const unsigned bits = __float_as_uint(x), size = bits & 0x7fffffffu;\n"
        "const unsigned sign = bits >> 16 & 0x8000u;\n"
        "if (size > 0x7f800000u) return 0x7fff;\n"
        "if (size >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u); // 65520 and more\n"
        "if (size < 0x38800000u) { // below the least normal half, in units of the least half\n"
        "    const float units = rintf(__uint_as_float(size) * 16777216.0f);\n"
        "    return (unsigned short)(sign | (unsigned)units);\n"
        "}\n"
        "return (unsigned short)(\n"
        "    sign | (size + 0xfffu + (size >> 13 & 1u) - 0x38000000u) >> 13);",
    ),
    DeviceFunction(
        "tw_float_from_half",
        "float tw_float_from_half(unsigned short h)",
        cuda='float x;\nasm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));\nreturn x;',
        emulation="const unsigned sign = (h & 0x8000u) << 16, size = h & 0x7fffu;\n"
        "if (size >= 0x7c00u)\n"
        "    return __uint_as_float(sign | 0x7f800000u | (size & 0x3ffu) << 13);\n"
        "if (size < 0x400u)\n"
        "    return __uint_as_float(sign | __float_as_uint((float)size / 16777216.0f));\n"
        "return __uint_as_float(sign | ((size << 13) + 0x38000000u));",
    ),
    DeviceFunction(
        "tw_bfloat16_from_float",
        "unsigned short tw_bfloat16_from_float(float x)",
        cuda='unsigned short b;\nasm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(x));\nreturn b;',
        emulation="const unsigned bits = __float_as_uint(x);\n"
        "if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;\n"
        "return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);",
    ),
    DeviceFunction(
        "tw_float_from_bfloat16",
        "float tw_float_from_bfloat16(unsigned short b)",
        cuda="return __uint_as_float((unsigned)b << 16);",
        emulation="return __uint_as_float((unsigned)b << 16);",
    ),
    DeviceFunction(
        "tw_tf32_from_float",
        "unsigned tw_tf32_from_float(float x)",
        cuda='unsigned t;\nasm("cvt.rna.tf32.f32 %0, %1;" : "=r"(t) : "f"(x));\nreturn t;',
        emulation="const unsigned bits = __float_as_uint(x), size = bits & 0x7fffffffu;\n"
        "if (size > 0x7f800000u) return 0x7fffe000u;\n"
        "return size == 0x7f800000u ? bits : (bits + 0x1000u) & ~0x1fffu;",
    ),
)


_SWIZZLE = DeviceFunction(
    "tw_swizzled",
    "template <int Piece, int Row, int Mask> int tw_swizzled(int place)",
    cuda="return place ^ (place >> Row & Mask) << Piece;",
    emulation="return place ^ (place >> Row & Mask) << Piece;",
)


def _copy(size: int, cache: str) -> DeviceFunction:
    """A copy of 4, 8 or 16 bytes, kept by the caches named."""
    return DeviceFunction(
        f"tw_cp_async_{size}",
        f"void tw_cp_async_{size}(void* shared, const void* global)",
        cuda="const unsigned to = (unsigned)__cvta_generic_to_shared(shared);\n"
        f'asm volatile("cp.async.{cache}.shared.global [%0], [%1], {size};"\n'
        '    :: "r"(to), "l"(global) : "memory");',
        emulation=f"em_copy_async(shared, global, {size}, line);",
    )


_COPIES = (
    _copy(4, "ca"),
    _copy(8, "ca"),
    _copy(16, "cg"),
    DeviceFunction(
        "tw_cp_async_commit",
        "void tw_cp_async_commit()",
        cuda='asm volatile("cp.async.commit_group;" ::: "memory");',
        emulation="em_copy_commit();",
    ),
    DeviceFunction(
        "tw_cp_async_wait",
        "template <int Pending> void tw_cp_async_wait()",
        cuda='asm volatile("cp.async.wait_group %0;" :: "n"(Pending) : "memory");',
        emulation="em_copy_wait(Pending);",
    ),
)


def _ldmatrix(count: int, transposed: bool) -> DeviceFunction:
    """Load matrices of 8 rows of 16 bytes; lane i of the first 8*count names a row."""
    name = f"tw_ldmatrix_x{count}{'_trans' if transposed else ''}"
    registers = [f"r{i}" for i in range(count)]
    kind = f"x{count}{'.trans' if transposed else ''}.shared.b16"
    places = ", ".join(f"%{i}" for i in range(count))
    outputs = ", ".join(f'"=r"({register})' for register in registers)
    return DeviceFunction(
        name,
        f"void {name}(\n    {', '.join(f'unsigned& {r}' for r in registers)}, const void* row)",
        cuda="const unsigned from = (unsigned)__cvta_generic_to_shared(row);\n"
        f'asm volatile("ldmatrix.sync.aligned.m8n8.{kind} {{{places}}}, [%{count}];"\n'
        f'    : {outputs} : "r"(from) : "memory");',
        emulation=f"em_rows mine = {{row, {{}}}};\n"
        f"if (em_lane() < {8 * count}) em_touch_row(row, line);\n"
        f'em_whole_warp("{name}", &mine, em_finish_rows<{count}, '
        f"{'true' if transposed else 'false'}>, line);\n"
        + " ".join(f"{register} = mine.got[{i}];" for i, register in enumerate(registers)),
    )


_LDMATRIX = tuple(_ldmatrix(n, transposed) for transposed in (False, True) for n in (1, 2, 4))


def _mma(shape: str, element: str, sums: str, packed: int, read: str) -> DeviceFunction:
    """C += A B of one warp. packed: elements of a register; read: element i of a register `r`."""
    name = f"tw_mma_{shape}_{element}"
    kind, letter = ("float", "f") if sums == "f32" else ("int", "r")
    c, a, b = [[f"{n}{i}" for i in range(count)] for n, count in (("c", 4), ("a", 4), ("b", 2))]
    inputs = [f"unsigned {register}" for register in (*a, *b)]
    in_place = ", ".join(f'"+{letter}"({register})' for register in c)
    given = ", ".join(f'"r"({register})' for register in (*a, *b))
    wide = "double" if sums == "f32" else "long long"
    return DeviceFunction(
        name,
        f"void {name}(\n    {', '.join(f'{kind}& {register}' for register in c)},\n"
        f"    {', '.join(inputs)})",
        cuda=f'asm volatile("mma.sync.aligned.{shape}.row.col.{sums}.{element}.{element}.{sums} "\n'
        '    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"\n'
        f"    : {in_place}\n    : {given});",
        emulation=f"em_fragments<{kind}> mine = {{\n"
        f"    {{{', '.join(c)}}}, {{{', '.join(a)}}}, {{{', '.join(b)}}}}};\n"
        f'em_whole_warp("{name}", &mine, [](void *const *lanes, unsigned) {{\n'
        f"    em_multiply<{kind}, {wide}, {packed}>(\n"
        f"        lanes, [](unsigned r, int i) {{ return ({wide}){read}; }});\n"
        "}, line);\n" + " ".join(f"{register} = mine.c[{i}];" for i, register in enumerate(c)),
    )


_MMA = (
    _mma("m16n8k16", "f16", "f32", 2, "tw_float_from_half((unsigned short)(r >> 16 * i))"),
    _mma("m16n8k16", "bf16", "f32", 2, "tw_float_from_bfloat16((unsigned short)(r >> 16 * i))"),
    _mma("m16n8k8", "tf32", "f32", 1, "__uint_as_float(r >> i & ~0x1fffu)"),
    _mma("m16n8k32", "s8", "s32", 4, "(signed char)(r >> 8 * i)"),
)

DEVICE_FUNCTIONS: tuple[DeviceFunction, ...] = (
    *_CONVERSIONS,
    _SWIZZLE,
    *_COPIES,
    *_LDMATRIX,
    *_MMA,
)
