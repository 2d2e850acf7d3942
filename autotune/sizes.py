"""At which sizes a search times the candidates of a function whose sizes calls decide.

One schedule serves all sizes, so a candidate is timed at several, and its score is the geometric
mean of its times. A ratio of two scores is then the geometric mean of the ratios at each size: ten
percent count alike at every size, where a sum would be the time of the largest size alone, and no
candidate has to be named to which the others are compared. A size that matters more than others
has no weight; sizes near it may be given beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..driver.tuning.errors import TuneError
from ..tir.dim import Dim
from ..tir.errors import known_names
from ..tir.func import PrimFunc
from ..tir.sizes import dims_in, size_in, size_of

SizeValues = tuple[int, ...]  # of each dim of a function, in their order
GivenSizes = Sequence[Mapping[str, int]]


def default_sizes(func: PrimFunc) -> tuple[SizeValues, ...]:
    """The least sizes, the usual ones and the largest, each once; () where calls decide none.

    Those that others decide are computed from them. A least size of 0 becomes 1, and sizes at which
    nothing runs are left out where there are others.
    """
    deciding = _decided_by(func.dims)
    ends = (
        {dim: max(dim.low, min(1, dim.high)) for dim in deciding},
        {dim: dim.usual for dim in deciding},
        {dim: dim.high for dim in deciding},
    )
    found = [_sizes_of(func, numbers) for numbers in ends] if deciding else []
    return tuple(dict.fromkeys(values for values in found if all(values))) or tuple(found[:1])


def usual_sizes(func: PrimFunc) -> SizeValues:
    """The sizes for which a schedule is chosen; () where calls decide none."""
    return tuple(dim.usual for dim in func.dims)


def sizes_text(sizes: Iterable[SizeValues]) -> str:
    """Choices of sizes as text: "1x1, 8x128, 64x512"."""
    return ", ".join("x".join(map(str, values)) for values in sizes)


def sizes_to_time(
    funcs: Sequence[PrimFunc], given: GivenSizes | None
) -> list[tuple[SizeValues, ...]]:
    """The sizes at which each function is timed.

    given: numbers for names, of the dims of the functions or of those that they are made of; None:
    the default ones.
    Raises: TuneError.
    """
    if given is None:
        return [default_sizes(func) for func in funcs]
    known = dict.fromkeys(dim.name for func in funcs for dim in _decided_by(func.dims))
    if not known or not given:
        what = "calls decide no size of what is tuned" if given else "there are none"
        raise TuneError(
            f"tune: sizes={list(given)!r}: {what}; expected numbers for sizes of te.dim, or of a "
            "model with ranges.",
            code="tune-sizes",
            hints=("leave sizes out: the least, the usual and the largest ones are timed.",),
        )
    for choice in given:
        unknown = next((name for name in choice if name not in known), None)
        if unknown is not None:
            raise TuneError(
                f"tune: there is no size '{unknown}'; expected {known_names(unknown, known)}.",
                code="tune-size-unknown",
            )
    return [tuple(dict.fromkeys(_values(func, one) for one in given)) for func in funcs]


def _values(func: PrimFunc, given: Mapping[str, int]) -> SizeValues:
    """Numbers for the dims of a function. Raises: TuneError."""
    numbers: dict[Dim, int] = {}
    for dim in _decided_by(func.dims):
        number = given.get(dim.name)
        if number is None or not dim.low <= number <= dim.high:
            what = "missing" if number is None else str(number)
            raise TuneError(
                f"tune: size '{dim.name}' of '{func.name}' is {what}; expected {dim.low} to "
                f"{dim.high}.",
                code="tune-size-value",
                hints=(f'sizes=[{{"{dim.name}": {dim.usual}}}, ...]',),
            )
        numbers[dim] = number
    return _sizes_of(func, numbers)


def _sizes_of(func: PrimFunc, numbers: Mapping[Dim, int]) -> SizeValues:
    """The dims of a function, where these decide them."""
    return tuple(size_in(size_of(dim), numbers) for dim in func.dims)


def _decided_by(dims: Iterable[Dim]) -> tuple[Dim, ...]:
    """The dims that decide others: batch and seq of a kernel that has rows = batch * seq."""
    return dims_in(map(size_of, dims))
