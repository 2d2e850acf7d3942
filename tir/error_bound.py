"""The one tolerance rule: how far an output may be from what its function means.

    |y - ref64| <= growth * (8 * max|ref_working - ref64| + 4 ulp of |ref64|)

- ref64: `evaluate` with every float promoted to float64.
- ref_working: the function in its own types, every reduction accumulated one by one in the order of
  its definition (`sequential`), at no more than 4,096 elements of each output. Each tensor between
  is computed in its own type as well, at the elements that the sample depends on. Where that takes
  more than BUDGET values, the sample becomes runs of neighbours, which share what they depend on,
  then a smaller one: a smaller sample can only make the rule stricter. Where the function has a
  scan, whose every element is computed in any case, the first sample is all elements: errors grow
  from step to step, in some elements far more than in others.
- ulp: of the output's type; 0 for integers and bools, which have the first term alone.
- A float64 output has no wider reference, so max|ref_working - ref64| counts as at least one ulp of
  the largest |ref64| of the sample.
- growth: 1, or the factor that an algorithm declares (Winograd F(4, 3), say).
- What is not finite must be the same: NaN for NaN, infinity for an infinity of that sign or for a
  number that the output's type cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .buffer import Buffer
from .definitions import Definition, definitions
from .dtype import FLOAT64, DType
from .errors import IRError
from .evaluate import Arrays, at_sizes, bind, evaluate
from .func import PrimFunc
from .sequential import dependencies, evaluate_at

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

SAMPLES = 4096
BUDGET = 1 << 26  # values that the sequential reference computes
_RUNS = (
    (SAMPLES, 1),
    (SAMPLES, 64),
    (SAMPLES // 4, 64),
    (SAMPLES // 16, 64),
    (64, 64),
    (8, 8),
    (1, 1),
)  # elements sampled, and how many of them are neighbours


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """One output: its reference in float64 and how far the working type strays from it.

    spread: max|ref_working - ref64| over `samples` elements.
    """

    name: str
    dtype: DType
    value: Array
    spread: float
    samples: int

    def allowed(self, growth: float = 1.0) -> Array:
        """The largest error allowed at each element, in float64."""
        bound = np.full(self.value.shape, 8.0 * self.spread)
        if self.dtype.is_float:
            bound = np.add(bound, np.multiply(_ulp(self.value, self.dtype), 4.0))
        result: Array = np.multiply(bound, growth)
        return result


def _ulp(value: Array, dtype: DType) -> Array:
    """The last place of each value in a float type; 0 where that holds it not, or as infinity."""
    with np.errstate(all="ignore"):
        size = np.abs(value).astype(dtype.numpy)
        above = np.spacing(size).astype(np.float64)  # not finite at the largest number of some
        below = np.subtract(size.astype(np.float64), np.nextafter(size, dtype.numpy.type(0)))
        ulp = np.where(np.isfinite(above), above, below)
    result: Array = np.where(np.isfinite(ulp), ulp, 0.0)
    return result


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on one set of outputs; true when every element is within its bound.

    ratio: the largest error over its bound; infinite where NaN or an infinity differs.
    output, index, got, expected, allowed: where that is, and the numbers.
    """

    passed: bool
    ratio: float
    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    allowed: float

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        place = f"{self.output}[{', '.join(map(str, self.index))}]" if self.index else self.output
        return (
            f"max error / bound {self.ratio:.3g} at {place}: got {self.got:.9g}, "
            f"expected {self.expected:.9g} within {self.allowed:.3g}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What the outputs of a function should be, and how far they may be from it."""

    function: str
    outputs: tuple[Expected, ...]
    growth: float = 1.0

    def compare(self, outputs: Mapping[str, Array] | Sequence[Array]) -> Comparison:
        """The verdict on `outputs`, in order or by name.

        Raises: IRError when one is missing or has another shape or type.
        """
        verdicts = [
            self._compare_one(expected, array) for expected, array in self._matched(outputs)
        ]
        return max(verdicts, key=lambda verdict: verdict.ratio)

    def _matched(
        self, outputs: Mapping[str, Array] | Sequence[Array]
    ) -> Iterator[tuple[Expected, Array]]:
        names = [expected.name for expected in self.outputs]
        given = outputs if isinstance(outputs, Mapping) else dict(zip(names, outputs, strict=False))
        if len(outputs) != len(names) or set(given) != set(names):
            listed = ", ".join(f"'{name}'" for name in names)
            raise IRError(
                f"compare: '{self.function}' gives {listed}; got {len(outputs)} arrays.",
                code="compare-outputs",
            )
        for expected in self.outputs:
            array = np.asarray(given[expected.name])
            if array.shape != expected.value.shape or array.dtype != expected.dtype.numpy:
                raise IRError(
                    f"compare: '{expected.name}' is {array.dtype}{list(array.shape)}; "
                    f"expected {expected.dtype}{list(expected.value.shape)}.",
                    code="compare-array",
                )
            yield expected, array

    def _compare_one(self, expected: Expected, array: Array) -> Comparison:
        if array.size == 0:
            return Comparison(True, 0.0, expected.name, (), 0.0, 0.0, 0.0)
        allowed = expected.allowed(self.growth)
        ratio = _ratios(array, expected, allowed)
        at = int(np.argmax(ratio))
        index = tuple(int(i) for i in np.unravel_index(at, array.shape))
        worst = float(ratio.flat[at])
        numbers = (float(a.flat[at]) for a in (array, expected.value, allowed))
        return Comparison(worst <= 1.0, worst, expected.name, index, *numbers)


def _ratios(array: Array, expected: Expected, allowed: Array) -> Array:
    """Error over bound at each element; infinite where one is not finite and the other differs."""
    with np.errstate(all="ignore"):
        rounded = expected.value.astype(expected.dtype.numpy)
        both_nan = np.logical_and(np.not_equal(array, array), np.not_equal(rounded, rounded))
        same = np.logical_or(np.equal(array, rounded), both_nan)
        error = np.abs(np.subtract(array.astype(np.float64), expected.value.astype(np.float64)))
        ratio = np.where(np.equal(error, 0), 0.0, np.divide(error, allowed))
        return np.where(np.isfinite(error), ratio, np.where(same, 0.0, np.inf))


def reference(func: PrimFunc, arrays: Arrays, *, growth: float = 1.0, seed: int = 0) -> Reference:
    """What the outputs of `func` should be for `arrays`, with the bound on each.

    arrays: the inputs and constants, in the order of the parameters or by name.
    growth: the declared error growth of the algorithm to be checked. seed: of the sample.
    Raises: IRError when the arrays do not fit, `func` is not canonical or an index leaves its
    buffer.
    """
    func = at_sizes(func, arrays)
    exact = evaluate(func, arrays, FLOAT64)
    listed = definitions(func)
    chosen, elements = _sample(func, listed, seed)
    working = evaluate_at(listed, bind(func, arrays), elements)
    return Reference(
        func.name,
        tuple(
            Expected(
                buffer.name,
                buffer.type,
                exact[buffer.name],
                _spread(buffer, exact[buffer.name], working[buffer], chosen[buffer]),
                len(chosen[buffer]),
            )
            for buffer in func.outputs
        ),
        growth,
    )


def _sample(
    func: PrimFunc, listed: Sequence[Definition], seed: int
) -> tuple[dict[Buffer, Array], dict[Buffer, Array]]:
    """The sampled elements of each output, and all elements that they depend on."""
    largest = max((buffer.size for buffer in func.outputs), default=0)
    whole = ((largest, 1),) if any(definition.ordered for definition in listed) else ()
    for count, run in (*whole, *_RUNS):
        rng = np.random.default_rng(seed)
        chosen = {buffer: _choose(buffer.size, count, run, rng) for buffer in func.outputs}
        budget = None if count == 1 else BUDGET
        elements = dependencies(listed, chosen, budget)
        if elements is not None:
            break
    assert elements is not None
    return chosen, elements


def _choose(size: int, count: int, run: int, rng: np.random.Generator) -> Array:
    """At most `count` of `size` elements, in runs of `run` neighbours."""
    if size <= count:
        return np.arange(size)
    starts = np.unique(rng.integers(0, -(-size // run), count // run)) * run
    flat: Array = (starts[:, None] + np.arange(run)).reshape(-1)
    return flat[np.less(flat, size)]


def _spread(buffer: Buffer, exact: Array, working: Array, chosen: Array) -> float:
    """max|ref_working - ref64| over the chosen elements, where both are finite."""
    wide = exact.reshape(-1)[chosen].astype(np.float64)
    with np.errstate(all="ignore"):
        error = np.abs(working.reshape(-1)[chosen].astype(np.float64) - wide)
        spread = float(np.max(error, initial=0.0, where=np.isfinite(error)))
        if buffer.type == FLOAT64:
            largest = np.max(np.abs(wide), initial=0.0, where=np.isfinite(wide))
            spread = max(spread, float(np.spacing(largest)))
    return spread
