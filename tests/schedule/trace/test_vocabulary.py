"""schedule/trace/vocabulary.py: names known from other systems are answered with ours."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable

import pytest

from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.vocabulary import VOCABULARIES
from tilewright.tir.te import te

from ..programs import matmul

NAMES = sorted({name for table in VOCABULARIES for name in table})


def test_each_name_is_answered_with_ours(golden: Callable[[str, str], None]) -> None:
    sch = Schedule(matmul(2, 3, 2))
    texts = []
    for name in NAMES:
        with pytest.raises(AttributeError) as refusal:
            getattr(sch, name)
        texts.append(str(refusal.value))
    golden("errors/schedule_vocabulary.txt", "\n".join(texts))


def test_no_name_of_ours_stands_in_a_table_and_every_answer_exists() -> None:
    ours = {name for name in dir(Schedule) if not name.startswith("_")}
    assert not ours & set(NAMES)
    answers = " ".join(answer for table in VOCABULARIES for answer in table.values())
    assert set(re.findall(r"\bsch\.(\w+)", answers)) <= ours


MISSPELT = {
    "splitt": (
        "UnknownStepError: schedule: no step 'splitt'; the closest: 'split', 'split_axis'. "
        "[unknown-step]\n"
    ),
    "tilee": (
        "UnknownStepError: schedule: no step 'tilee'; the closest: 'tail'. [unknown-step]\n"
        "  Hint: for 'tile', in tilewright: sch.split(i, (None, a)) and sch.split(j, (None, b)), "
        "then sch.reorder.\n"
    ),
    "quantise": "UnknownStepError: schedule: no step 'quantise'. [unknown-step]\n",
}


@pytest.mark.parametrize("name", MISSPELT)
def test_an_unknown_name_is_answered_with_the_closest_and_where_all_are(name: str) -> None:
    with pytest.raises(AttributeError) as refusal:
        getattr(Schedule(matmul(2, 3, 2)), name)
    assert str(refusal.value) == (
        f"{MISSPELT[name]}  Hint: help(tilewright.Schedule) lists all that there are."
    )


def test_a_schedule_is_not_indexed_by_a_tensor() -> None:
    sch = Schedule(matmul(2, 3, 2))
    with pytest.raises(TypeError) as refusal:
        sch[te.placeholder((2,), "float32", name="C")]
    assert str(refusal.value) == (
        "SubscriptError: schedule: [C] does not index a schedule. [schedule-subscript]\n"
        "  Hint: in tilewright: steps are methods, and loops have handles: "
        "i, *_ = sch.loops('C'); sch.split(i, (None, 8))."
    )


def test_protocols_of_python_and_of_notebooks_find_what_is_there_and_nothing_else() -> None:
    sch = Schedule(matmul(2, 3, 2))
    sch.unroll(sch.loops("C")[2])
    for other in (copy.copy(sch), copy.deepcopy(sch), pickle.loads(pickle.dumps(sch))):
        assert str(other) == str(sch)
    assert hasattr(sch, "_repr_html_")
    absent = ("_repr_png_", "_ipython_display_", "__array__", "__len__", "tile", "nothing")
    assert not [name for name in absent if hasattr(sch, name)]
    assert getattr(sch, "get_loops", 1) == 1
