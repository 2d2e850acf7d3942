"""A Form as a PrimFunc: the tensor expressions of its operators, one reading the other."""

from __future__ import annotations

from ..tir import te
from ..tir.func import PrimFunc
from .form import Form, Operand


def express(form: Form) -> PrimFunc:
    """The function that computes a form: operands first, in order, without the scalars; the result
    last.
    """
    tensors = [_tensor(operand) for operand in form.operands]
    parameters = [
        t for t, operand in zip(tensors, form.operands, strict=True) if operand.scalar is None
    ]
    for step in form.steps:
        inputs = (tensors[n] for n in step.inputs)
        tensors += step.op.express(*inputs, name=step.op.title.lower())
    return te.func(*parameters, tensors[-1], name=form.name)


def _tensor(operand: Operand) -> te.Tensor:
    dtype, shape = operand.type.dtype, operand.type.shape
    if operand.scalar is None:
        return te.placeholder(shape, dtype, name=operand.name, constant=operand.constant)
    number = te.const(operand.value, dtype)
    return te.compute(shape, lambda *_: number, name=operand.name)
