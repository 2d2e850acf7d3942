"""driver/check/collector.py: the process has its setting back, whoever leaves last."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tilewright.driver.check.collector import LOOKS, fewer_collections


@pytest.fixture(autouse=True)
def _own_setting() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_collections_are_rarer_until_the_last_builder_leaves() -> None:
    with fewer_collections():
        with fewer_collections():
            assert gc.get_threshold() == (LOOKS, 10, 10)
        assert gc.get_threshold() == (LOOKS, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_a_failed_build_gives_the_setting_back() -> None:
    with pytest.raises(ValueError, match="failed"), fewer_collections():
        raise ValueError("failed")
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("setting", [(0, 10, 10), (LOOKS * 2, 10, 10)])
def test_a_collector_that_is_off_or_rarer_is_left_alone(setting: tuple[int, int, int]) -> None:
    gc.set_threshold(*setting)
    with fewer_collections():
        assert gc.get_threshold() == setting
    assert gc.get_threshold() == setting


def test_a_setting_that_is_changed_in_between_stays() -> None:
    with fewer_collections():
        gc.set_threshold(900, 5, 5)
    assert gc.get_threshold() == (900, 5, 5)
