"""A FusedKernel: what a group of nodes computes, without the names that a model gave it.

Equal groups have equal fused kernels.

`operands` are what the group reads; `steps` are its operators in order, each of which reads
operands and results of earlier steps by number; those of the last step are the results. A constant
of one element that only elementwise operators read is no operand of the kernel but stands in its
code, unless the group computes with bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from keyword import iskeyword

import numpy as np

from ..ir.ir import Graph
from ..ops.base import Operator, OperatorRole
from ..types import TensorType, array_of
from .groups import FusionGroup


@dataclass(frozen=True, slots=True)
class KernelOperand:
    """One tensor that a group reads.

    constant: bound when the model is compiled. scalar: the bits of its only element, where that
    stands in the code.
    """

    name: str
    type: TensorType
    constant: bool = False
    scalar: bytes | None = None

    @property
    def value(self) -> float | int | bool:
        """The element of a scalar."""
        assert self.scalar is not None
        number: float | int | bool = np.frombuffer(self.scalar, self.type.dtype)[0].item()
        return number


@dataclass(frozen=True, slots=True)
class KernelStep:
    """One operator. `inputs`: n names operand n; the results of the steps, in order, have the
    numbers from len(operands) on.
    """

    op: Operator
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FusedKernel:
    """What a group computes."""

    operands: tuple[KernelOperand, ...]
    steps: tuple[KernelStep, ...]

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of the operands, then of the steps' results."""
        found = [operand.type for operand in self.operands]
        for step in self.steps:
            found += step.op.infer(tuple(found[n] for n in step.inputs))
        return tuple(found)

    @property
    def result(self) -> TensorType:
        """The type of the result of a fused kernel that has one."""
        return self.types[-1]

    @property
    def results(self) -> tuple[TensorType, ...]:
        """The types of the last step's results."""
        return self.types[-self.steps[-1].op.output_count :]

    @property
    def name(self) -> str:
        """The operators in words: "conv_add_relu"; long chains are cut, a keyword of Python gets a
        "_".
        """
        titles = [step.op.title.lower() for step in self.steps]
        shown = titles if len(titles) <= 4 else [*titles[:2], f"{len(titles) - 3}_more", titles[-1]]
        name = "_".join(shown)
        return f"{name}_" if iskeyword(name) else name


def fused_kernel_of(graph: Graph, group: FusionGroup) -> tuple[FusedKernel, tuple[str, ...]]:
    """The fused kernel of a group, and the value of the graph that each operand is."""
    values = group.inputs
    numbers = {value: n for n, value in enumerate(values)}
    operands = tuple(_operand(graph, group, value) for value in values)
    steps = []
    for node in group.nodes:
        steps.append(KernelStep(node.op, tuple(numbers[value] for value in node.inputs)))
        for value in node.outputs:
            numbers[value] = len(numbers)
    return FusedKernel(operands, tuple(steps)), values


def _operand(graph: Graph, group: FusionGroup, value: str) -> KernelOperand:
    type_ = graph.types[value]
    readers = [node for node in group.nodes if value in node.inputs]
    names = readers[0].op.operand_names
    position = readers[0].inputs.index(value)
    constant = value in graph.constants
    name = names[position] if position < len(names) else "c" if constant else "y"
    inline = all(node.op.role is OperatorRole.ELEMENTWISE for node in readers)
    inline = inline and not (type_.is_float and _has_levels(graph, group))
    if constant and type_.elements == 1 and inline:
        element = array_of(graph.constants[value]).reshape(1)
        return KernelOperand("scalar", type_, True, np.ascontiguousarray(element).tobytes())
    return KernelOperand(name, type_, constant)


def _has_levels(graph: Graph, group: FusionGroup) -> bool:
    """Whether a group computes with bytes: its numbers are then scales and zeros, of which each
    layer of a model has its own, and which would make a kernel of each.
    """
    if any(node.op.is_of_levels for node in group.nodes):
        return True
    values = (v for node in group.nodes for v in (*node.inputs, *node.outputs))
    return any(graph.types[value].dtype in ("int8", "uint8") for value in values)
