"""tir/reference/definitions.py: what canonical functions define, and which functions are not
canonical.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.tir.analysis.specialise import specialise
from tilewright.tir.buffer import Load
from tilewright.tir.dim import Dim
from tilewright.tir.errors import IRError
from tilewright.tir.expr import Sub
from tilewright.tir.func import PrimFunc
from tilewright.tir.node import Node
from tilewright.tir.reference.definitions import definitions
from tilewright.tir.stmt import Block, If, Store
from tilewright.tir.te import te
from tilewright.tir.visit import transform


def matmul() -> PrimFunc:
    a, b = te.placeholder((4, 8), "float32", name="A"), te.placeholder((8, 6), "float32", name="B")
    k = te.reduce_axis(8, name="k")
    c = te.compute((4, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, te.compute((4, 6), lambda i, j: te.exp(c[i, j]), name="D"), name="mm")


def change_block(func: PrimFunc, **fields: object) -> PrimFunc:
    def rule(node: Node) -> Node:
        return replace(node, **fields) if isinstance(node, Block) and node.name == "C" else node

    return func.with_body(transform(func.body, rule))


def test_each_block_is_one_definition_in_order() -> None:
    product, exponential = definitions(matmul())
    assert (product.block, product.reducer, product.steps) == ("C", "sum", 8)
    assert product.plain
    assert [axis.extent for axis in product.axes] == [4, 6]
    assert (exponential.reducer, exponential.initial, exponential.steps) == (None, (), 1)


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "max_any"])
def test_each_reducer_is_recognised(name: str) -> None:
    a, k = te.placeholder((4, 8), "float32", name="A"), te.reduce_axis(8, name="k")
    b = te.compute((4,), lambda i: getattr(te, name)(a[i, k], axis=k), name="B")
    (found,) = definitions(te.func(a, b, name="f"))
    assert found.reducer == name
    assert isinstance(found.value, Load)


def test_a_function_that_a_schedule_has_changed_is_refused() -> None:
    func = matmul()
    block = func.block("C")
    with pytest.raises(IRError) as error:
        definitions(change_block(func, predicate=block.iters[0].var < 3))
    assert str(error.value) == (
        "IRError: evaluate: 'C' is not in canonical form: it has a predicate. [evaluate-form]\n"
        "  Hint: evaluate the function that te.func made, or its canonical form."
    )
    bindings = (block.bindings[0] * 2, *block.bindings[1:])
    for changed, why in [
        (change_block(func, bindings=bindings), "'vi' is not a loop of its own"),
        (change_block(func, init=None), "its initialisation stands elsewhere"),
        (func.with_body(If(te.const(True, "bool"), func.body)), "a If stands among its blocks"),
    ]:
        with pytest.raises(IRError, match=why):
            definitions(changed)


def test_an_unknown_combination_is_refused() -> None:
    func = matmul()
    store = func.block("C").body
    assert isinstance(store, Store)
    body = replace(store, value=Sub(Load(store.buffer, store.indices), te.const(1.0, "float32")))
    with pytest.raises(IRError) as error:
        definitions(change_block(func, body=body))
    assert str(error.value) == (
        "IRError: evaluate: block 'C' combines its values in an unknown way; expected a sum, "
        "a product, a minimum or a maximum with its own element. [evaluate-reducer]"
    )


def test_a_reduction_ends_where_no_point_counts() -> None:
    size = Dim("n", low=0, high=100)
    x, k = te.placeholder((3, 100), "float32", name="X"), te.reduce_axis(size, name="k")
    y = te.compute((3,), lambda i: te.sum(x[i, te.clamp_index(k, 100)], axis=k), name="Y")
    func = te.func(x, y, name="f", sizes=[size])
    for value, steps in ((7, 7), (0, 1)):
        (found,) = definitions(specialise(func, {size: value}))
        assert [axis.extent for axis in found.reduced] == [steps]
