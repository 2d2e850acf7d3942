from __future__ import annotations

from dataclasses import replace

from tilewright.autotune.log.labels import labels
from tilewright.autotune.log.record import Workload
from tilewright.tir.te import te

from ..samples import workload


def total(n: int) -> Workload:
    x, k = te.placeholder((4, n), "float32", name="x"), te.reduce_axis(n, name="k")
    y = te.compute((4,), lambda i: te.sum(x[i, k], axis=k), name="y")
    return Workload.of(te.func(x, y, name="total"))


def test_a_label_is_the_name_and_the_sizes_of_the_output() -> None:
    assert list(labels([workload(64), workload(32)]).values()) == ["scaled 64", "scaled 32"]


def test_a_size_that_a_call_decides_has_its_bounds() -> None:
    n, m = te.dim("rows", 1, 512), te.dim("columns", 2, 7)
    x = te.placeholder((n, m), "float32", name="x")
    y = te.compute((n, 8), lambda i, j: x[i, 0] + 1.0, name="y")
    one = Workload.of(te.func(x, y, name="widened"))
    assert list(labels([one]).values()) == ["widened 1-512x8"]
    twin = replace(one, key="f" * 64)
    label = f"widened 1-512x8 of 1-512x2-7 #{one.key[:6]}"
    assert next(iter(labels([one, twin]).values())) == label


def test_no_two_labels_are_alike() -> None:
    one, other = total(8), total(16)
    assert list(labels([one, other]).values()) == ["total 4 of 4x8", "total 4 of 4x16"]
    twin = replace(one, key="f" * 64)
    assert list(labels([one, twin]).values()) == [
        f"total 4 of 4x8 #{one.key[:6]}",
        "total 4 of 4x8 #ffffff",
    ]


def test_a_text_of_another_version_leaves_the_name() -> None:
    assert list(labels([replace(workload(), text="?")]).values()) == ["scaled"]
