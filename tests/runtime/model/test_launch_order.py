"""runtime/model/launch_order.py: launches in order, layers that repeat once."""

from __future__ import annotations

import pytest

from tilewright.runtime.model.launch_order import (
    Fold,
    LaunchedGroup,
    draw_launches,
    fold_repeats,
)
from tilewright.runtime.model.report import EngineReport, KernelReport


@pytest.mark.parametrize(
    ("keys", "folds"),
    [
        ("", []),
        ("abc", [(0, 1, 1), (1, 1, 1), (2, 1, 1)]),
        ("aaa", [(0, 1, 3)]),
        ("xababaz", [(0, 1, 1), (1, 2, 2), (5, 1, 1), (6, 1, 1)]),
        ("abcabcabcd", [(0, 3, 3), (9, 1, 1)]),
        ("aabaab", [(0, 3, 2)]),
    ],
)
def test_what_repeats_at_once_is_folded(keys: str, folds: list[tuple[int, int, int]]) -> None:
    found = fold_repeats(keys)
    assert found == tuple(Fold(*fold) for fold in folds)
    unfolded = (keys[fold.start : fold.start + fold.length] * fold.times for fold in found)
    assert "".join(unfolded) == keys


def test_a_layer_that_repeats_has_its_rows_once() -> None:
    layer = [
        LaunchedGroup("q, k", "matmul", "rule", "t"),
        LaunchedGroup("s", "softmax", "rule", "t"),
    ]
    picture = draw_launches([*layer * 12, LaunchedGroup("<out>", "head", "tuned", "t")], "25")
    assert picture.svg.count("<rect") == 3
    assert ">12 times</text>" in picture.svg
    assert ">24</text>" in picture.svg  # the number of the last launch, among all
    assert "&lt;out&gt;" in picture.svg


def test_a_report_has_the_launches_in_the_order_of_a_run() -> None:
    kernels = (
        KernelReport("conv", "s1", ("n1", "n3"), "contraction", "tuned", "proved"),
        KernelReport("relu", "s2", ("n2",), "elementwise", "rule", "proved"),
    )
    report = EngineReport(kernels, order=("s1", "s2", "s1"))
    shown = report._repr_html_()
    places = [shown.index(f"{nodes}</text>") for nodes in ("n1", "n2", "n3")]
    assert places == sorted(places)
    assert "3 launches in order" in shown
    assert "<svg" not in EngineReport(kernels)._repr_html_()
