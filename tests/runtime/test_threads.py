"""runtime/threads.py: which numbers of threads a run takes."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.arrays import ArgumentTypeError, ArgumentValueError
from tilewright.runtime.engine import Engine
from tilewright.runtime.threads import checked_threads

from ..tiny_engine import tiny_engine


def test_whole_numbers_of_one_or_more_are_taken() -> None:
    taken = [checked_threads(number, "f") for number in (1, np.int64(3), True)]
    assert taken == [1, 3, 1]
    assert {type(number) for number in taken} == {int}


@pytest.mark.parametrize("threads", ["2", 1.5, 2.0, [1]])
def test_what_is_no_whole_number_is_refused(threads: object) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        checked_threads(threads, "f")
    assert isinstance(caught.value, TypeError)
    assert str(caught.value) == (
        f"ArgumentTypeError: f: threads is {threads!r}; expected a whole number of at least 1. "
        "[argument-threads-type]"
    )


def test_an_engine_refuses_them_when_it_is_made_and_when_it_runs() -> None:
    engine = tiny_engine("python")
    with pytest.raises(ArgumentTypeError, match="tiny: threads is '2'"):
        engine.context(threads="2")  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"tiny: threads is 1\.5"):
        Engine(engine.parts, threads=1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentValueError, match="tiny: threads is 0"):
        Engine(engine.parts, threads=0)
