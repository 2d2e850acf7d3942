"""Sizes as JSON and back: a number, or the terms of what a run decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..dim import Dim
from ..errors import IRError
from ..json_reader import LARGEST_SIZE, Json, Reader
from ..sizes import (
    AnySize,
    Atom,
    DividedSize,
    ExtremeSize,
    Size,
    greatest,
    largest,
    least,
    product_of,
    quotient,
    size_of,
)

Dims = Mapping[str, Dim]
NO_DIMS: Dims = {}
_MOST = 64  # axes, terms, factors
_DEEPEST = 8


def dims_to_json(dims: Iterable[Dim]) -> Json:
    """Dims with their bounds, and a mark on those whose bounds were assumed."""
    return [[d.name, d.low, d.high, d.usual, *([True] if d.assumed else [])] for d in dims]


def dims_from_json(data: Reader | None) -> Dims:
    """The dims that `dims_to_json` wrote, by name; none where an older file has no field for them.

    Raises: IRError.
    """
    found: dict[str, Dim] = {}
    for item in () if data is None else data.items(_MOST):
        fields = list(item.items(5))
        if len(fields) < 4:
            raise IRError(
                f"json: {item.where} has {len(fields)} fields; expected a name, the least, the "
                "largest and the usual size.",
                code="json-dim-fields",
            )
        name, low, high, usual, *assumed = fields
        numbers = [end.integer() for end in (low, usual, high)]
        if name.text() in found or numbers != sorted(numbers):
            raise IRError(
                f"json: {item.where} is {item.value!r}; expected a name of its own, and bounds in "
                "order.",
                code="json-dim",
            )
        found[name.text()] = Dim(
            name.text(),
            low=numbers[0],
            high=numbers[2],
            typical=numbers[1],
            assumed=bool(assumed),
        )
    return found


def shape_to_json(shape: Iterable[AnySize]) -> Json:
    """A shape; sizes that are numbers as numbers."""
    return [size_to_json(size) for size in shape]


def shape_from_json(data: Reader, dims: Dims = NO_DIMS) -> tuple[AnySize, ...]:
    """The shape that `shape_to_json` wrote. Raises: IRError."""
    shape = sizes_from_json(data, dims)
    if largest(product_of(greatest(1, size) for size in shape)) > LARGEST_SIZE:
        raise IRError(
            f"json: {data.where} is larger than {LARGEST_SIZE} elements.", code="json-value"
        )
    return shape


def sizes_from_json(data: Reader, dims: Dims = NO_DIMS) -> tuple[AnySize, ...]:
    """What `shape_to_json` wrote of sizes that are not those of one array. Raises: IRError."""
    return tuple(size_from_json(item, dims) for item in data.items(_MOST))


def size_to_json(size: AnySize) -> Json:
    """A number, or a list of terms: a coefficient and its factors."""
    if not isinstance(size, Size):
        return size
    return [[number, *(_factor_to_json(atom) for atom in atoms)] for atoms, number in size.terms]


def size_from_json(data: Reader, dims: Dims, depth: int = 0) -> AnySize:
    """The size that `size_to_json` wrote. Raises: IRError."""
    if not isinstance(data.value, list):
        return data.integer()
    if depth > _DEEPEST:
        raise IRError(f"json: {data.where} is too deep for a size.", code="json-value")
    total: AnySize = 0
    for item in data.items(_MOST):
        number, *factors = item.items(_MOST)
        if type(number.value) is not int or abs(number.value) > LARGEST_SIZE:
            raise IRError(
                f"json: {number.where} is {number.value!r}; expected a coefficient.",
                code="json-value",
            )
        term: AnySize = number.value
        for factor in factors:
            term = term * _factor_from_json(factor, dims, depth + 1)
        total = total + term
    return total


def _factor_to_json(atom: Atom) -> Json:
    match atom:
        case Dim():
            return atom.name
        case DividedSize():
            return {"quotient": size_to_json(atom.size), "divisor": atom.divisor}
        case ExtremeSize():
            kind = "greatest" if atom.greatest else "least"
            return {kind: [size_to_json(size) for size in atom.sizes]}


def _factor_from_json(data: Reader, dims: Dims, depth: int) -> AnySize:
    if isinstance(data.value, str):
        name = data.text()
        if name not in dims:
            raise IRError(
                f"json: {data.where} names the size {name!r}, which nothing tells.",
                code="json-dim",
            )
        return size_of(dims[name])
    divided = data.optional("quotient")
    if divided is not None:
        return quotient(size_from_json(divided, dims, depth), data["divisor"].integer())
    choose, listed = least, data.optional("least")
    if listed is None:
        choose, listed = greatest, data["greatest"]
    return choose(*(size_from_json(item, dims, depth) for item in listed.items(_MOST)))
