"""schedule/rules/products/product_nest.py: where the loop over panels stands."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tilewright import te
from tilewright.schedule.rules.default import default_schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ...programs import conv

IMAGE = 30 * 30 * 4  # bytes, with its border
BASE = replace(Target.parse("c:avx512"), l1_bytes=1 << 10)


def loops_outside(func: PrimFunc, target: Target) -> list[str]:
    """The loops of the product down to that over panels, o_0."""
    text = str(default_schedule(func, target).func)
    nest = text.partition('block("W_packed"')[2]
    loops = re.findall(r"for (\w+) in ", nest)
    return loops[: loops.index("o_0") + 1]


@pytest.mark.parametrize(
    ("batch", "cache", "expected"),
    [
        (2, 2 * IMAGE, ["n", "o_0"]),
        (2, 2 * IMAGE - 1, ["o_0"]),  # an image does not stay
        (1, 2 * IMAGE, ["o_0"]),
        (2, 4 * IMAGE, ["n", "h_0", "o_0"]),  # all weights stay
    ],
)
def test_an_image_stays_in_the_cache_while_panels_pass(
    batch: int, cache: int, expected: list[str]
) -> None:
    func = conv(28, 28, 1, 160, stride=2, batch=batch)
    assert loops_outside(func, replace(BASE, l2_bytes=cache)) == expected


BYTES = replace(Target.parse("c:avx512+vnni"), threads=2, l2_bytes=1 << 21)


def of_bytes(size: int, channels: int, outputs: int) -> PrimFunc:
    """Windows of 3x3 over bytes that have their border."""
    x = te.placeholder((size + 2, size + 2, channels), "uint8", name="X")
    w = te.placeholder((3, 3, channels, outputs), "int8", name="W", constant=True)
    r, s, c = (te.reduce_axis(n, name=m) for n, m in ((3, "r"), (3, "s"), (channels, "c")))
    y = te.compute(
        (size, size, outputs),
        lambda h, v, o: te.sum(
            te.cast(x[h + r, v + s, c], "int32") * te.cast(w[r, s, c, o], "int32"), axis=(r, s, c)
        ),
        name="Y",
    )
    return te.func(x, w, y, name="of_bytes")


@pytest.mark.parametrize(
    ("sizes", "first"),
    [
        ((14, 256, 256), "o_0"),
        ((7, 512, 512), "o_0"),  # all weights do not stay anyway
        ((28, 64, 256), "h_0"),  # fewer weights than threads read of each other's rows
        ((14, 256, 320), "h_0"),  # five panels, of which a thread would have three
        ((14, 512, 128), "h_0"),  # each thread would have one, and ask for none that it reads
        ((56, 256, 256), "h_0"),  # the data do not stay
    ],
)
def test_weights_pass_once_where_the_data_stay_and_are_asked_for_between_taps(
    sizes: tuple[int, int, int], first: str
) -> None:
    text = str(default_schedule(of_bytes(*sizes), BYTES).func)
    nest = text.partition('block("W_packed"')[2]
    loops = [loop for loop in re.findall(r"for (\w+) in ", nest) if loop in ("o_0", "h_0")]
    assert loops[:2] == [first, "h_0" if first == "o_0" else "o_0"]
    assert ("prefetch(W_packed" in nest) == (first == "o_0")


@pytest.mark.parametrize(("rows", "first"), [(196, "j_0"), (400, "i_0")])
def test_panels_that_read_much_again_stand_inside(rows: int, first: str) -> None:
    """Of 1,024 by 1,280 weights: 16 panels read the data of all rows."""
    a = te.placeholder((rows, 1024), "uint8", name="A")
    b = te.placeholder((1024, 1280), "int8", name="B", constant=True)
    k = te.reduce_axis(1024, name="k")
    y = te.compute(
        (rows, 1280),
        lambda i, j: te.sum(te.cast(a[i, k], "int32") * te.cast(b[k, j], "int32"), axis=k),
        name="Y",
    )
    z = te.compute((rows, 1280), lambda i, j: te.cast(te.maximum(y[i, j], 0), "uint8"), name="Z")
    text = str(default_schedule(te.func(a, b, z, name="product"), BYTES).func)
    nest = text.partition('block("B_packed"')[2]
    assert next(v for v in re.findall(r"for (\w+) in ", nest) if v in ("i_0", "j_0")) == first
