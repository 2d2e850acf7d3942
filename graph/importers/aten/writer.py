"""What a rule writes the meaning of an aten node with; operands are promoted as PyTorch does it."""

from __future__ import annotations

from ....tir.sizes import AnySize
from ..onnx.graph_reader import GraphReader
from ..onnx.tensors import TensorReader
from ..tensor_writer import TensorWriter, WrittenTensor
from .promotion import Number, number_type, promoted_type

AtenValue = WrittenTensor
Operand = AtenValue | Number | AnySize


class AtenWriter(TensorWriter):
    """Writes the nodes that one aten node is into a builder."""

    def __init__(
        self, name: str, target: str, reader: GraphReader, tensors: TensorReader, results: int
    ) -> None:
        """results: how many are wanted: those behind them are read by nobody."""
        super().__init__(name, target, reader, tensors)
        self.results = results

    def operand(self, value: Operand, dtype: str = "") -> AtenValue:
        """A tensor, or a number or a size as one without axes; of an element type."""
        if isinstance(value, WrittenTensor):
            return self.cast(value, dtype or value.dtype)
        return self.number(value, dtype or number_type(value))

    def promoted(self, *operands: Operand) -> tuple[AtenValue, ...]:
        """Operands, brought to the element type that PyTorch computes in."""
        types = [one.type for one in operands if isinstance(one, WrittenTensor)]
        numbers = [one for one in operands if not isinstance(one, WrittenTensor)]
        dtype = promoted_type(types, numbers)
        return tuple(self.operand(one, dtype) for one in operands)
