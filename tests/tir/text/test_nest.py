"""tir/text/nest.py: the text of a function, with what is known of each loop."""

from __future__ import annotations

import html
import re

from tilewright import te
from tilewright.schedule.schedule import Schedule
from tilewright.tir.analysis.footprint import footprint
from tilewright.tir.func import PrimFunc
from tilewright.tir.stmt import For
from tilewright.tir.text.nest import nest_html
from tilewright.tir.visit import statements


def product() -> PrimFunc:
    A = te.placeholder((64, 128), "float32", name="A")
    B = te.placeholder((128, 256), "float32", name="B")
    k = te.reduce_axis(128, name="k")
    C = te.compute((64, 256), lambda i, j: te.sum(A[i, k] * B[k, j], k), name="C")
    return te.func(A, B, C, name="product")


def test_a_loop_says_how_often_it_runs_and_what_it_touches() -> None:
    func = product()
    assert re.findall('title="(.*?)"', func._repr_html_()) == [
        "64 iterations, begun 1 time; 224 KiB touched each time",
        "256 iterations, begun 64 times; 130 KiB touched each time",
        "128 iterations, begun 16,384 times; 1 KiB touched each time",
    ]


def test_the_text_is_that_of_the_function() -> None:
    func = product()
    shown = html.unescape(re.sub("<[^>]*>", "", nest_html(str(func), func.body)))
    assert shown == str(func).rstrip("\n")


def test_the_footprint_counts_each_tensor_once_and_no_register() -> None:
    schedule = Schedule(product())
    loops = schedule.loops("C")
    schedule.split(loops[1], (None, 16))
    sizes = [footprint(loop) for loop in statements(schedule.func.body) if isinstance(loop, For)]
    row, column, element = 128 * 4, 128 * 256 * 4, 64 * 256 * 4
    assert sizes == [
        64 * row + column + element,
        row + column + 256 * 4,
        row + 128 * 16 * 4 + 16 * 4,
        row + row + 4,
    ]
