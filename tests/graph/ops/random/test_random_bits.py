"""Random bits: those of the generator, evenly spread, each node's its own."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.random.random_bits import RandomBits
from tilewright.graph.types import Array, TensorType
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.intrinsics import THREEFRY
from tilewright.tir.te import te

KEY = 0x0370_7344_1319_8A2E
INDEX = np.arange(1 << 16, dtype=np.int32)


def bits_of(index: Array, **fields: int) -> Array:
    (found,) = RandomBits(**fields).reference(index)
    return found


@pytest.mark.parametrize("kind", ["int32", "uint32", "int64", "uint64"])
def test_they_are_the_upper_bits_of_a_word(kind: str) -> None:
    index = np.array([0, 5, np.iinfo(kind).max], kind)
    counter = index.astype(np.uint64)
    words = [counter % 2**32, counter >> 32, KEY % 2**32, KEY >> 32]
    for word in (0, 1):
        whole = THREEFRY[word].meaning(*(np.asarray(x).astype(np.uint32) for x in words))
        found = bits_of(index, key=KEY, word=word, bits=24)
        np.testing.assert_array_equal(found, whole.astype(np.uint32) >> 8)
        x = te.placeholder((3,), kind, name="x")
        (y,) = RandomBits(KEY, word, 24).express(x, name="y")
        np.testing.assert_array_equal(interpret(te.func(x, y, name="f"), index)[0], found)


def test_each_value_is_as_likely_as_the_others() -> None:
    counts = np.bincount(bits_of(INDEX, key=KEY, bits=8), minlength=256)
    square = ((counts - 256) ** 2 / 256).sum()
    assert 170 < square < 355  # of 255 degrees of freedom: one in ten thousand lies outside


def test_a_bit_of_the_index_or_of_the_key_changes_half_of_the_bits() -> None:
    plain = bits_of(INDEX, key=KEY)
    others = [bits_of(INDEX ^ (1 << n), key=KEY) for n in range(0, 31, 5)]
    others += [bits_of(INDEX, key=KEY ^ (1 << n)) for n in range(0, 64, 7)]
    others.append(bits_of(INDEX, key=KEY, word=1))
    for other in others:
        changed = np.unpackbits((plain ^ other).view(np.uint8)).sum() / (31 * len(INDEX))
        assert changed == pytest.approx(0.5, abs=0.002)


def test_narrow_indices_are_refused() -> None:
    with pytest.raises(ModelError) as refused:
        RandomBits().infer((TensorType("int16", (3,)),))
    assert str(refused.value) == (
        "ModelError: RandomBits: expected an index of 32 or 64 bits, got int16[3]. [random-index]"
    )
