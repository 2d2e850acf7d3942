"""graph/verification/delta.py: subsets for which a test still holds."""

from __future__ import annotations

import pytest

from tilewright.graph.verification.delta import smallest


@pytest.mark.parametrize("needed", [{0}, {7}, {3, 4}, {0, 5, 7}, set(range(8))])
def test_what_is_needed_is_left_and_asked_for_once(needed: set[int]) -> None:
    asked = []

    def holds(subset: tuple[int, ...]) -> bool:
        asked.append(subset)
        return needed <= set(subset)

    assert smallest(range(8), holds) == tuple(sorted(needed))
    assert len(asked) == len(set(asked))
    assert () not in asked


def test_no_item_of_the_result_can_go() -> None:
    def holds(subset: tuple[int, ...]) -> bool:
        return sum(subset) >= 12

    found = smallest(range(8), holds)
    assert holds(found)
    assert not any(holds(tuple(n for n in found if n != one)) for one in found)


def test_one_item_is_not_asked_for() -> None:
    assert smallest([5], lambda subset: False) == (5,)
