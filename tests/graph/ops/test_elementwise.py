"""What elementwise operators have in common: broadcasting, element types, one base."""

from __future__ import annotations

import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.extensions.origin import is_ours
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.elementwise import Elementwise, broadcast
from tilewright.graph.ops.functions import Exp
from tilewright.graph.ops.registry import OPERATORS
from tilewright.graph.types import TensorType


def test_shapes_are_aligned_at_the_last_axis() -> None:
    types = (TensorType("float32", (2, 1, 4)), TensorType("float32", (3, 1)))
    assert broadcast(Add(), types) == TensorType("float32", (2, 3, 4))
    assert broadcast(Add(), (TensorType("float32", ()),)) == TensorType("float32", ())


def test_sizes_of_zero_stay_zero() -> None:
    types = (TensorType("float32", (0, 3)), TensorType("float32", (1, 3)))
    assert Add().infer(types)[0].shape == (0, 3)


def test_the_closed_set_holds_every_elementwise_operator() -> None:
    found = {op.__name__ for op in Elementwise.__subclasses__() if is_ours(op)}
    assert {op.__name__ for op in OPERATORS if issubclass(op, Elementwise)} == found
    assert len(found) > 30


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ModelError) as caught:
        Add().infer((TensorType("float32", (2, 3)), TensorType("float32", (4, 3))))
    assert str(caught.value) == (
        "ModelError: Add: shapes do not broadcast: axis -2 has sizes [2, 4] in float32[2, 3], "
        "float32[4, 3]. "
        "[op-broadcast]"
    )
    with pytest.raises(ModelError) as caught:
        Mul().infer((TensorType("bool", (2,)), TensorType("bool", (2,))))
    assert str(caught.value) == "ModelError: Mul: expected numbers, got bool. [op-number]"
    with pytest.raises(ModelError) as caught:
        Exp().infer((TensorType("int64", (2,)),))
    assert str(caught.value) == (
        "ModelError: Exp: expected float16, bfloat16, float32 or float64, got int64. [op-float]"
    )
