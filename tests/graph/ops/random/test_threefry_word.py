"""Random bits under a key that is data: the published vectors, and words alone."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.random.threefry_word import ThreefryWord
from tilewright.graph.types import TensorType
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.te import te

# counter, key and words of Threefry 2x32-20 as the authors' Random123 publishes them
VECTORS = (
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
)


@pytest.mark.parametrize("word", [0, 1])
def test_the_published_vectors_come_out(word: int) -> None:
    columns = list(np.array([(*c, *k) for c, k, _ in VECTORS], np.uint32).T)
    wanted = np.array([words[word] for *_, words in VECTORS], np.uint32)
    (found,) = ThreefryWord(word).reference(*columns)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == np.uint32
    given = [te.placeholder((3,), "uint32", name=name) for name in "abcd"]
    (y,) = ThreefryWord(word).express(*given, name="y")
    np.testing.assert_array_equal(interpret(te.func(*given, y, name="f"), *columns)[0], wanted)


def test_other_words_are_refused() -> None:
    with pytest.raises(ModelError) as refused:
        ThreefryWord().infer((TensorType("int32", (3,)),) * 4)
    assert str(refused.value) == (
        "ModelError: ThreefryWord: expected words of uint32, got int32. [random-words]"
    )
