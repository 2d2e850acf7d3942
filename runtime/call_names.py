"""Calls by name: `kernel(A=a, out=c)` and `kernel(a, C=c)` are `kernel(a, c)`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..tir.errors import known_names
from .arrays import ArgumentTypeError


def arrange_call(
    call: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    arrays: Sequence[object],
    named: Mapping[str, object],
    out: object,
    *,
    constants: Collection[str] = (),
) -> list[object]:
    """The arrays of a call in order: all inputs, and all outputs where one is given.

    constants: names that a call does not take, since they are bound.
    Raises: ArgumentTypeError for a name that is unknown, missing or given twice.
    """
    names = (*inputs, *outputs)
    given = join_names(call, names, arrays, named)
    given = _merge(call, given, outputs_by_name(call, outputs, out))
    for name in given:
        if name not in names:
            bound = ("constants are bound once and not given to a call.",)
            raise ArgumentTypeError(
                f"{call}: there is no argument '{name}'; expected {known_names(name, names)}.",
                code="argument-name",
                hints=bound if name in constants else (),
            )
    expected = names if any(name in given for name in outputs) else tuple(inputs)
    for name in expected:
        if name not in given:
            kind = "input" if name in inputs else "output"
            raise ArgumentTypeError(
                f"{call}: the {kind} '{name}' is missing; got {', '.join(given) or 'none'}.",
                code="argument-missing",
                hints=(f"{call}({', '.join(f'{n}=...' for n in expected)})",),
            )
    return [given[name] for name in expected]


def join_names(
    call: str, names: Sequence[str], arrays: Sequence[object], named: Mapping[str, object]
) -> dict[str, object]:
    """The arrays of a call by name; those without one have the first of `names`.

    Raises: ArgumentTypeError for more arrays than names, and a name given twice.
    """
    if len(arrays) > len(names):
        raise ArgumentTypeError(
            f"{call}: {len(arrays)} arrays given; expected {len(names)} or fewer: "
            f"{', '.join(names)}.",
            code="argument-many",
        )
    return _merge(call, dict(zip(names, arrays, strict=False)), named)


def outputs_by_name(call: str, names: Sequence[str], out: object) -> dict[str, object]:
    """What `out` gives of the outputs: an array, one for each of them, or a dict by name.

    Raises: ArgumentTypeError for what fits none of these.
    """
    if out is None:
        return {}
    if isinstance(out, Mapping):
        return dict(out)
    listed = tuple(out) if isinstance(out, tuple | list) else (out,)
    if len(listed) != len(names):
        found = f"{len(listed)} arrays" if len(listed) != 1 else "one array"
        raise ArgumentTypeError(
            f"{call}: out is {found}; expected {len(names)}: {', '.join(names)}.",
            code="argument-out",
            hints=(f"out={{{', '.join(f'{name!r}: ...' for name in names)}}}",),
        )
    return dict(zip(names, listed, strict=True))


def _merge(call: str, given: Mapping[str, object], more: Mapping[str, object]) -> dict[str, object]:
    twice = next((name for name in more if name in given), None)
    if twice is not None:
        raise ArgumentTypeError(
            f"{call}: '{twice}' is given twice; expected each argument once.",
            code="argument-twice",
        )
    return {**given, **more}
