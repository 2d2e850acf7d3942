"""The golden fixture compares, and says what is missing; what tests compile has its own folder."""

from __future__ import annotations

from collections.abc import Callable

import platformdirs
import pytest

from tilewright.runtime.toolchain.cache import user_cache

Golden = Callable[[str, str], None]


def test_a_golden_that_agrees_passes(golden: Golden) -> None:
    golden("conftest/example.txt", "one line")


@pytest.mark.skipif("config.getoption('--update-golden')")
def test_a_golden_that_differs_fails_and_names_the_file(golden: Golden) -> None:
    with pytest.raises(AssertionError, match=r"golden/conftest/example\.txt differs"):
        golden("conftest/example.txt", "another line")


@pytest.mark.skipif("config.getoption('--update-golden')")
def test_a_missing_golden_fails_with_the_command_that_writes_it(golden: Golden) -> None:
    with pytest.raises(AssertionError, match="run pytest --update-golden"):
        golden("conftest/absent.txt", "")


def test_what_tests_compile_stays_out_of_the_cache_of_the_user() -> None:
    place = user_cache().path("objects", "0" * 64)
    assert place is not None
    assert not place.is_relative_to(platformdirs.user_cache_path())
