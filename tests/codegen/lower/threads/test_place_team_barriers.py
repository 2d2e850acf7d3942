"""codegen/lower/threads/place_team_barriers.py: barriers of a block where threads depend on each
other.
"""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.threads.place_team_barriers import PlaceTeamBarriers
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.text.printer import print_stmt

HEAD = "def f(A: float32[8, 8], X: output(float32[8, 8])):\n"


def function(body: str) -> PrimFunc:
    return parse(HEAD + "\n".join(f"    {line}" for line in body.splitlines()) + "\n")


def step(name: str, target: str, source: str, column: str = "t") -> str:
    return (
        'for t in bound(8, axis="threadIdx.x"):\n'
        f'    with block("{name}", i=spatial(8, r), j=spatial(8, t)):\n'
        f"        {target}[i, j] = {source}[i, {column.replace('t', 'j')}]"
    )


def grid(*steps: str, serial: bool = False) -> str:
    inner = "\n".join(steps)
    head = ['for r in bound(8, axis="blockIdx.x"):', '    S = alloc(float32[8, 8], "shared")']
    indent = "    "
    if serial:
        head.append("    for k in range(3):")
        indent = "        "
    return "\n".join([*head, *(indent + line for line in inner.splitlines())])


def places(body: str) -> list[str]:
    """The loops of threads and the barriers, in order."""
    lines = print_stmt(PlaceTeamBarriers()(function(body)).body).splitlines()
    words = {"barrier()": "|", 'for t in bound(8, axis="threadIdx.x"):': "."}
    return [words[line.strip()] for line in lines if line.strip() in words]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (grid(step("S", "S", "A"), step("X", "X", "S", "7 - t")), ".|."),
        (grid(step("S", "S", "A"), step("X", "X", "S")), ".."),  # each reads what it wrote
        (grid(step("S", "S", "A"), step("X", "X", "A", "7 - t")), ".."),
        (grid(step("S", "S", "A"), "barrier()", step("X", "X", "A")), ".."),
        (grid(step("S", "S", "A"), step("X", "X", "S", "7 - t"), serial=True), ".|.|"),
        (grid(step("S", "S", "A"), step("X", "X", "S"), serial=True), ".."),
        (grid(step("S", "S", "A"), step("T", "S", "A", "7 - t")), ".."),  # both by their index
    ],
)
def test_a_barrier_stands_where_threads_depend_and_nowhere_else(body: str, expected: str) -> None:
    assert "".join(places(body)) == expected


def test_a_function_without_a_grid_is_the_same_object() -> None:
    func = parse(
        HEAD + "    for r in parallel(8):\n        for t in range(8):\n"
        '            with block("X", i=spatial(8, r), j=spatial(8, t)):\n'
        "                X[i, j] = A[i, j]\n"
    )
    assert PlaceTeamBarriers()(func) is func
