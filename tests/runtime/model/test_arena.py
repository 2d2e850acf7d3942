"""runtime/model/arena.py: which bytes each tensor has, from which launch to which."""

from __future__ import annotations

import re
from functools import partial

import pytest

from tilewright.runtime.model.arena import ArenaTensor, arena_tensors
from tilewright.runtime.model.report import MemoryPlan
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.program.fitting import effects_of
from tilewright.tir.program.program import (
    Branch,
    Copy,
    Effects,
    Launch,
    Repeat,
    Slice,
    Sync,
    functions_by_name,
)

from ...looping_program import looping


def arena(position: int, size: int = 16) -> Slice:
    return Slice("arena", position, FLOAT32, (size,))


def effects(launch: Launch) -> Effects:
    """Functions read all of their arguments but the last one, and write that."""
    return Effects(launch.arguments[:-1], launch.arguments[-1:])


INPUT, OUTPUT = (Slice(space, 0, FLOAT32, (16,)) for space in ("input", "output"))
BODY = (
    Launch("f", (INPUT, arena(0)), "conv"),
    Sync(),
    Launch("g", (arena(0), arena(64)), "relu"),
    Sync(),
    Launch("h", (arena(0), arena(64), arena(0)), "add <b>"),  # over what it reads
    Copy(arena(0), OUTPUT),
)


def test_a_tensor_lives_from_its_write_to_its_last_read() -> None:
    assert arena_tensors(BODY, effects) == (
        ArenaTensor("conv", "float32[16]", 0, 64, 0, 2),
        ArenaTensor("relu", "float32[16]", 64, 64, 1, 2),
        ArenaTensor("add <b>", "float32[16]", 0, 64, 2, 3),
    )


def test_who_reads_a_part_of_a_tensor_keeps_it() -> None:
    body = (
        Launch("f", (INPUT, arena(0)), "conv"),
        Launch("g", (arena(32, 4), arena(64)), "tail"),
        Launch("h", (arena(48, 8), arena(128)), "beyond"),
        Launch("k", (arena(64), OUTPUT), "end"),
    )
    assert [(one.label, one.last) for one in arena_tensors(body, effects)] == [
        ("conv", 2),
        ("tail", 3),
        ("beyond", 2),
    ]


def test_areas_are_as_wide_as_the_launches_in_which_tensors_live() -> None:
    shown = MemoryPlan(0, 128, 0, 0, tensors=arena_tensors(BODY, effects)).picture().svg
    widths = [float(found) for found in re.findall(r'<rect[^>]* width="([\d.]+)"', shown)]
    launch = widths[0] / 3
    assert widths == pytest.approx([3 * launch, 2 * launch, 2 * launch], abs=0.2)


def test_the_map_shows_every_tensor_and_the_lower_bound() -> None:
    plan = MemoryPlan(0, 128, 0, 0, 120, tensors=arena_tensors(BODY, effects))
    shown = plan._repr_html_()
    assert shown.count("<rect") == 3
    assert "<title>conv: float32[16], 64 B at 0, launches 0 to 2</title>" in shown
    assert "add &lt;b&gt;" in shown
    assert ">lower bound 120 B</text>" in shown
    assert "<svg" not in MemoryPlan(0, 128, 0, 0)._repr_html_()
    assert "lower bound" not in MemoryPlan(0, 128, 0, 0, tensors=plan.tensors).picture().svg


def test_what_a_loop_reads_lives_to_its_end() -> None:
    program = looping()
    tensors = arena_tensors(program.body, partial(effects_of, functions_by_name(program)))
    found = [(tensor.label, tensor.first, tensor.last) for tensor in tensors]
    assert found == [
        ("more", 1, 2),
        ("twice", 3, 3),
        ("less", 4, 9),
        ("copy", 6, 6),
        ("iteration", 7, 8),
        ("until", 8, 8),
    ]


def test_what_was_there_before_a_loop_that_reads_it_lives_to_the_end_of_its_last_step() -> None:
    inner = (
        Launch("g", (arena(0), arena(64)), "first"),
        Launch("h", (arena(64), arena(128)), "last"),
        Sync(),
    )
    body = (Launch("f", (INPUT, arena(0)), "before"), Sync(), Repeat(0, 2, None, inner))
    lives = [(tensor.first, tensor.last) for tensor in arena_tensors(body, effects)]
    assert lives == [(0, 2), (1, 2), (2, 2)]
    branch = (*body[:2], Branch(INPUT, inner[:2], inner[:2]))
    lives = [(tensor.first, tensor.last) for tensor in arena_tensors(branch, effects)]
    assert lives == [(0, 3), (1, 2), (2, 2), (3, 4), (4, 4)]
