"""tir/te/vocabulary.py: names known from other systems are answered with ours."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable

import pytest

from tilewright.tir.errors import IRError
from tilewright.tir.te import te
from tilewright.tir.te.vocabulary import NAMES


def test_each_name_is_answered_with_ours(golden: Callable[[str, str], None]) -> None:
    texts = []
    for name in NAMES:
        with pytest.raises(AttributeError) as refusal:
            getattr(te, name)
        texts.append(str(refusal.value))
    golden("errors/te_vocabulary.txt", "\n".join(texts))


def test_no_name_of_ours_stands_in_the_table_and_every_answer_exists() -> None:
    assert not set(te.__all__) & NAMES.keys()
    answers = " ".join(NAMES.values())
    assert set(re.findall(r"\bte\.(\w+)", answers)) <= set(te.__all__)


MISSPELT = {
    "placeholdr": (
        "UnknownNameError: te: no name 'placeholdr'; the closest: 'placeholder'. [te-name]\n"
    ),
    "sofmax": (
        "UnknownNameError: te: no name 'sofmax'; the closest: 'max'. [te-name]\n"
        "  Hint: for 'softmax', in tilewright: te.max, te.exp, te.sum and a division, each a "
        "te.compute.\n"
    ),
    "quantise": "UnknownNameError: te: no name 'quantise'. [te-name]\n",
}


@pytest.mark.parametrize("name", MISSPELT)
def test_an_unknown_name_is_answered_with_the_closest_and_where_all_are(name: str) -> None:
    with pytest.raises(AttributeError) as refusal:
        getattr(te, name)
    assert str(refusal.value) == f"{MISSPELT[name]}  Hint: dir(te) lists all that there are."
    assert dir(te) == sorted(te.__all__)


def test_a_range_is_no_extent() -> None:
    with pytest.raises(IRError) as refusal:
        te.reduce_axis((0, 8), name="k")  # type: ignore[arg-type]
    assert str(refusal.value) == (
        "IRError: te.reduce_axis: the extent of 'k' is (0, 8); expected one integer. "
        "[te-reduce-extent]\n"
        "  Hint: in tilewright: te.reduce_axis(8): every axis begins at 0."
    )


def test_protocols_of_python_find_what_is_there_and_nothing_else() -> None:
    assert not hasattr(te, "__path__")
    assert not hasattr(te, "thread_axis")
    assert copy.copy(te.__all__) == te.__all__
