"""Arguments with which a function is traced: what is wrong with them, and what they are called."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ...errors import ModelError


class ArgumentsError(ModelError, TypeError):
    """The arguments with which a function is to be traced are none that it can be traced with."""


def argument_names(function: Callable[..., object], count: int) -> list[str]:
    """What a function calls its first `count` arguments; "args[0]" where it does not say."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    found = list[str]()
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            found += [f"{parameter.name}[{n}]" for n in range(count - len(found))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            found.append(parameter.name)
    return (found + [f"args[{n}]" for n in range(len(found), count)])[:count]
