"""The trace: the steps of a schedule as frozen, JSON-able data.

A step names the function's own blocks by their index in definition order ("b0") and their loops by
position ("b0.l1"); what a step made, by step and output number ("s3.l0", "s3.b0"). Names are for
display. So a trace replays on any function with the same workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...tir.text.html import STEPS, highlight
from ..errors import ScheduleError

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

VERSION = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One primitive with its arguments, in JSON form.

    decision: what the decision source answered; set for sample_* steps only.
    """

    primitive: str
    arguments: tuple[tuple[str, object], ...]
    decision: object = None

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments)
        decision = "" if self.decision is None else f" -> {self.decision!r}"
        return f"{self.primitive}({arguments}){decision}"

    __repr__ = __str__

    def to_json(self) -> dict[str, object]:
        """The step as a JSON object."""
        made: dict[str, object] = {"primitive": self.primitive, "arguments": dict(self.arguments)}
        return made if self.decision is None else {**made, "decision": self.decision}


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps of a schedule, in order."""

    steps: tuple[Step, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The trace as a JSON object, with its format version."""
        return {"version": VERSION, "steps": [step.to_json() for step in self.steps]}

    @staticmethod
    def from_json(data: Mapping[str, object]) -> Trace:
        """The trace of a JSON object. Raises: ScheduleError for another version or a malformed
        step.
        """
        if data.get("version") != VERSION:
            raise ScheduleError(
                f"trace: format version {data.get('version')!r}; expected {VERSION}.",
                code="trace-version",
            )
        steps = data.get("steps")
        if not isinstance(steps, list):
            raise ScheduleError(
                "trace: 'steps' is missing; expected a list of steps.", code="trace-steps"
            )
        return Trace(tuple(_step(item) for item in steps))

    def __str__(self) -> str:
        return "\n".join(f"{number}: {step}" for number, step in enumerate(self.steps))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return highlight(str(self), STEPS)


def _step(item: object) -> Step:
    if (
        isinstance(item, Mapping)
        and isinstance(item.get("arguments"), Mapping)
        and isinstance(item.get("primitive"), str)
    ):
        arguments = tuple((str(key), _frozen(value)) for key, value in item["arguments"].items())
        return Step(str(item["primitive"]), arguments, _frozen(item.get("decision")))
    raise ScheduleError(
        f"trace: malformed step {item!r}; expected an object with 'primitive' and 'arguments'.",
        code="trace-step",
    )


def _frozen(value: object) -> object:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
