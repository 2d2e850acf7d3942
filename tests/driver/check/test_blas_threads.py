"""driver/check/blas_threads.py: products take fewer threads, and the process has its setting back,
whoever leaves last.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tilewright.driver.check import blas_threads as module
from tilewright.driver.check.blas_threads import (
    BlasThreads,
    blas_threads,
    fewer_blas_threads,
    share_of_cpus,
)


class Setting:
    """A library whose products take four threads."""

    count = 4

    def get(self) -> int:
        return self.count

    def set(self, count: int) -> None:
        self.count = count


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    made = Setting()
    monkeypatch.setattr(module, "blas_threads", lambda: BlasThreads(made.get, made.set))
    yield made
    assert module._limits == []


def test_products_take_the_fewest_that_somebody_asks_for(setting: Setting) -> None:
    with fewer_blas_threads(2):
        assert setting.count == 2
        with fewer_blas_threads(1):
            assert setting.count == 1
        assert setting.count == 2
        with fewer_blas_threads(3):
            assert setting.count == 2
    assert setting.count == 4


def test_the_one_who_came_first_may_leave_first(setting: Setting) -> None:
    first, second = fewer_blas_threads(1), fewer_blas_threads(2)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert setting.count == 2
    second.__exit__(None, None, None)
    assert setting.count == 4


def test_more_than_there_are_changes_nothing(setting: Setting) -> None:
    with fewer_blas_threads(9):
        assert setting.count == 4


def test_a_failed_check_gives_the_setting_back(setting: Setting) -> None:
    with pytest.raises(ValueError, match="failed"), fewer_blas_threads(1):
        raise ValueError("failed")
    assert setting.count == 4


def test_a_setting_that_is_changed_in_between_stays(setting: Setting) -> None:
    with fewer_blas_threads(2):
        setting.count = 3
    assert setting.count == 3


def test_without_such_a_library_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "blas_threads", lambda: None)
    with fewer_blas_threads(1):
        pass


@pytest.mark.parametrize(("cpus", "share"), [(1, 1), (2, 1), (3, 1), (16, 8)])
def test_a_share_is_at_least_one(monkeypatch: pytest.MonkeyPatch, cpus: int, share: int) -> None:
    monkeypatch.setattr(module, "allowed_cpus", lambda: cpus)
    assert share_of_cpus(2) == share


def test_it_is_the_library_of_numpy() -> None:
    names = [build["name"] for build in _build_dependencies().values()]
    if "scipy-openblas" not in names:
        pytest.skip("NumPy was not built with the OpenBLAS of its wheels")
    threads = blas_threads()
    assert threads is not None
    before = threads.get()
    assert before >= 1
    with fewer_blas_threads(1):
        assert threads.get() == 1
        np.matmul(np.ones((300, 300)), np.ones((300, 300)))
    assert threads.get() == before


def _build_dependencies() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, dict[str, str]]] = np.show_config(mode="dicts")  # type: ignore[assignment]
    return found["Build Dependencies"]
