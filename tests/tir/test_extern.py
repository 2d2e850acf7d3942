"""tir/extern.py: what a C function is, and what its reference may give."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from tilewright.tir.buffer import Buffer
from tilewright.tir.dtype import dtype
from tilewright.tir.errors import IRError
from tilewright.tir.extern import ExternFunction, Reference

TEXT = "void twice(const float *x, float *y);"
X = np.arange(3, dtype=np.float32)


def twice(x: np.ndarray) -> np.ndarray:
    return x * 2


def wanted(kind: str = "float32") -> tuple[Buffer, np.dtype]:
    return Buffer("Y", dtype(kind), (3,)), dtype(kind).numpy


def computed(reference: Reference, *outputs: tuple[Buffer, np.dtype]) -> list[np.ndarray]:
    return ExternFunction("twice", TEXT, reference).compute([X], outputs)


def test_it_is_its_c_text_alone() -> None:
    one, other = (ExternFunction("twice", TEXT, f) for f in (twice, lambda x: x + x))
    assert one == other
    assert hash(one) == hash(other)
    assert one.digest == "9da2c94730f11a74"
    changed = ExternFunction("twice", TEXT + " ", twice)
    assert changed != one
    assert changed.digest != one.digest


def test_results_have_the_type_that_is_asked_for() -> None:
    (made,) = computed(twice, (wanted()[0], np.dtype(np.float64)))
    assert made.dtype == np.float64
    assert made.tolist() == [0.0, 2.0, 4.0]
    values, places = computed(lambda x: (x, x.argsort()), wanted(), wanted("int32"))
    assert (values.dtype, places.dtype) == (np.float32, np.int32)


def test_a_reference_cannot_change_what_it_is_given() -> None:
    def fill(x: np.ndarray) -> np.ndarray:
        x[...] = 0
        return x

    with pytest.raises(ValueError, match="read-only"):
        computed(fill, wanted())


@pytest.mark.parametrize(
    ("reference", "kind", "text"),
    [
        (lambda x: (x, x), "float32", "gave 2 arrays; expected 1."),
        (lambda x: x[1:], "float32", "gave float32[2] for 'Y'; expected float32[3]."),
        (twice, "int32", "gave float32[3] for 'Y'; expected int32[3]."),
    ],
)
def test_a_reference_that_gives_something_else_is_refused(
    reference: Reference, kind: str, text: str
) -> None:
    with pytest.raises(IRError) as error:
        computed(reference, wanted(kind))
    assert str(error.value) == (
        f"IRError: extern: the reference of 'twice' {text} [extern-reference]\n"
        "  Hint: it takes an array for each input and returns one, or a tuple, of new arrays."
    )


def test_it_pickles_where_its_reference_has_a_name() -> None:
    function = ExternFunction("abs", TEXT, np.abs)
    assert pickle.loads(pickle.dumps(function)) == function
    assert copy.deepcopy(ExternFunction("f", TEXT, lambda x: x)).symbol == "f"


def test_a_reference_without_a_name_is_not_pickled() -> None:
    reference = lambda x: x  # noqa: E731
    with pytest.raises(pickle.PicklingError) as error:
        pickle.dumps(ExternFunction("same", TEXT, reference))
    assert str(error.value) == (
        f"ExternPickleError: pickle: the reference of extern 'same' is {reference!r}, which "
        "another process cannot find. [extern-pickle]\n"
        "  Hint: a function of a module, by `def` at its top, can be pickled."
    )
