"""The steps that a trace may hold, by name: what the modules beside this one, and in the folders
here, declare, so nobody lists them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...tir.siblings import siblings
from .primitive import Primitive
from .sample import DecisionForm


def _declared() -> Iterator[Primitive[object] | DecisionForm]:
    for module in siblings(__name__):
        for value in vars(module).values():
            if isinstance(value, Primitive | DecisionForm):
                yield value


STEP_FORMS: dict[str, Primitive[object] | DecisionForm] = {form.name: form for form in _declared()}
PRIMITIVES: tuple[Primitive[object], ...] = tuple(
    form for form in STEP_FORMS.values() if isinstance(form, Primitive)
)
