"""A convolution of integers in groups as one in fewer: several groups together have as many outputs
as vectors have lanes, and weights of 0 between what they do not share.

    4 outputs of 4 channels, 32 groups   ->   16 outputs of 16 channels, 8 groups

Instructions that take four products of bytes at once leave room for that: a vector of 16 lanes
computes 16 such outputs in 4 steps, in place of 4 vectors of 4 lanes in one. Zeros times integers
are zeros, so the sums are the same; of floats they might be NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...tir.expr import Expr
from ...tir.te import te
from ...tir.te.te import Tensor
from ..ops.convolution import IntegerConv
from .fused_kernel import FusedKernel, KernelStep


@dataclass(frozen=True, slots=True)
class JoinedConv(IntegerConv):
    """An IntegerConv on NHWC, `joined` of whose groups are one. Its shape rule and its NumPy
    meaning are those of the convolution.
    """

    joined: int = 1

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        x, w = tensors
        groups = self.groups // self.joined
        plain = IntegerConv(self.strides, self.pads, self.dilations, groups, self.layout, self.zero)
        return plain.express(x, self._weights(w, name), name=name)

    def _weights(self, w: Tensor, name: str) -> Tensor:
        """The weights [kernel..., joined * channels, outputs]."""
        *kernel, channels, outputs = w.shape
        size = outputs // self.groups

        def element(*indices: Expr) -> Expr:
            *taps, c, o = indices
            own = te.eq(c // channels, o // size % self.joined)
            return te.select(own, w[(*taps, c % channels, o)], te.const(0, w.dtype))

        shape = (*kernel, self.joined * channels, outputs)
        return te.compute(shape, element, name=f"{name}_weights")


def as_joined(fused: FusedKernel, lanes: int) -> FusedKernel | None:
    """A fused kernel that begins with a convolution of integers in groups, constant weights, with
    the fewest groups joined that have whole vectors of `lanes` outputs, or else all of them; None
    where groups have such vectors themselves, or it is no such kernel.
    """
    first, *rest = fused.steps
    op = first.op
    if type(op) is not IntegerConv or op.groups == 1 or op.layout != "NHWC":
        return None
    if not fused.operands[first.inputs[1]].constant:
        return None
    size = fused.operands[first.inputs[1]].type.shape[-1] // op.groups
    if size % lanes == 0:
        return None
    counts = (n for n in range(2, op.groups + 1) if op.groups % n == 0 and n * size % lanes == 0)
    joined = JoinedConv(
        op.strides,
        op.pads,
        op.dilations,
        op.groups,
        op.layout,
        op.zero,
        next(counts, op.groups),
    )
    return replace(fused, steps=(KernelStep(joined, first.inputs), *rest))
