"""schedule/library.py: pack: text, values, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te

from .programs import body_of, chain, conv, matmul, matmul_relu, refusals, scheduled


def test_pack_reads_a_tensor_from_padded_panels_of_its_last_axis() -> None:
    def steps(sch: Schedule) -> None:
        assert sch.pack("B", 4) == "B_packed"

    text = body_of(scheduled(matmul(2, 7, 3), steps))
    assert text.splitlines()[:4] == [
        'B_packed = alloc(float32[2, 3, 4], "global")',
        "for B_packed_0 in parallel(2):",
        "    for B_packed_1 in range(3):",
        "        for B_packed_2 in vectorized(4):",
    ]
    assert "B_packed[vj // 4, vk, vj % 4]" in text


def test_the_panels_may_be_named_and_are_made_of_primitives() -> None:
    def steps(sch: Schedule) -> None:
        assert sch.pack("B", 4, name="panels") == "panels"

    sch = scheduled(matmul(2, 7, 3), steps)
    assert [step.primitive for step in sch.trace.steps] == [
        "cache_read",
        "transform_layout",
        "parallel",
        "vectorize",
    ]


@pytest.mark.parametrize("width", [1, 3, 4, 16])
def test_any_width_keeps_the_values(width: int) -> None:
    scheduled(conv(4, 5, 2, 6), lambda s: s.pack("W", width))


def test_an_intermediate_may_be_packed() -> None:
    scheduled(chain(3, 5), lambda s: s.pack("Q", 4))


def scalar() -> PrimFunc:
    s, x = te.placeholder((), "float32", name="S"), te.placeholder((4,), "float32", name="X")
    return te.func(s, x, te.compute((4,), lambda i: x[i] * s[()], name="Y"), name="scalar")


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "pack-readers: two": (chain(2, 3), lambda s: s.pack("X", 4)),
    "pack-readers: none": (matmul_relu(2, 3, 2), lambda s: s.pack("Y", 4)),
    "pack-readers: no such tensor": (matmul_relu(2, 3, 2), lambda s: s.pack("Z", 4)),
    "pack-width": (matmul(2, 3, 2), lambda s: s.pack("B", 0)),
    "pack-width: a scalar": (scalar(), lambda s: s.pack("S", 4)),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_library.txt", refusals(CASES))
