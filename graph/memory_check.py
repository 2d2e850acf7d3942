"""Check a memory plan by walking through it: no step reads bytes that another tensor has taken.

It shares nothing with the planner: no lifetimes. The arena falls into pieces at every byte where a
tensor begins or ends, as many as there are tensors and not as there are bytes. Each piece knows
which tensor was written there last; a read of a tensor must find all of its pieces as its writer
left them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..tir.errors import InternalError
from .memory_plan import MemoryPlan, Use

CELL = 64


def check_plan(plan: MemoryPlan, uses: Sequence[Use], sizes: Mapping[str, int]) -> None:
    """Raise InternalError unless every step of `uses` finds in the arena what was written for it.

    sizes: bytes of each tensor. Tensors that a step reads and writes at once must not overlap,
    unless the plan says that the one takes the place of the other and they lie on the same bytes.
    """
    numbers = {name: n for n, name in enumerate(sizes)}
    cells: dict[str, slice] = {}
    for item in plan.placements:
        end = item.offset + sizes[item.name]
        if item.offset % CELL or item.offset < 0 or end > plan.arena_bytes:
            _refuse(f"'{item.name}' lies at bytes {item.offset} to {end} of {plan.arena_bytes}")
        cells[item.name] = slice(item.offset // CELL, -(-end // CELL))
    ends = sorted({end for cell in cells.values() for end in (cell.start, cell.stop)})
    piece = {end: number for number, end in enumerate(ends)}
    pieces = {name: slice(piece[cell.start], piece[cell.stop]) for name, cell in cells.items()}
    owners = np.full(len(ends), -1, dtype=np.int64)
    allowed = set(plan.in_place)
    for step, use in enumerate(uses):
        for name in use.reads:
            if name not in cells:
                _refuse(f"step {step} reads '{name}', which has no place")
            if np.any(owners[pieces[name]] != numbers[name]):
                _refuse(f"step {step} reads '{name}', whose bytes were not written or are taken")
        if use.write is None:
            continue
        if use.write not in cells:
            _refuse(f"step {step} writes '{use.write}', which has no place")
        for name in use.reads:
            if _clash(cells[use.write], cells[name]):
                same = cells[use.write] == cells[name] and name in use.reusable
                if not same or (use.write, name) not in allowed:
                    _refuse(f"step {step} writes '{use.write}' over '{name}', which it reads")
        owners[pieces[use.write]] = numbers[use.write]


def _clash(a: slice, b: slice) -> bool:
    start: int = max(a.start, b.start)
    stop: int = min(a.stop, b.stop)
    return start < stop


def _refuse(problem: str) -> None:
    raise InternalError(f"memory plan: {problem}.", code="plan-check")
