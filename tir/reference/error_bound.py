"""The one tolerance rule: how far an element of an output may be from what its function means.

    |y - ref64| <= growth * (factor * scale + 4 ulp of |ref64|)
    factor = 8 * max(|ref_working - ref64| / scale), at least 1, at most 8 * sqrt(n)

- ref64: `evaluate` with every float promoted to float64.
- scale: how far rounding may take this element, to first order (error_analysis.py): of a sum the
  roundoff of its terms, of exp(x) that of the result and what the error of x makes of it. So an
  element is allowed what its own terms say, and a small one no error of a large one.
- ref_working: the function in its own types, every reduction accumulated one by one in the order of
  its definition (`sequential`), at no more than 512 elements of each output. Each tensor between
  is computed in its own type as well, at the elements that the sample depends on. Where that takes
  more than `budget` values, the sample becomes runs of neighbours, which share what they depend on,
  then a smaller one. Where the function has a scan, whose every element is computed in any case,
  the first sample is all elements: errors grow from step to step, in some elements far more than in
  others.
- n: floats that are added into one element. Roundings that fall either way add up to the square
  root of their number; a chain that loses its terms altogether goes further, and is wrong although
  the definition, read as a chain, says the same. A strict build is that chain: no limit there.
- ulp: of the output's type; 0 for integers and bools. An output of a storage type (bfloat16, say)
  is computed in float32 and rounded once: it may be half of its own ulp off beside what the value
  may be that is rounded, with 4 ulp of float32.
- A float64 output has no wider reference, so its factor is at least 2.
- growth: 1, or the factor that an algorithm declares.
- What is not finite must be the same: NaN for NaN, infinity for an infinity of that sign or for a
  number that the output's type cannot hold; next to the largest number either is right. Where a
  value on the way is finite but beyond its type, the scale is infinite: nothing is known there.
  An output of a type without infinities and NaN is compared with what that type has instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..buffer import Buffer
from ..dtype import FLOAT32, FLOAT64, DType
from ..errors import IRError
from ..expr import Cast
from ..func import PrimFunc
from ..number import saturates
from .definitions import Definition, definitions
from .error_analysis import before_last_rounding, rounding_errors, summed_terms
from .evaluate import Arrays, at_sizes, bind, evaluate_all
from .roundings import UNIT
from .sequential import dependencies, evaluate_at

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

SAMPLES = 512
BUDGET = 1 << 26  # values that the sequential reference computes
_SPREAD = 8.0  # times what the sample strays
_RUNS = (
    (SAMPLES, 1),
    (SAMPLES, 64),
    (SAMPLES // 4, 64),
    (64, 64),
    (8, 8),
    (1, 1),
)  # elements sampled, and how many of them are neighbours


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Elements of the outputs, and all that they depend on: the same for any data. listed: the
    definitions of the function.
    """

    listed: Sequence[Definition]
    chosen: Mapping[Buffer, Array]
    elements: Mapping[Buffer, Array]


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """One output: its reference in float64 and how far its type may stray from it.

    scale: of each element, None where all are exact. factor: how many times the scale is allowed.
    spread: max|ref_working - ref64| over `samples` elements.
    """

    name: str
    dtype: DType
    value: Array
    scale: Array | None
    factor: float
    spread: float
    samples: int

    def allowed(self, growth: float = 1.0) -> Array:
        """The largest error allowed at each element, in float64."""
        bound = np.zeros(self.value.shape)
        if self.scale is not None:
            bound = np.multiply(self.scale, self.factor)
        if not self.dtype.is_float:
            return np.multiply(bound, growth)
        computed = FLOAT32 if self.dtype.is_storage else self.dtype
        bound = np.add(bound, np.multiply(_ulp(self.value, computed), 4.0))
        result: Array = np.multiply(bound, growth)
        if self.dtype.is_storage:
            result = np.add(result, np.multiply(_ulp(self.value, self.dtype), 0.5))
        return result


def _ulp(value: Array, dtype: DType) -> Array:
    """The last place of each value in a float type; 0 where that holds it not, or as infinity."""
    with np.errstate(all="ignore"):
        size = np.abs(value).astype(dtype.numpy)
        ulp: Array = np.spacing(size).astype(np.float64)
        inside = np.logical_and(np.isfinite(ulp), np.greater(ulp, 0))
        if not np.all(inside):  # at the largest number of some types, and beyond
            below = np.subtract(size.astype(np.float64), np.nextafter(size, dtype.numpy.type(0)))
            ulp = np.where(inside, ulp, below)
            ulp = np.where(np.isfinite(ulp), ulp, 0.0)
    return ulp


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
        wide: Array
        got: Array
        wide, got = (a.astype(np.float64, copy=False) for a in (expected.value, array))
        if saturates(expected.dtype):
            wide = _within(wide, expected.dtype)
        error = np.abs(np.subtract(got, wide))
        ratio = np.where(np.equal(error, 0), 0.0, np.divide(error, allowed))
        held = np.isfinite(wide.astype(expected.dtype.numpy).astype(np.float64))
        got_held = np.isfinite(got)
        both = np.logical_and(held, got_held)
        if np.all(both):
            return ratio
        same = np.logical_and(np.isinf(allowed), np.logical_or(held, np.logical_not(got_held)))
        for end in (wide, np.subtract(wide, allowed), np.add(wide, allowed)):
            rounded = end.astype(expected.dtype.numpy)
            both_nan = np.logical_and(np.not_equal(array, array), np.not_equal(rounded, rounded))
            same |= np.logical_or(np.equal(array, rounded), both_nan)
        return np.where(both, ratio, np.where(same, 0.0, np.inf))


def _within(value: Array, dtype: DType) -> Array:
    """What a type that saturates has of each value, not rounded."""
    most = float(dtype.numpy.type(np.inf))
    return np.where(np.isnan(value), 0.0, np.clip(value, -most, most))


def reference(
    func: PrimFunc,
    arrays: Arrays,
    *,
    growth: float = 1.0,
    strict: bool = False,
    sample: Sample | None = None,
    cut: int = 0,
) -> Reference:
    """What the outputs of `func` should be for `arrays`, with the bound on each.

    arrays: the inputs and constants, in the order of the parameters or by name.
    growth: the declared error growth of the algorithm to be checked. strict: a sum is the chain of
    its definition. sample: what `sample_of` says for the function at its sizes; found by default.
    cut: products of 16-bit floats may be added so many at once, to a sum that is cut where float32
    ends; 0: it is rounded.
    Raises: IRError when the arrays do not fit, `func` is not canonical or an index leaves its
    buffer.
    """
    func = at_sizes(func, arrays)
    sample = sample or sample_of(func)
    listed = sample.listed
    exact = evaluate_all(func, arrays, FLOAT64, listed)
    working = evaluate_at(listed, bind(func, arrays), sample.elements)

    def seen(buffer: Buffer) -> float:
        return _spread(buffer, exact[buffer], working[buffer], sample.elements[buffer])

    errors = rounding_errors(listed, exact, seen, cut)
    most = math.inf if strict else _SPREAD * math.sqrt(max(1, summed_terms(listed)))
    outputs = []
    for buffer in func.outputs:
        error = errors.get(buffer)
        if rounded := _rounded_last(buffer, listed):
            error = before_last_rounding(rounded, exact, errors)
        scale = None if error is None else np.multiply(error, UNIT)
        pair = exact[buffer], working[buffer]
        strayed = _strayed(buffer, *pair, scale, sample.chosen[buffer])
        factor = max(2.0 if buffer.type == FLOAT64 else 1.0, min(_SPREAD * strayed, most))
        spread = _spread(buffer, *pair, sample.chosen[buffer])
        samples = len(sample.chosen[buffer])
        outputs.append(Expected(buffer.name, buffer.type, pair[0], scale, factor, spread, samples))
    return Reference(func.name, tuple(outputs), growth)


def _rounded_last(buffer: Buffer, listed: Sequence[Definition]) -> Definition | None:
    """The definition of a tensor of a storage type that rounds to it, and nothing else."""
    found = [definition for definition in listed if buffer in definition.targets]
    if len(found) != 1 or not (buffer.type.is_storage and buffer.type.is_float):
        return None
    definition = found[0]
    plain = definition.update is None and definition.extern is None and not definition.ordered
    return definition if plain and isinstance(definition.value, Cast) else None


def sample_of(func: PrimFunc, *, seed: int = 0, budget: int = BUDGET) -> Sample:
    """The elements of the outputs of a function of constant sizes that are computed in its own
    types. budget: values that are computed for them.
    """
    listed = definitions(func)
    largest = max((buffer.size for buffer in func.outputs), default=0)
    whole = ((largest, 1),) if any(definition.ordered for definition in listed) else ()
    for count, run in (*whole, *_RUNS):
        rng = np.random.default_rng(seed)
        chosen = {buffer: _choose(buffer.size, count, run, rng) for buffer in func.outputs}
        elements = dependencies(listed, chosen, None if count == 1 else budget)
        if elements is not None:
            break
    assert elements is not None
    return Sample(listed, chosen, elements)


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


def _strayed(
    buffer: Buffer, exact: Array, working: Array, scale: Array | None, chosen: Array
) -> float:
    """The largest error over its scale of the chosen elements, where both are finite; of a storage
    type what is beyond its last rounding.
    """
    if scale is None:
        return 0.0
    wide = exact.reshape(-1)[chosen].astype(np.float64)
    with np.errstate(all="ignore"):
        error = np.abs(working.reshape(-1)[chosen].astype(np.float64) - wide)
        if buffer.type.is_storage and buffer.type.is_float:
            rounded = np.multiply(_ulp(wide, buffer.type), 0.5)
            error = np.maximum(np.subtract(error, rounded), 0.0)
        share = np.divide(error, scale.reshape(-1)[chosen])
    return float(np.max(share, initial=0.0, where=np.isfinite(share)))
