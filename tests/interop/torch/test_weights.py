"""Whether weights that an engine holds are those of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")

from tilewright.interop.torch.weights import HeldWeights  # noqa: E402


def values() -> list[Any]:
    """Two weights behind an input."""
    return [torch.zeros(2), torch.nn.Parameter(torch.ones(3)), torch.ones(4)]


def test_what_is_not_touched_is_the_same() -> None:
    given = values()
    held = HeldWeights.of(given, (1, 2))
    assert held.same(given)
    given[0] = torch.ones(2)  # no weight
    assert held.same(given)
    assert held.changed(given) == []
    assert list(held.by_place) == [1, 2]


def write(given: list[Any]) -> None:
    with torch.no_grad():
        given[2].add_(1)


def replace(given: list[Any]) -> None:
    given[2] = given[2].clone()


def move(given: list[Any]) -> None:
    given[2].data = torch.ones(4)


@pytest.mark.parametrize("change", [write, replace, move])
def test_a_change_is_seen_at_its_place(change: Callable[[list[Any]], None]) -> None:
    given = values()
    held = HeldWeights.of(given, (1, 2))
    change(given)
    assert not held.same(given)
    assert held.changed(given) == [2]


def test_an_engine_is_asked_about_its_own_weights() -> None:
    """Two threads: the weights of a newer engine say nothing about an older one."""
    given = values()
    older = HeldWeights.of(given, (1, 2))
    replace(given)
    newer = HeldWeights.of(given, (1, 2))
    assert newer.same(given)
    assert not older.same(given)


def test_what_torch_counts_no_writes_of_is_not_held() -> None:
    with torch.inference_mode():
        given = values()
    assert HeldWeights.of(given, (1, 2)).places == ()
