"""tir/analysis/update.py: what a reduction combines, read back from its block."""

from __future__ import annotations

import pytest

from tilewright.tir.analysis.update import read_update
from tilewright.tir.buffer import Buffer
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.expr import Var
from tilewright.tir.stmt import Block
from tilewright.tir.te import te
from tilewright.tir.te.reductions import CommReducer
from tilewright.tir.text.printer import print_expr

X = te.placeholder((4, 8), "float32", name="X")
K = te.reduce_axis(8, name="k")


def block_of(*tensors: te.Tensor) -> Block:
    return te.func(X, *tensors, name="f").blocks[0]


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "max_any"])
def test_an_operator_of_the_language_is_seen(name: str) -> None:
    reduce = getattr(te, name)
    update = read_update(block_of(te.compute((4,), lambda i: reduce(X[i, K], axis=K), name="Y")))
    assert update is not None
    assert update.reducer == name
    assert [print_expr(value) for value in update.values] == ["X[vi, vk]"]


@pytest.mark.parametrize("name", ["any", "all"])
def test_so_is_one_of_truth_values(name: str) -> None:
    reduce = getattr(te, name)
    block = block_of(te.compute((4,), lambda i: reduce(X[i, K] > 0.0, axis=K), name="Y"))
    update = read_update(block)
    assert update is not None
    assert (update.reducer, print_expr(update.values[0])) == (name, "0.0 < X[vi, vk]")


def test_any_other_reducer_names_what_it_combines() -> None:
    norm = CommReducer("worse", lambda a, b: te.maximum(a, b) + 0.0, lambda t: te.const(-1e9, t))
    update = read_update(block_of(te.compute((4,), lambda i: norm(X[i, K], axis=K), name="Y")))
    assert update is not None
    assert update.reducer is None
    assert print_expr(update.results[0]) == "max(own0, new0) + 0.0"
    part = Buffer("part", FLOAT32, (4,))
    (stored,) = update.stored([part[0]], [part[1]])
    assert print_expr(stored) == "let(x0, part[1], max(part[0], x0) + 0.0)"


def test_values_and_results_of_several_stand_in_order() -> None:
    made = te.compute((4,), lambda i: te.argmin(X[i, K], axis=K), name=("best", "at"))
    update = read_update(block_of(*made))
    assert update is not None
    assert [print_expr(value) for value in update.values] == ["X[vi, vk]", "vk"]
    assert [str(value.dtype) for value in update.results] == ["float32", "int64"]


def test_an_update_that_shows_no_new_value_is_not_read() -> None:
    c = Buffer("C", FLOAT32, (4,))
    block = block_of(te.compute((4,), lambda i: te.sum(X[i, K], axis=K), name="Y"))
    assert read_update(block) is not None
    twice = te.compute((4,), lambda i: te.exp(X[i, 0]), name="Y")
    assert read_update(block_of(twice)) is None
    assert c[Var("i")].buffer is c
