"""Scatters on machines that write in no order: each element of the result searches the updates for
its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...tir.te.te import Tensor
from ..ops.base import Operator
from ..ops.scattering import ScatterElements, ScatterND
from .fused_kernel import FusedKernel, KernelStep


@dataclass(frozen=True, slots=True)
class SearchedScatterElements(ScatterElements):
    """A ScatterElements whose kernel searches. Shape rule and meaning are those of the operator."""

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        return self.search(*tensors, name=name)


@dataclass(frozen=True, slots=True)
class SearchedScatterND(ScatterND):
    """A ScatterND whose kernel searches. Shape rule and meaning are those of the operator."""

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        return self.search(*tensors, name=name)


def as_search(fused: FusedKernel) -> FusedKernel | None:
    """A fused kernel that begins with a scatter, by search; None where it does not."""
    first, *rest = fused.steps
    made = _searched(first.op)
    if made is None:
        return None
    return replace(fused, steps=(KernelStep(made, first.inputs), *rest))


def _searched(op: Operator) -> Operator | None:
    if type(op) is ScatterElements:
        return SearchedScatterElements(op.combining, op.axis)
    return SearchedScatterND(op.combining) if type(op) is ScatterND else None
