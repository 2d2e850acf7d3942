"""schedule/rules/knobs/tiles.py: tiles of products whose rows a call decides."""

from __future__ import annotations

import pytest

from tests.schedule.rule_checks import answer
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.rules.knobs.tiles import Tile, pieces_of_call, tile_cycles
from tilewright.tir.analysis.tile_parts import AT_ONCE, QUARTERS, TileParts
from tilewright.tir.dim import Dim
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

TARGET = Target.parse("c:avx512")


def test_what_a_call_leaves_of_a_tile_is_priced_as_the_smaller_tiles_that_it_runs_in() -> None:
    assert pieces_of_call(16, 9, QUARTERS) == ((1, 9), (2, 3), (1, 1))
    assert pieces_of_call(16, 8, QUARTERS) == ((2, 8),)
    assert pieces_of_call(5, 8, QUARTERS) == ((2, 2), (1, 1))
    assert pieces_of_call(1, 8, QUARTERS) == ((1, 1),)
    assert pieces_of_call(7, 9, TileParts(2)) == ((1, 5), (1, 2))
    assert pieces_of_call(15, 8, AT_ONCE) == ((1, 8), (1, 7))
    assert pieces_of_call(5, 8, AT_ONCE) == ((1, 5),)
    assert pieces_of_call(31, 12, AT_ONCE) == ((2, 12), (1, 6), (1, 1))

    def cycles(tile: Tile, parts: TileParts | None = None) -> float:
        return tile_cycles(tile, 1, 16, 512, 512, FLOAT32, TARGET, parts=parts)

    assert cycles(Tile(1, 9, 3)) == cycles(Tile(1, 8, 3))
    assert cycles(Tile(1, 9, 3), QUARTERS) > 1.2 * cycles(Tile(1, 8, 3), QUARTERS)


@pytest.mark.parametrize(("usual", "tile"), [(16, (1, 8, 3)), (4, (1, 4, 6)), (9, (1, 9, 3))])
def test_rows_that_a_call_decides_have_the_tile_of_the_usual_ones(
    usual: int, tile: tuple[int, ...]
) -> None:
    m = Dim("m", low=1, high=16, typical=usual)
    a = te.placeholder((m, 512), "float32", name="A")
    b = te.placeholder((512, 384), "float32", name="B", constant=True)
    k = te.reduce_axis(512, name="k")
    c = te.compute((m, 384), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = default_schedule(te.func(a, b, c, name="rows"), TARGET)
    assert answer(sch, "tile of C") == tile


@pytest.mark.parametrize(("columns", "tile"), [(512, (1, 7, 4)), (96, (1, 7, 4)), (32, (2, 7, 2))])
def test_tiles_of_bytes_read_weights_once_for_a_whole_row(
    columns: int, tile: tuple[int, ...]
) -> None:
    """6 vectors by 4 and 3 rows would read each weight from the second cache for 3.5 of 7."""
    x = te.placeholder((16, 9, 128), "uint8", name="X")
    w = te.placeholder((3, 3, 128, columns), "int8", name="W", constant=True)
    r, s, c = (te.reduce_axis(n, name=name) for n, name in ((3, "r"), (3, "s"), (128, "c")))
    y = te.compute(
        (14, 7, columns),
        lambda h, v, o: te.sum(
            te.cast(x[h + r, v + s, c], "int32") * te.cast(w[r, s, c, o], "int32"), axis=(r, s, c)
        ),
        name="Y",
    )
    target = Target.parse("c:avx512+vnni")
    assert answer(default_schedule(te.func(x, w, y, name="bytes"), target), "tile of Y") == tile
