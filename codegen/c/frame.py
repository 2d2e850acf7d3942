"""The C text around generated code: what every source starts with, and the few functions that
expressions may call.

This is the only longer C text of the back end; all else comes from the program, one expression or
statement at a time.
"""

from __future__ import annotations

import re

from ...tir.target import Target

TEAM = """\
struct tw_team { void (*barrier)(void *state, int thread); void *state; };
"""

# Each helper with those that it calls. Division by 0, an error of the program, gives 0 as in NumPy:
# a trap would end the process.
HELPERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "tw_floordiv": (
        """\
static inline int64_t tw_floordiv(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return b ? (int64_t)(0 - (uint64_t)a) : 0;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
""",
        (),
    ),
    "tw_floormod": (
        """\
static inline int64_t tw_floormod(int64_t a, int64_t b)
{
    const int64_t rest = b == 0 || b == -1 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
""",
        (),
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
    "tw_to_f32": (
        """\
static inline float tw_to_f32(int32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
""",
        (),
    ),
    "tw_of_f32": (
        """\
static inline int32_t tw_of_f32(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
""",
        (),
    ),
    "tw_to_f64": (
        """\
static inline double tw_to_f64(int64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
""",
        (),
    ),
    "tw_of_f64": (
        """\
static inline int64_t tw_of_f64(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
""",
        (),
    ),
    "tw_add_to_odd": (
        """\
/* a + b; if not exact, the neighbour whose last bit is 1: so the next rounding is the only one. */
static inline double tw_add_to_odd(double a, double b)
{
    const double sum = a + b, part = sum - a, lost = (a - (sum - part)) + (b - part);
    const int64_t bits = tw_of_f64(sum);
    if ((lost > 0 || lost < 0) && (bits & 1) == 0)
        return tw_to_f64(bits + ((lost > 0) == (sum > 0) ? 1 : -1));
    return sum;
}
""",
        ("tw_of_f64", "tw_to_f64"),
    ),
    "tw_fmaf": (
        """\
/* a*b + c, rounded once, without such an instruction: the product is exact in double precision. */
static inline float tw_fmaf(float a, float b, float c)
{
    return (float)tw_add_to_odd((double)a * (double)b, (double)c);
}
""",
        ("tw_add_to_odd",),
    ),
    "tw_fma": (
        """\
/* a*b + c, rounded once, without an instruction (Boldo and Melquiond), in the normal range. */
static inline double tw_fma(double a, double b, double c)
{
    const double as = a * 134217729.0, ah = as - (as - a), al = a - ah;
    const double bs = b * 134217729.0, bh = bs - (bs - b), bl = b - bh;
    const double high = a * b, low = ((ah * bh - high) + ah * bl + al * bh) + al * bl;
    const double t = c + low, tp = t - c, tl = (c - (t - tp)) + (low - tp);
    const double v = high + t, vp = v - high, vl = (high - (v - vp)) + (t - vp);
    const double rest = tw_add_to_odd(tl, vl);
    return rest - rest == 0 ? v + rest : high + c;
}
""",
        ("tw_add_to_odd",),
    ),
}


def prelude(target: Target, body: str) -> str:
    """What stands above `body`: headers, the table that every entry is handed, and the helpers that
    it calls.
    """
    intrinsics = "#include <immintrin.h>\n" if target.vector_bytes else ""
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
