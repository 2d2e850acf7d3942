"""The functions that expressions of both languages call, each of them one expression.

`$int64` and other names of types stand for what a dialect calls them. Division by 0, an error of
the program, gives 0 as in NumPy, and the smallest number divided by -1 wraps around: a trap would
end the process.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Helper:
    """One function: the type of its result, its parameters, and the expression that it returns."""

    result: str
    parameters: str
    expression: str


HELPERS = {
    "tw_trunc": Helper(
        "$int64", "$int64 a, $int64 b", "b == -1 ? ($int64)-($uint64)a : b ? a / b : 0"
    ),
    "tw_rest": Helper("$int64", "$int64 a, $int64 b", "b == 0 || b == -1 ? 0 : a % b"),
    "tw_floordiv": Helper(
        "$int64", "$int64 a, $int64 b", "tw_trunc(a, b) - (tw_rest(a, b) && (a ^ b) < 0)"
    ),
    "tw_upward": Helper(
        "$int64", "$int64 rest, $int64 b", "rest && (rest ^ b) < 0 ? rest + b : rest"
    ),
    "tw_floormod": Helper("$int64", "$int64 a, $int64 b", "tw_upward(tw_rest(a, b), b)"),
    "tw_div": Helper("$uint64", "$uint64 a, $uint64 b", "b ? a / b : 0"),
    "tw_mod": Helper("$uint64", "$uint64 a, $uint64 b", "b ? a % b : 0"),
    "tw_shift_left": Helper("$uint64", "$uint64 a, $uint64 count", "count < 64 ? a << count : 0"),
    "tw_shift_right": Helper("$uint64", "$uint64 a, $uint64 count", "count < 64 ? a >> count : 0"),
    "tw_shift_signed": Helper(
        "$int64", "$int64 a, $uint64 count", "a >> (count < 64 ? count : 63)"
    ),
    # a - b, also where a is 0 and b is never -0: gcc 12 takes -b for that, which is -0 where b is 0
    "tw_minus_f32": Helper("$float32", "$float32 a, $float32 b", "b == 0 ? a : a - b"),
    "tw_minus_f64": Helper("$float64", "$float64 a, $float64 b", "b == 0 ? a : a - b"),
}
