"""Rotation: values beside ONNX's reference, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.rotation import Rotation
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType

from ..cases import Case, check_case, check_compiled, model_of

RNG = np.random.default_rng(0)
PLACES = np.array([[0, 3, 1, 2, 8], [1, 1, 7, 0, 2]])


def numbers(*shape: int) -> Array:
    return RNG.standard_normal(shape, np.float32)


def rotary(x: Array, width: int, *, places: bool = True, **attributes: int) -> Case:
    """A node whose angles stand in caches, or are those of each place."""
    shape = (9,) if places else (2, 5)
    angles = (numbers(*shape, width // 2), numbers(*shape, width // 2))
    return Case("RotaryEmbedding", (x, *angles, PLACES if places else None), attributes, (23,))


CASES = [
    rotary(numbers(2, 3, 5, 8), 8),
    rotary(numbers(2, 5, 24), 8, num_heads=3),
    rotary(numbers(2, 3, 5, 8), 8, interleaved=1),
    rotary(numbers(2, 3, 5, 8), 6, rotary_embedding_dim=6),
    rotary(numbers(2, 5, 24), 4, num_heads=3, rotary_embedding_dim=4, interleaved=1),
    rotary(numbers(2, 3, 5, 8), 8, places=False),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_heads_are_turned_as_onnx_turns_them(case: Case) -> None:
    check_case(case)


@pytest.mark.needs_cc
def test_compiled_heads_are_turned_too() -> None:
    check_compiled([*CASES, rotary(numbers(2, 3, 5, 64), 64)])


def test_angles_for_the_whole_batch_are_those_of_each_element() -> None:
    x, cos, sin = numbers(2, 3, 5, 8), numbers(9, 4), numbers(9, 4)
    whole, each = (
        model_of([Case("RotaryEmbedding", (x, cos, sin, places), {}, (23,))], 23)
        for places in (PLACES[:1], np.repeat(PLACES[:1], 2, 0))
    )
    results = [evaluate(import_onnx(model), feeds)["y0"] for model, feeds in (whole, each)]
    np.testing.assert_array_equal(*results)


def test_what_does_not_fit_is_refused() -> None:
    types = (TensorType("float32", (2, 3, 5, 8)), *[TensorType("float32", (2, 3, 4))] * 2)
    with pytest.raises(ModelError) as refused:
        Rotation(6).infer(types)
    assert str(refused.value) == (
        "ModelError: Rotation: expected heads, cos and sin for pairs of 6 numbers, got float32[2, "
        "3, 5, 8], float32[2, 3, 4], float32[2, 3, 4]. [rotation-fit]"
    )
    flat = Case("RotaryEmbedding", (numbers(2, 5, 24), *[numbers(2, 5, 4)] * 2), {}, (23,))
    row = Case("RotaryEmbedding", (numbers(24), *[numbers(2, 5, 4)] * 2), {}, (23,))
    for case, reason in (
        (flat, "num_heads is 0, of X float32[2, 5, 24]"),
        (row, "X is float32[24]; expected three or four axes"),
    ):
        with pytest.raises(UnsupportedOperator) as caught:
            import_onnx(model_of([case], 23)[0])
        assert reason in str(caught.value)
