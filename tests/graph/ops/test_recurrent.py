"""What the cell of an LSTM refuses. Its values: tests of all operators, and of the import rule."""

from __future__ import annotations

import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.activation import Sigmoid
from tilewright.graph.ops.functions import Tanh
from tilewright.graph.ops.recurrent import LstmCell
from tilewright.graph.types import TensorType

STATE = TensorType("float32", (2, 4))
CELL = LstmCell(Sigmoid(), Tanh(), Tanh())


def test_inputs_that_do_not_broadcast_to_the_state_are_refused() -> None:
    small = TensorType("float32", (1, 4))
    assert CELL.infer((STATE, small, STATE, STATE, STATE)) == (STATE, STATE)
    with pytest.raises(ModelError) as caught:
        CELL.infer((small, STATE, STATE, STATE, STATE))
    assert str(caught.value) == (
        "ModelError: LstmCell: expected what broadcasts to the first input, got float32[1, 4], "
        "float32[2, 4], float32[2, 4], float32[2, 4], float32[2, 4]. [lstm-cell-shape]"
    )
