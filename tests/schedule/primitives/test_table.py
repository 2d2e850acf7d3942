"""schedule/primitives/table.py: what the declarations say agrees with the rewrites and with the
methods of a schedule.
"""

from __future__ import annotations

import inspect

import pytest

from tilewright.driver.fuzz.steps import STEPS
from tilewright.schedule.primitives.loops.loops import SPLIT
from tilewright.schedule.primitives.parameters import LOOP_PAIR, LOOPS
from tilewright.schedule.primitives.primitive import Primitive
from tilewright.schedule.primitives.table import PRIMITIVES, STEP_FORMS
from tilewright.schedule.schedule import Schedule

GRIDS = {"bind"}  # random grids are test_bind.py's


@pytest.mark.parametrize("form", PRIMITIVES, ids=lambda form: form.name)
def test_a_primitive_declares_the_parameters_of_its_rewrite(form: Primitive[object]) -> None:
    func, *others = inspect.signature(form.function).parameters
    target = ["target"] if form.asks_target else []
    assert func == "func"
    assert others == [*form.parameters, *target]


@pytest.mark.parametrize("form", PRIMITIVES, ids=lambda form: form.name)
def test_a_primitive_is_a_documented_method_with_the_same_defaults(
    form: Primitive[object],
) -> None:
    method = getattr(Schedule, form.name)
    assert inspect.getdoc(method)
    rewrite = inspect.signature(form.function).parameters
    taken = list(inspect.signature(method).parameters.values())[1:]
    if form.parameters.get("loops") in (LOOPS, LOOP_PAIR):  # loops are arguments one by one
        assert all(parameter.default is inspect.Parameter.empty for parameter in taken)
    elif form is SPLIT:  # what other systems write is answered by the method itself
        assert [parameter.name for parameter in taken] == [*form.parameters, "factor", "nparts"]
    else:
        defaults = {parameter.name: parameter.default for parameter in taken}
        assert defaults == {name: rewrite[name].default for name in form.parameters}


def test_names_are_those_of_the_methods_and_of_the_rewrites() -> None:
    assert [form.name for form in PRIMITIVES] == [form.function.__name__ for form in PRIMITIVES]
    assert STEP_FORMS.keys() == {form.name for form in PRIMITIVES} | {"sample_categorical"}


def test_every_primitive_is_drawn() -> None:
    assert STEPS.keys() == {form.name for form in PRIMITIVES} - GRIDS | {"pack"}
