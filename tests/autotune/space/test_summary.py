"""autotune/space/summary.py: what is said of a space is true of one that is walked whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tilewright as tw
from tilewright.autotune.space.space import TuningSpace
from tilewright.autotune.space.summary import summarise_space
from tilewright.runtime.machine.host import host_target
from tilewright.schedule.schedule import Schedule
from tilewright.tir.target.target import Target

from ...driver.kernels import KERNELS
from ..samples import scaled
from ..search.test_search import SPACE

TARGET = replace(Target.parse("c:avx512"), threads=1)


def test_a_small_space_is_counted_whole_with_what_is_refused() -> None:
    found = summarise_space(SPACE)
    assert str(found) == (
        "'scaled', rule split_twice, c:avx512: 7 points, 86% of 7 legal\n"
        "  refused, 1 of 7: [split-tail]\n"
        "  question 0  4, of 5: 2, 4, 8, 16, 3\n"
        "  question 1  1, of 2: 1, 2; in 57% of the points"
    )
    assert found.is_counted
    assert found.size == len(list(SPACE.points()))


def test_a_function_of_a_notebook_may_be_a_lambda_over_what_stands_around_it() -> None:
    sizes = [2, 4, 8]
    found = tw.tuning_space(
        scaled(),
        "c:avx2",
        rule=lambda sch: sch.split(
            sch.loops("y")[0], (None, sch.sample_categorical(sizes, 1, name="part of i"))
        ),
    )
    assert str(found) == (
        "'scaled', rule <lambda>, c:avx2: 3 points, 100% of 3 legal\n  part of i  4, of 3: 2, 4, 8"
    )


def test_an_open_target_has_this_machine_s_space() -> None:
    found = tw.tuning_space(scaled(), Target("c", threads=2))
    assert found.space.target == replace(host_target(), threads=2)
    assert found.legal == 1


def bits(sch: Schedule) -> None:
    for number in range(10):
        sch.sample_categorical([0, 1], name=f"bit {number}")


def test_the_size_of_a_space_as_wide_everywhere_is_known_without_walking_it() -> None:
    found = summarise_space(TuningSpace(scaled(), TARGET, bits))
    assert (found.size, found.error, found.seen) == (1024.0, 0.0, 64)
    assert not found.is_counted
    assert "about 1,000 points, 100% of 64 legal\n  bit 0  0, of 2: 0, 1\n" in str(found)


def uneven(sch: Schedule) -> None:
    """Behind the answer n to the first question there are n more, of three candidates each."""
    for number in range(sch.sample_categorical(range(6), name="more")):
        sch.sample_categorical([0, 1, 2], name=f"of {number}")


@pytest.mark.parametrize("seed", range(3))
def test_the_size_of_an_uneven_space_is_reported_with_its_error(seed: int) -> None:
    found = summarise_space(TuningSpace(scaled(), TARGET, uneven), seed)
    size = sum(3**n for n in range(6))
    assert found.error > 0
    assert abs(found.size - size) < 3 * found.error
    assert str(summarise_space(TuningSpace(scaled(), TARGET, uneven), seed)) == str(found)


def test_the_questions_of_a_rule_are_listed_with_its_own_choices() -> None:
    found = tw.tuning_space(KERNELS["transpose"](), TARGET)
    assert str(found).splitlines()[1:] == [
        "  tile of Y          (16, 16), of 14: (8, 8), (8, 16), (8, 32), (16, 8), (16, 16), ...",
        "  rows outside of Y  False, of 2: False, True",
    ]
    assert found.legal == 1.0
    assert repr(found) == str(found)
    assert "<td>rows outside of Y</td><td>False</td><td>False, True</td>" in found._repr_html_()
