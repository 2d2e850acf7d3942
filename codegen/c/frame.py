"""The C text around generated code: what every source starts with, and the few functions that
expressions may call, each of them one expression.
"""

from __future__ import annotations

import re

from ...tir.target import Target

TEAM = """\
struct tw_team { void (*barrier)(void *state, int thread); void *state; };
"""

# Each helper with those that it calls. Division by 0, an error of the program, gives 0 as in NumPy,
# and the smallest number divided by -1 wraps around: a trap would end the process.
HELPERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "tw_trunc": (
        """\
static inline int64_t tw_trunc(int64_t a, int64_t b)
{
    return b == -1 ? (int64_t)-(uint64_t)a : b ? a / b : 0;
}
""",
        (),
    ),
    "tw_rest": (
        """\
static inline int64_t tw_rest(int64_t a, int64_t b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}
""",
        (),
    ),
    "tw_floordiv": (
        """\
static inline int64_t tw_floordiv(int64_t a, int64_t b)
{
    return tw_trunc(a, b) - (tw_rest(a, b) && (a ^ b) < 0);
}
""",
        ("tw_trunc", "tw_rest"),
    ),
    "tw_upward": (
        """\
static inline int64_t tw_upward(int64_t rest, int64_t b)
{
    return rest && (rest ^ b) < 0 ? rest + b : rest;
}
""",
        (),
    ),
    "tw_floormod": (
        """\
static inline int64_t tw_floormod(int64_t a, int64_t b)
{
    return tw_upward(tw_rest(a, b), b);
}
""",
        ("tw_rest", "tw_upward"),
    ),
    "tw_div": (
        """\
static inline uint64_t tw_div(uint64_t a, uint64_t b)
{
    return b ? a / b : 0;
}
""",
        (),
    ),
    "tw_mod": (
        """\
static inline uint64_t tw_mod(uint64_t a, uint64_t b)
{
    return b ? a % b : 0;
}
""",
        (),
    ),
    "tw_shift_left": (
        """\
static inline uint64_t tw_shift_left(uint64_t a, uint64_t count)
{
    return count < 64 ? a << count : 0;
}
""",
        (),
    ),
    "tw_shift_right": (
        """\
static inline uint64_t tw_shift_right(uint64_t a, uint64_t count)
{
    return count < 64 ? a >> count : 0;
}
""",
        (),
    ),
    "tw_shift_signed": (
        """\
static inline int64_t tw_shift_signed(int64_t a, uint64_t count)
{
    return a >> (count < 64 ? count : 63);
}
""",
        (),
    ),
    "tw_aligned": (
        """\
static inline int tw_aligned(const void *p, size_t bytes)
{
    return (uintptr_t)p % bytes == 0;
}
""",
        (),
    ),
    "tw_load_i32": (
        """\
static inline int32_t tw_load_i32(const void *from)
{
    return *(int32_t *)memcpy(&(int32_t){ 0 }, from, 4);
}
""",
        (),
    ),
    "tw_load_first": (
        """\
static inline int32_t tw_load_first(const void *p, size_t n)
{
    return *(int32_t *)memcpy(&(int32_t){ 0 }, p, n);
}
""",
        (),
    ),
    "tw_to_f32": (
        """\
static inline float tw_to_f32(int32_t bits)
{
    return (union { int32_t bits; float value; }){ bits }.value;
}
""",
        (),
    ),
    "tw_of_f32": (
        """\
static inline int32_t tw_of_f32(float value)
{
    return (union { float value; int32_t bits; }){ value }.bits;
}
""",
        (),
    ),
    "tw_to_f64": (
        """\
static inline double tw_to_f64(int64_t bits)
{
    return (union { int64_t bits; double value; }){ bits }.value;
}
""",
        (),
    ),
    "tw_of_f64": (
        """\
static inline int64_t tw_of_f64(double value)
{
    return (union { double value; int64_t bits; }){ value }.bits;
}
""",
        (),
    ),
}


def prelude(target: Target, body: str) -> str:
    """What stands above `body`: headers, the table that every entry is handed, and the helpers that
    it calls.
    """
    header = "arm_neon.h" if target.isa == "neon" else "immintrin.h"
    intrinsics = f"#include <{header}>\n" if target.vector_bytes else ""
    parts = [f"{intrinsics}#include <stdint.h>\n#include <string.h>\n", TEAM]
    parts += [HELPERS[name][0] for name in _needed(body)]
    return "\n".join(parts)


def _needed(body: str) -> list[str]:
    wanted: dict[str, None] = {}

    def want(name: str) -> None:
        for other in HELPERS[name][1]:
            want(other)
        wanted.setdefault(name)

    for name in dict.fromkeys(re.findall(r"\btw_\w+(?=\()", body)):
        if name in HELPERS:
            want(name)
    return list(wanted)
