"""An operator is a value: frozen, hashable, equal where its fields are, in each of its copies."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from ..errors import ModelError
from ..extensions.operators import declaration_of
from ..extensions.origin import is_ours
from ..ops.base import Operator
from .report import OperatorFinding


def declared_found(op: Operator) -> Iterator[OperatorFinding]:
    """Graphs hold operators that somebody declared."""
    kind = type(op)
    if declaration_of(kind) is None and not is_ours(kind):
        yield OperatorFinding(
            "declared",
            f"nobody declared {kind.__module__}.{kind.__qualname__}, so no graph may hold it",
            f'@tw.operator("my.ops::{kind.__name__}") above the class declares it.',
        )


def frozen_found(op: Operator) -> Iterator[OperatorFinding]:
    """Nobody changes an operator."""
    for item in fields(op):
        try:
            setattr(op, item.name, getattr(op, item.name))
        except AttributeError:  # FrozenInstanceError is one
            continue
        yield OperatorFinding(
            "frozen",
            f"the field '{item.name}' can be set",
            "the class is a frozen dataclass, as @tw.operator makes it, without a __setattr__ of "
            "its own.",
        )
        return


def hash_found(op: Operator) -> Iterator[OperatorFinding]:
    """Equal operators have one hash, since nodes are looked up by it."""
    hint = "fields are numbers, texts and tuples of them: a tuple in place of a list."
    try:
        first, again, other = hash(op), hash(op), hash(replace(op))
    except TypeError as error:
        yield OperatorFinding("hash", f"hash raises TypeError: {error}", hint)
        return
    if len({first, again, other}) > 1:
        problem = "an operator with the same fields has another hash"
        yield OperatorFinding("hash", problem, "leave __hash__ to the dataclass.")


def equality_found(op: Operator) -> Iterator[OperatorFinding]:
    """Operators are equal where their fields are, and printed with all of them."""
    hint = "leave __eq__ and __repr__ to the dataclass."
    if replace(op) != op:
        yield OperatorFinding("equality", "an operator with the same fields is not equal", hint)
    for name, other in _changed(op):
        if other == op:
            problem = f"an operator with another '{name}' is equal, so one is taken for the other"
            yield OperatorFinding("equality", problem, hint)
        if repr(other) == repr(op):
            problem = f"the text of an operator does not say its '{name}'"
            yield OperatorFinding("text", problem, hint)


def _changed(op: Operator) -> Iterator[tuple[str, Operator]]:
    """The operator with another value of each field that is a number or a text, where it accepts
    one.
    """
    for item in fields(op):
        value = getattr(op, item.name)
        for other in _others(value):
            try:
                yield item.name, replace(op, **{item.name: other})
            except (ModelError, ValueError, TypeError):
                continue
            break


def _others(value: object) -> tuple[object, ...]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return (value + 1, value - 1, 2 * value)
    if isinstance(value, float):
        return (value + 0.5, value / 2)
    return (f"{value}x",) if isinstance(value, str) else ()


def copies_found(op: Operator) -> Iterator[OperatorFinding]:
    """What is copied, or written down and read again, is equal."""
    ways: dict[str, Callable[[], object]] = {
        "pickle": lambda: pickle.loads(pickle.dumps(op)),
        "copy.deepcopy": lambda: copy.deepcopy(op),
    }
    for name, way in ways.items():
        try:
            made = way()
        except Exception as error:
            yield OperatorFinding(
                "pickle",
                f"{name} raises {type(error).__name__}: {error}",
                "the class stands in a module, by its own name, and its fields are plain values.",
            )
            return
        if made != op or type(made) is not type(op):
            yield OperatorFinding(
                "pickle",
                f"what {name} gives is not equal: {made!r}",
                "fields say all that an operator is.",
            )
            return
