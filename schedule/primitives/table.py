"""The steps that a trace may hold, by name: what the modules beside this one declare, so nobody
lists them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...tir.siblings import siblings
from .primitive import Primitive
from .sample import Decision


def _declared() -> Iterator[Primitive[object] | Decision]:
    for module in siblings(__name__):
        for value in vars(module).values():
            if isinstance(value, Primitive | Decision):
                yield value


STEP_FORMS: dict[str, Primitive[object] | Decision] = {form.name: form for form in _declared()}
PRIMITIVES: tuple[Primitive[object], ...] = tuple(
    form for form in STEP_FORMS.values() if isinstance(form, Primitive)
)
