"""Sizes that a run decides, in C: what they are called, and what is computed of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...tir.dim import Dim
from ...tir.sizes import AnySize, Atom, DividedSize, ExtremeSize, Size
from ..text.names import mangle


def size_names(dims: Iterable[Dim]) -> dict[Dim, str]:
    """A name for each dim, unlike anything else in the model's entry."""
    names: dict[Dim, str] = {}
    for dim in dims:
        name = wanted = f"size_{mangle(dim.name)}"
        while name in names.values():
            name = f"{wanted}_{len(names)}"
        names[dim] = name
    return names


def size_text(size: AnySize, names: Mapping[Dim, str]) -> str:
    """A size as an expression of int64_t."""
    if not isinstance(size, Size):
        return str(size)
    terms = []
    for atoms, number in size.terms:
        factors = [_factor(atom, names) for atom in atoms]
        if number != 1 or not factors:
            factors.insert(0, str(number) if number > 0 else f"({number})")
        terms.append(" * ".join(factors))
    return " + ".join(terms)


def _factor(atom: Atom, names: Mapping[Dim, str]) -> str:
    match atom:
        case Dim():
            return names[atom]
        case DividedSize():
            text, by = f"({size_text(atom.size, names)})", atom.divisor
            if atom.size.low >= 0:
                return f"({text} / {by})"
            return f"(({text} - (({text} % {by} + {by}) % {by})) / {by})"
        case ExtremeSize():
            sign = ">" if atom.greatest else "<"
            first, *rest = (f"({size_text(size, names)})" for size in atom.sizes)
            for other in rest:
                first = f"({first} {sign} {other} ? {first} : {other})"
            return first
