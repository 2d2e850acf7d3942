"""The form of a step: its name and its parameters, from which it is recorded and replayed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar, get_type_hints

from ..errors import ScheduleError
from ..trace.trace import Step
from .parameters import PLAIN, ParameterKind, StepSite

Result = TypeVar("Result", covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class StepForm(Generic[Result]):
    """What a trace may hold.

    name: of the step, and of the method of a schedule that takes it.
    function: what it does; its other parameters than `parameters` are not recorded.
    parameters: their kinds by name, in the order of a trace.
    """

    name: str
    function: Callable[..., Result]
    parameters: Mapping[str, ParameterKind]

    def encode(
        self, arguments: Mapping[str, object], site: StepSite
    ) -> tuple[tuple[str, object], ...]:
        """The arguments as a trace has them; what is None is left out."""
        found = (
            (name, kind.encode(arguments[name], site))
            for name, kind in self.parameters.items()
            if arguments.get(name) is not None
        )
        return tuple((name, value) for name, value in found if value is not None)

    def decode(self, number: int, step: Step, site: StepSite) -> dict[str, object]:
        """The arguments of the recorded step `number`, with the defaults of those that are not
        recorded. Raises: ScheduleError where they are not what the step takes.
        """
        given = {name: self._decoded(number, name, value, site) for name, value in step.arguments}
        expected = _expected(self)
        try:
            bound = expected.signature.bind(**given)
        except TypeError as error:
            raise ScheduleError(
                f"replay: step {number}, '{self.name}', has other arguments than the "
                f"primitive: {error}.",
                code="replay-arguments",
            ) from None
        for name, value in given.items():
            wanted = self.parameters[name].misfit(value, expected.types[name])
            if wanted is not None:
                raise ScheduleError(
                    f"replay: step {number}, '{self.name}', has {name} {value!r}; "
                    f"expected {wanted}.",
                    code="replay-kind",
                )
        bound.apply_defaults()
        return bound.arguments

    def _decoded(self, number: int, name: str, value: object, site: StepSite) -> object:
        try:
            return self.parameters.get(name, PLAIN).decode(value, site)
        except (LookupError, ValueError, TypeError, AttributeError):
            raise ScheduleError(
                f"replay: step {number}, '{self.name}', names {_shown(value)}, which "
                f"'{site.func.name}' does not have.",
                code="replay-reference",
                hints=("the trace is of another function.",),
            ) from None


def _shown(value: object) -> str:
    """A reference of a trace, as a message has it."""
    match value:
        case {"loop": key, "name": name}:
            return f"loop '{name}' ({key})"
        case {"block": key}:
            return f"block {key}"
        case {"tensor": key}:
            return f"tensor {key}"
        case list() | tuple():
            return ", ".join(map(_shown, value))
        case _:
            return repr(value)


@dataclass(frozen=True, slots=True)
class _Expected:
    """What the function of a form says of the arguments that are recorded."""

    signature: inspect.Signature
    types: Mapping[str, object]


@cache
def _expected(form: StepForm[object]) -> _Expected:
    taken = inspect.signature(form.function).parameters.values()
    recorded = [parameter for parameter in taken if parameter.name in form.parameters]
    return _Expected(inspect.Signature(recorded), get_type_hints(form.function))
