"""The same computation on tensors of fewer dimensions, where the memory is the same.

Axes that every operator of a fused kernel treats alike are joined, axes of size 1 go: an addition
of two [1, 56, 56, 64] tensors becomes one of two [200704] tensors, of a tensor and a [64] bias one
of [3136, 64] and [64]. A reduction of all elements to one number is that of a row. How its axes may
be joined is what the first operator says (`Operator.joinable_axes`); kernels with one that is not
elementwise further on, or with several results, stay as they are.
`as_matrix_product` is the same idea for a 1x1 convolution: its pixels are the rows of a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...tir.sizes import AnySize, is_closed, product_of
from ..ops.arithmetic import Add
from ..ops.base import JoinableAxes, Operator, OperatorRole, Runs
from ..ops.convolution import Convolution, IntegerConv
from ..ops.half_products import HalfConv, HalfMatMul
from ..ops.layer_norm import LayerNormalization, RMSNormalization
from ..ops.matmul import IntegerMatMul, MatMul
from ..ops.reduction import Reduction
from ..types import Shape, TensorType
from .fused_kernel import FusedKernel, KernelOperand, KernelStep

# the product that a convolution of 1x1 windows is
_PRODUCTS: tuple[tuple[type[Convolution], Operator], ...] = (
    (IntegerConv, IntegerMatMul()),
    (HalfConv, HalfMatMul()),
)


def collapsed(fused: FusedKernel) -> FusedKernel:
    """The fused kernel with as few axes as it can have; the same object when it has them."""
    if len(fused.results) > 1:
        return fused
    rows = _as_rows(fused) if not is_closed(fused.result.shape) else _as_row(fused)
    if rows is not None:
        return rows
    first, *rest = (step.op for step in fused.steps)
    axes = first.joinable_axes(fused.result.shape)
    if axes is None or any(op.role is not OperatorRole.ELEMENTWISE for op in rest):
        return fused
    shape = fused.result.shape
    aligned = _aligned_operands(fused)
    runs = _runs(axes, shape, [_aligned(fused.operands[n].type.shape, len(shape)) for n in aligned])
    operands = tuple(
        _joined(operand, shape, runs) if n in aligned else _moved(operand, axes, runs)
        for n, operand in enumerate(fused.operands)
    )
    if operands == fused.operands:
        return fused
    return FusedKernel(
        operands, (replace(fused.steps[0], op=first.join_axes(runs)), *fused.steps[1:])
    )


def _as_rows(fused: FusedKernel) -> FusedKernel | None:
    """A product with a matrix, or a normalisation, of which all axes before the rows are one: as
    many rows as a run says, whichever of its sizes they come from. None for another kernel, and
    where an operand broadcasts along a part of these axes.
    """
    first, *rest = fused.steps
    types, shape = fused.types, fused.result.shape
    if any(step.op.role is not OperatorRole.ELEMENTWISE for step in rest):
        return None
    op, width = first.op, 1
    match op:
        case MatMul() | IntegerMatMul() | HalfMatMul() if types[first.inputs[1]].rank == 2:
            own = {first.inputs[1]: types[first.inputs[1]].shape}
        case LayerNormalization() | RMSNormalization():
            own, width = {}, len(shape) - op.axis
            op = replace(op, axis=1)
        case _:
            return None
    lead = len(shape) - width
    if lead < 2:
        return None
    operands = []
    for n, operand in enumerate(fused.operands):
        sizes = _aligned(operand.type.shape, len(shape))
        if n not in own and sizes[:lead] not in (shape[:lead], (1,) * lead):
            return None
        joined = (product_of(sizes[:lead]), *sizes[lead:])
        if n == first.inputs[0]:
            joined = (product_of(shape[:lead]), *operand.type.shape[lead:])
        operands.append(_reshaped(operand, own.get(n) or _without_lead(joined)))
    return FusedKernel(tuple(operands), (replace(fused.steps[0], op=op), *rest))


def _as_row(fused: FusedKernel) -> FusedKernel | None:
    """A reduction of all elements to one, as that of a row; None for another kernel."""
    first, *rest = fused.steps
    op = first.op
    if not isinstance(op, Reduction) or len(op.axes) < fused.types[first.inputs[0]].rank:
        return None
    if any(step.op.role is not OperatorRole.ELEMENTWISE for step in rest):
        return None
    if any(o.type.elements != 1 for n, o in enumerate(fused.operands) if n not in first.inputs):
        return None
    operands = tuple(_reshaped(operand, (operand.type.elements,)) for operand in fused.operands)
    row = FusedKernel(operands, (replace(first, op=replace(op, axes=(0,), keepdims=True)), *rest))
    return None if row == fused else row


def _aligned_operands(fused: FusedKernel) -> tuple[int, ...]:
    """The operands that broadcast to the result: all but those of a first operator that is not
    elementwise.
    """
    first = fused.steps[0]
    own = set() if first.op.role is OperatorRole.ELEMENTWISE else set(first.inputs)
    return tuple(n for n in range(len(fused.operands)) if n not in own)


def _runs(axes: JoinableAxes, shape: Shape, operands: Sequence[Shape]) -> Runs:
    """Neighbouring axes of the result that may be joined: those of one kind that are neighbours in
    what is read, too, and along which the same operands broadcast. Axes of size 1 are in none.
    """
    kept = [d for d, size in enumerate(shape) if size != 1 or d in axes.kept]
    source = sorted(axes.source[d] for d in kept)
    place = [source.index(axis) if axis in source else -1 for axis in axes.source]
    features = [(axes.kinds[d], *(sizes[d] == 1 for sizes in operands)) for d in range(len(shape))]
    runs: list[list[int]] = []
    for d in kept:
        last = runs[-1][-1] if runs else None
        if last is not None and features[d] == features[last] and place[d] == place[last] + 1:
            runs[-1].append(d)
        else:
            runs.append([d])
    return tuple(map(tuple, runs)) or ((),)


def _aligned(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


def _joined(operand: KernelOperand, shape: Shape, runs: Runs) -> KernelOperand:
    """An operand that broadcasts to the result."""
    sizes = _aligned(operand.type.shape, len(shape))
    return _reshaped(operand, _without_lead([product_of(sizes[d] for d in run) for run in runs]))


def _without_lead(sizes: Sequence[AnySize]) -> Shape:
    """Leading axes of size 1 go; one axis stays."""
    lead = next((n for n, size in enumerate(sizes) if size != 1), len(sizes) - 1)
    return tuple(sizes[lead:])


def _reshaped(operand: KernelOperand, shape: Shape) -> KernelOperand:
    if operand.type.shape == shape:
        return operand
    return replace(operand, type=TensorType(operand.type.dtype, shape))


def _moved(operand: KernelOperand, axes: JoinableAxes, runs: Runs) -> KernelOperand:
    """An operand of a first operator that is not elementwise."""
    source = sorted(tuple(axes.source[d] for d in run) for run in runs)
    sizes = operand.type.shape
    return _reshaped(operand, tuple(product_of(sizes[d] for d in run) for run in source))


def as_matrix_product(fused: FusedKernel) -> FusedKernel | None:
    """A fused kernel that begins with a 1x1 convolution of stride 1, as a matrix product; None
    where it is none.

    x [N, spatial..., C], w [1..., C, O]   ->   a [N * spatial, C], b [C, O]
    """
    first, *rest = fused.steps
    if not isinstance(first.op, Convolution):
        return None
    x, w = (fused.operands[n].type for n in first.inputs[:2])
    if not _is_pointwise_conv(first.op, w):
        return None
    shape = fused.result.shape
    matrix: dict[int, Shape] = {first.inputs[0]: (product_of(x.shape[:-1]), x.shape[-1])}
    matrix[first.inputs[1]] = w.shape[-2:]
    operands = []
    for n, operand in enumerate(fused.operands):
        sizes = _aligned(operand.type.shape, len(shape))
        rows, full = product_of(sizes[:-1]), product_of(shape[:-1])
        if n not in matrix and rows not in (1, full):
            return None
        operands.append(_reshaped(operand, matrix.get(n) or _without_lead((rows, sizes[-1]))))
    names = {first.inputs[0]: "a", first.inputs[1]: "b"}
    named = tuple(replace(o, name=names.get(n, o.name)) for n, o in enumerate(operands))
    product = len(operands)
    op = next((op for kind, op in _PRODUCTS if isinstance(first.op, kind)), MatMul())
    steps = [KernelStep(op, first.inputs[:2])]
    if len(first.inputs) == 3:
        steps.append(KernelStep(Add(), (product, first.inputs[2])))
    shift = len(steps) - 1  # what read the convolution now reads the last of these
    for step in rest:
        inputs = tuple(n + shift if n >= product else n for n in step.inputs)
        steps.append(KernelStep(step.op, inputs))
    return FusedKernel(named, tuple(steps))


def _is_pointwise_conv(op: Convolution, w: TensorType) -> bool:
    return (
        op.layout == op.data_layout == "NHWC"
        and op.groups == 1
        and set(op.strides) == {1}
        and set(op.pads) == {0}
        and set(w.shape[:-2]) == {1}
    )
