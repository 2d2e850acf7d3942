"""Is a user's reducer associative and commutative, and its identity neutral? Tried on samples.

A schedule relies on all three. They cannot be proved of arbitrary expressions, so they are tried on
a few dozen values in float64: enough to find an operator that never had them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtype import FLOAT64, DType
from ..errors import IRError
from ..expr import Var
from ..number import integer_range
from ..reduce import Reducer, Values
from ..reference.array_expr import evaluate_expr

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Arrays = tuple[Array, ...]

SAMPLES = 64
TOLERANCE = 1e-5


def check_law(reducer: Reducer, types: tuple[DType, ...]) -> None:
    """Refuse a reducer that breaks a law on sampled values, with the values. Raises: IRError."""
    a, b, c = (_sample(types, number) for number in range(3))
    start = tuple(
        np.broadcast_to(evaluate_expr(v, {}, working=FLOAT64), (SAMPLES,))
        for v in reducer.identity(types)
    )

    def joined(x: Arrays, y: Arrays) -> Arrays:
        return _joined(reducer, types, x, y)

    laws = (
        ("(a, b) and (b, a) give", (a, b), joined(a, b), joined(b, a)),
        (
            "((a, b), c) and (a, (b, c)) give",
            (a, b, c),
            joined(joined(a, b), c),
            joined(a, joined(b, c)),
        ),
        ("(identity, a) and a are", (a,), joined(start, a), a),
    )
    for what, operands, left, right in laws:
        apart = np.zeros(SAMPLES, dtype=bool)
        for x, y in zip(left, right, strict=True):
            apart |= ~np.isclose(x, y, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        if apart.any():
            at = int(np.argmax(apart))
            named = zip("abc", operands, strict=False)
            shown = ", ".join(f"{name} = {_text(value, at)}" for name, value in named)
            raise IRError(
                f"te.comm_reducer: '{reducer.name}' is no reducer: "
                f"{what} {_text(left, at)} and {_text(right, at)}, for {shown}; expected an "
                "associative and commutative operator, and an identity that leaves values alone.",
                code="te-reducer-law",
                hints=(
                    "a schedule takes the points in any order and in parts; where two tie, let "
                    "something else than their order decide, as te.argmax does by the place.",
                ),
            )


def _joined(reducer: Reducer, types: tuple[DType, ...], x: Arrays, y: Arrays) -> Arrays:
    """What the reducer makes of arrays of values."""
    mine: Values = tuple(Var(f"a{n}", kind) for n, kind in enumerate(types))
    other: Values = tuple(Var(f"b{n}", kind) for n, kind in enumerate(types))
    values = dict(zip((*mine, *other), (*x, *y), strict=True))
    with np.errstate(all="ignore"):
        return tuple(
            np.broadcast_to(evaluate_expr(made, values, working=FLOAT64), (SAMPLES,))  # type: ignore[arg-type]
            for made in reducer.combine(mine, other)
        )


def _sample(types: Sequence[DType], seed: int) -> Arrays:
    """Small numbers, so that some tie: halves for floats, whole numbers for integers."""
    rng = np.random.default_rng(seed)
    found: list[Array] = []
    for kind in types:
        if kind.is_bool:
            found.append(rng.integers(0, 2, SAMPLES).astype(bool))
        elif kind.is_float:
            found.append(rng.integers(-6, 7, SAMPLES) / 2.0)
        else:
            low, high = integer_range(kind)
            found.append(rng.integers(max(low, -6), min(high, 6) + 1, SAMPLES).astype(kind.numpy))
    return tuple(found)


def _text(values: Arrays, at: int) -> str:
    shown = [f"{value[at]:g}" for value in values]
    return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"
