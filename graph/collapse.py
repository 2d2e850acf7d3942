"""The same computation on tensors of fewer dimensions, where the memory is the same.

Axes that every operator of a form treats alike are joined, axes of size 1 go: an addition of two
[1, 56, 56, 64] tensors becomes one of two [200704] tensors, of a tensor and a [64] bias one of
[3136, 64] and [64]. Elementwise operators, Concat, Transpose and Softmax are collapsed; forms that
begin with another operator, or have one that is not elementwise further on, stay as they are.
`as_matrix_product` is the same idea for a 1x1 convolution: its pixels are the rows of a matrix.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

from .form import Form, Operand, Step
from .ops.arithmetic import Add
from .ops.base import Operator
from .ops.convolution import Conv
from .ops.elementwise import Elementwise
from .ops.matmul import MatMul
from .ops.movement import Concat, Transpose
from .ops.softmax import Softmax
from .types import TensorType

Shape = tuple[int, ...]
Runs = tuple[tuple[int, ...], ...]


def collapsed(form: Form) -> Form:
    """The form with as few axes as it can have; the same object when it has them."""
    first = form.steps[0].op
    shape = form.result.shape
    if not isinstance(first, Elementwise | Concat | Transpose | Softmax):
        return form
    if not all(isinstance(step.op, Elementwise) for step in form.steps[1:]):
        return form
    if isinstance(first, Softmax) and all(shape[axis] == 1 for axis in first.axes):
        return form
    runs = _runs(form, shape)
    own = set(form.steps[0].inputs) if not isinstance(first, Elementwise) else set()
    operands = tuple(
        _moved(operand, first, runs) if n in own else _joined(operand, shape, runs)
        for n, operand in enumerate(form.operands)
    )
    if operands == form.operands:
        return form
    return Form(operands, (replace(form.steps[0], op=_renumbered(first, runs)), *form.steps[1:]))


def _runs(form: Form, shape: Shape) -> Runs:
    """Neighbouring axes of the result that may be joined; axes of size 1 are in none."""
    first = form.steps[0].op
    kept = [d for d, size in enumerate(shape) if size != 1]
    if isinstance(first, Concat):
        kept = sorted({*kept, first.axis})
    runs: list[list[int]] = []
    for d in kept:
        alike = bool(runs) and _feature(form, shape, d) == _feature(form, shape, runs[-1][-1])
        if alike and _adjacent(first, runs[-1][-1], d, kept):
            runs[-1].append(d)
        else:
            runs.append([d])
    return tuple(map(tuple, runs)) or ((),)


def _feature(form: Form, shape: Shape, axis: int) -> Hashable:
    """What must be equal for two axes to be joined: who broadcasts along them, and what the first
    operator does there.
    """
    first = form.steps[0].op
    special = set(form.steps[0].inputs) if not isinstance(first, Elementwise) else set()
    broadcast = tuple(
        _aligned(operand.type.shape, len(shape))[axis] == 1
        for n, operand in enumerate(form.operands)
        if n not in special
    )
    match first:
        case Concat(joined):
            return broadcast, axis < joined
        case Softmax(axes):
            return broadcast, axis in axes
    return broadcast


def _adjacent(first: Operator, left: int, right: int, kept: Sequence[int]) -> bool:
    """Whether two neighbouring axes of the result are neighbours in what a Transpose reads."""
    if not isinstance(first, Transpose):
        return True
    source = sorted(first.permutation[d] for d in kept)
    return source.index(first.permutation[right]) == source.index(first.permutation[left]) + 1


def _aligned(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


def _joined(operand: Operand, shape: Shape, runs: Runs) -> Operand:
    """An operand that broadcasts to the result."""
    sizes = _aligned(operand.type.shape, len(shape))
    return _reshaped(operand, _without_lead([math.prod(sizes[d] for d in run) for run in runs]))


def _without_lead(sizes: Sequence[int]) -> Shape:
    """Leading axes of size 1 go; one axis stays."""
    lead = next((n for n, size in enumerate(sizes) if size != 1), len(sizes) - 1)
    return tuple(sizes[lead:])


def _reshaped(operand: Operand, shape: Shape) -> Operand:
    if operand.type.shape == shape:
        return operand
    return replace(operand, type=TensorType(operand.type.dtype, shape))


def _moved(operand: Operand, first: Operator, runs: Runs) -> Operand:
    """An operand of a first operator that is not elementwise."""
    sizes = operand.type.shape
    if isinstance(first, Transpose):
        source = [tuple(first.permutation[d] for d in run) for run in runs]
        return _reshaped(
            operand, tuple(math.prod(sizes[d] for d in axes) for axes in sorted(source))
        )
    return _reshaped(operand, tuple(math.prod(sizes[d] for d in run) for run in runs))


def _renumbered(first: Operator, runs: Runs) -> Operator:
    match first:
        case Concat(axis):
            return Concat(next(n for n, run in enumerate(runs) if axis in run))
        case Softmax(axes):
            return Softmax(tuple(n for n, run in enumerate(runs) if run and run[0] in axes))
        case Transpose(permutation):
            source = [permutation[run[0]] if run else 0 for run in runs]
            return Transpose(tuple(sorted(source).index(axis) for axis in source))
    return first


def as_matrix_product(form: Form) -> Form | None:
    """A form that begins with a 1x1 convolution of stride 1, as a matrix product; None where it is
    none.

    x [N, spatial..., C], w [1..., C, O]   ->   a [N * spatial, C], b [C, O]
    """
    first, *rest = form.steps
    if not isinstance(first.op, Conv):
        return None
    x, w = (form.operands[n].type for n in first.inputs[:2])
    if not _is_pointwise_conv(first.op, w):
        return None
    shape = form.result.shape
    matrix: dict[int, Shape] = {first.inputs[0]: (math.prod(x.shape[:-1]), x.shape[-1])}
    matrix[first.inputs[1]] = w.shape[-2:]
    operands = []
    for n, operand in enumerate(form.operands):
        sizes = _aligned(operand.type.shape, len(shape))
        rows, full = math.prod(sizes[:-1]), math.prod(shape[:-1])
        if n not in matrix and rows not in (1, full):
            return None
        operands.append(_reshaped(operand, matrix.get(n) or _without_lead((rows, sizes[-1]))))
    names = {first.inputs[0]: "a", first.inputs[1]: "b"}
    named = tuple(replace(o, name=names.get(n, o.name)) for n, o in enumerate(operands))
    product = len(operands)
    steps = [Step(MatMul(), first.inputs[:2])]
    if len(first.inputs) == 3:
        steps.append(Step(Add(), (product, first.inputs[2])))
    shift = len(steps) - 1  # what read the convolution now reads the last of these
    for step in rest:
        inputs = tuple(n + shift if n >= product else n for n in step.inputs)
        steps.append(Step(step.op, inputs))
    return Form(named, tuple(steps))


def _is_pointwise_conv(op: Conv, w: TensorType) -> bool:
    return (
        op.layout == op.data_layout == "NHWC"
        and op.groups == 1
        and set(op.strides) == {1}
        and set(op.pads) == {0}
        and set(w.shape[:-2]) == {1}
    )
