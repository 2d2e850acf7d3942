"""Verdict: what the proof of a kernel's loop nest found, as a value that is printed, compared and
kept with the kernel.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

PROVED = "proved"
ASSUMING = "proved under assumptions"
UNKNOWN = "unknown"
REFUTED = "refuted"
MOST_TEXT = 2000  # of a summary: it goes into files, and terms of an expression into it
_WORSE = (PROVED, ASSUMING, UNKNOWN, REFUTED)


@dataclass(frozen=True, slots=True)
class Iteration:
    """One run of a block: the values of the loops around it, outermost first."""

    block: str
    loops: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"{self.block}{self.place}"

    __repr__ = __str__

    @property
    def place(self) -> str:
        """The values of the loops: (i=0, j=3)."""
        return f"({', '.join(f'{name}={value}' for name, value in self.loops)})"

    @property
    def values(self) -> dict[str, int]:
        """Loop name -> value."""
        return dict(self.loops)


@dataclass(frozen=True, slots=True)
class Failure:
    """One way in which a nest is wrong.

    property: "P1" (coverage), "P2" (flow), "P3" (reductions), "P4" (bounds) or "P5" (races).
    iterations: the concrete runs that show it, two where two conflict; element: on which.
    """

    property: str
    message: str
    iterations: tuple[Iteration, ...] = ()
    element: str = ""

    def __str__(self) -> str:
        runs = " and ".join(str(run) for run in self.iterations)
        where = f"; {runs}" if runs else ""
        return f"{self.property}: {self.message}{where}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a proof.

    status: "proved" | "proved under assumptions" | "unknown" | "refuted".
    failures: why it is refuted; assumptions: what a proof rests on; reasons: why nothing could be
    decided. scope: what was proved, of which form of the function, and what is left to numbers.
    milliseconds: what the proof took, not compared; operations: the questions that were put to isl.
    """

    status: str
    failures: tuple[Failure, ...] = ()
    assumptions: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    milliseconds: float = field(default=0.0, compare=False)
    operations: int = 0
    scope: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.status in (PROVED, ASSUMING)

    def __str__(self) -> str:
        lines = [
            f"{self.status} (P1 to P5, {self.operations} questions, {self.milliseconds:.1f} ms)"
        ]
        lines += [f"  {failure}" for failure in self.failures]
        lines += [f"  assuming that {assumption}" for assumption in self.assumptions]
        lines += [f"  undecided: {reason}" for reason in self.reasons]
        lines += [f"  {part}" for part in self.scope]
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def summary(self) -> str:
        """The first line, and what a proof lacks, as one line of at most MOST_TEXT characters."""
        text = "; ".join(str(replace(self, scope=())).split("\n  "))
        return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 4]} ..."

    def over(self, *scope: str) -> Verdict:
        """The same verdict, which says what it is on."""
        return replace(self, scope=scope)

    def joined(self, other: Verdict) -> Verdict:
        """What two proofs say together: the worse status, and all that either of them found."""
        return Verdict(
            max(self.status, other.status, key=_WORSE.index),
            (*self.failures, *other.failures),
            (*self.assumptions, *other.assumptions),
            (*self.reasons, *other.reasons),
            self.milliseconds + other.milliseconds,
            self.operations + other.operations,
            tuple(dict.fromkeys((*self.scope, *other.scope))),
        )

    def _repr_html_(self) -> str:
        colour = {PROVED: "#1a7f37", ASSUMING: "#1a7f37", UNKNOWN: "#9a6700", REFUTED: "#cf222e"}
        head, *rest = str(self).splitlines()
        items = "".join(f"<li>{html.escape(line.strip())}</li>" for line in rest)
        return (
            f'<div><b style="color:{colour[self.status]}">{html.escape(head)}</b>'
            f"{f'<ul>{items}</ul>' if items else ''}</div>"
        )

    def to_json(self) -> dict[str, Json]:
        """Every field as plain JSON values."""
        return {
            "status": self.status,
            "failures": [_failure_to_json(failure) for failure in self.failures],
            "assumptions": list(self.assumptions),
            "reasons": list(self.reasons),
            "milliseconds": self.milliseconds,
            "operations": self.operations,
            "scope": list(self.scope),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Self:
        """The verdict that `to_json` wrote, or wrote before there was a scope. Raises: KeyError or
        TypeError for anything else.
        """
        return cls(
            _text(data["status"]),
            tuple(_failure_from_json(item) for item in _items(data["failures"])),
            tuple(_text(item) for item in _items(data["assumptions"])),
            tuple(_text(item) for item in _items(data["reasons"])),
            _number(data["milliseconds"]),
            int(_number(data["operations"])),
            tuple(_text(item) for item in _items(data.get("scope", []))),
        )


def _failure_to_json(failure: Failure) -> dict[str, Json]:
    runs: list[Json] = [
        {"block": run.block, "loops": [[name, value] for name, value in run.loops]}
        for run in failure.iterations
    ]
    return {
        "property": failure.property,
        "message": failure.message,
        "iterations": runs,
        "element": failure.element,
    }


def _failure_from_json(data: Json) -> Failure:
    fields = _object(data)
    runs = []
    for item in _items(fields["iterations"]):
        run = _object(item)
        pairs = [_items(pair) for pair in _items(run["loops"])]
        loops = tuple((_text(name), int(_number(value))) for name, value in pairs)
        runs.append(Iteration(_text(run["block"]), loops))
    return Failure(
        _text(fields["property"]), _text(fields["message"]), tuple(runs), _text(fields["element"])
    )


def _object(data: Json) -> dict[str, Json]:
    if not isinstance(data, dict):
        raise TypeError(f"verdict: expected an object, got {data!r}")
    return data


def _items(data: Json) -> Sequence[Json]:
    if not isinstance(data, list):
        raise TypeError(f"verdict: expected a list, got {data!r}")
    return data


def _text(data: Json) -> str:
    if not isinstance(data, str):
        raise TypeError(f"verdict: expected a text, got {data!r}")
    return data


def _number(data: Json) -> float:
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise TypeError(f"verdict: expected a number, got {data!r}")
    return data
