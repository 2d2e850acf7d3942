"""Steps of shuffles transpose a square of vectors, on each instruction set and of each type."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.isa.isa import isa
from tilewright.codegen.isa.selection import shuffle_operation
from tilewright.codegen.isa.shuffles import alternate, interleaved, transposition
from tilewright.tir.dtype import DType, dtype
from tilewright.tir.target.target import Target

ISAS = ("avx2", "avx512", "neon")


def kinds(name: str) -> list[DType]:
    return sorted(isa(Target.parse(f"c:{name}")).types, key=str)


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in ISAS for kind in kinds(name)], ids=str
)
def test_the_steps_exchange_rows_and_columns(name: str, kind: DType) -> None:
    tables = isa(Target.parse(f"c:{name}"))
    square = np.arange(kind.lanes**2).reshape(kind.lanes, kind.lanes)
    rows = [*square]
    for step in transposition(kind):
        both = np.concatenate([rows[step.first], rows[step.second]])
        rows[step.first], rows[step.second] = both[[*step.low]], both[[*step.high]]
        assert tables.has(shuffle_operation(step.low), kind)
        assert tables.has(shuffle_operation(step.high), kind)
    assert (np.array(rows) == square.T).all()


def test_lanes_are_interleaved_within_blocks_and_blocks_are_taken_alternately() -> None:
    kind = dtype("float32").with_lanes(8)
    assert interleaved(kind, 0) == (0, 8, 1, 9, 4, 12, 5, 13)
    assert interleaved(kind, 1) == (2, 10, 3, 11, 6, 14, 7, 15)
    assert alternate(kind, 0) == (0, 1, 2, 3, 8, 9, 10, 11)
    assert alternate(kind, 1) == (4, 5, 6, 7, 12, 13, 14, 15)


def test_a_step_of_each_vector_for_each_bit_of_its_lanes() -> None:
    kind = dtype("int8").with_lanes(16)
    assert len([*transposition(kind)]) == 4 * 8
    assert len([*transposition(dtype("float64").with_lanes(8))]) == 3 * 4
