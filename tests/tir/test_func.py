"""tir/func.py: parameters by role, blocks, allocations."""

from __future__ import annotations

import pytest

from tilewright.tir.errors import IRError
from tilewright.tir.func import PrimFunc, split_allocations
from tilewright.tir.stmt import NOTHING, For
from tilewright.tir.te import te


def example() -> PrimFunc:
    a = te.placeholder((3, 4), "float32", name="A")
    w = te.placeholder((4,), "float32", name="W", constant=True)
    p = te.compute((3, 4), lambda i, j: a[i, j] * w[j], name="P")
    c = te.compute((3, 4), lambda i, j: p[i, j] + 1.0, name="C")
    return te.func(a, w, c, name="f")


def test_parameters_are_found_by_role() -> None:
    func = example()
    assert [b.name for b in func.inputs] == ["A"]
    assert [b.name for b in func.constants] == ["W"]
    assert [b.name for b in func.outputs] == ["C"]


def test_blocks_and_allocations_come_in_the_order_of_the_text() -> None:
    func = example()
    assert [block.name for block in func.blocks] == ["P", "C"]
    assert [buffer.name for buffer in func.allocations] == ["P"]
    assert func.block("C") is func.blocks[1]


def test_an_unknown_block_is_refused_with_those_that_exist() -> None:
    with pytest.raises(IRError) as refusal:
        example().block("D")
    assert str(refusal.value) == (
        "IRError: function 'f': no block 'D'; it has 'P', 'C'. [func-no-block]"
    )


def test_the_same_body_gives_the_same_function() -> None:
    func = example()
    assert func.with_body(func.body) is func
    assert func.with_body(NOTHING).body == NOTHING


def test_the_root_is_its_allocations_and_its_statements() -> None:
    func = example()
    buffers, statements = split_allocations(func.body)
    assert [buffer.name for buffer in buffers] == ["P"]
    assert [type(statement) for statement in statements] == [For, For]
    assert split_allocations(statements[0]) == ((), (statements[0],))


def test_a_function_is_shown_as_its_text() -> None:
    assert repr(example()) == str(example())
