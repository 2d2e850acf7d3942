"""A FusedKernel as a PrimFunc: the tensor expressions of its operators, one reading the other.

What is of a type that is stored and not computed in is computed in float32, such as float16, or
in int32, such as int4: widened where it is read, rounded once where the result is stored. An
operator that widens what it reads itself gets operands as they are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...tir.buffer import Load
from ...tir.dim import Dim
from ...tir.dtype import DType, dtype
from ...tir.expr import Cast, Expr
from ...tir.func import PrimFunc
from ...tir.node import Node
from ...tir.sizes import SizeError
from ...tir.te import te
from ...tir.visit import transform
from ..extensions.operators import blame
from ..ops.base import OperatorRole, computed_type
from .fused_kernel import FusedKernel, KernelOperand, KernelStep


def express(fused: FusedKernel) -> PrimFunc:
    """The function that computes a fused kernel: operands first, in order, without the scalars;
    the results last.
    """
    moves = all(step.op.role is OperatorRole.MOVEMENT for step in fused.steps)
    kinds = [dtype(operand.type.dtype) for operand in fused.operands]
    kept = [moves or _is_kept(fused, n) for n in range(len(kinds))]
    tensors = [
        _tensor(operand, kind if is_kept else computed_type(kind))
        for operand, kind, is_kept in zip(fused.operands, kinds, kept, strict=True)
    ]
    listed = [n for n, operand in enumerate(fused.operands) if operand.scalar is None]
    parameters = [tensors[n] for n in listed]
    made: tuple[te.Tensor, ...] = ()
    for step in fused.steps:
        made = _expressed(step, [tensors[n] for n in step.inputs])
        tensors += made if moves else map(_widened, made)
    results = [
        _stored(tensor, dtype(type_.dtype))
        for tensor, type_ in zip(made, fused.results, strict=True)
    ]
    func = te.func(*parameters, *results, name=fused.name, sizes=_untold(parameters, results))
    return _narrowed(replace(func, facts=_facts(fused)), [kinds[n] for n in listed])


def _is_kept(fused: FusedKernel, number: int) -> bool:
    """Whether all that read an operand widen it themselves."""
    return all(step.op.widens for step in fused.steps if number in step.inputs)


def _expressed(step: KernelStep, inputs: Sequence[te.Tensor]) -> tuple[te.Tensor, ...]:
    """What a step makes of tensors. Raises: OperatorError for an operator of others that fails."""
    try:
        return step.op.express(*inputs, name=step.op.title.lower())
    except SizeError:
        raise
    except Exception as error:
        blame(step.op, "express", error)
        raise


def _facts(fused: FusedKernel) -> tuple[Expr, ...]:
    """What its operators take for granted of sizes, each once."""
    types = fused.types
    found = (f for step in fused.steps for f in step.op.facts(tuple(types[n] for n in step.inputs)))
    return tuple(dict.fromkeys(found))


def _untold(inputs: Sequence[te.Tensor], results: Sequence[te.Tensor]) -> tuple[Dim, ...]:
    """The sizes that a launch has to say, since no operand has them."""
    told = {dim for tensor in inputs for dim in tensor.dims}
    return tuple(dim for dim in te.dims_of_tensors(*results) if dim not in told)


def _tensor(operand: KernelOperand, kind: DType) -> te.Tensor:
    shape = operand.type.shape
    if operand.scalar is None:
        return te.placeholder(shape, kind, name=operand.name, constant=operand.constant)
    number = te.const(operand.value, kind)
    return te.compute(shape, lambda *_: number, name=operand.name)


def _widened(tensor: te.Tensor) -> te.Tensor:
    """What an operator made, as the next one computes with it."""
    wide = computed_type(tensor.type)
    if tensor.type == wide:
        return tensor
    return te.compute(
        tensor.extents, lambda *at: te.cast(tensor[at], wide), name=f"{tensor.name}_wide"
    )


def _stored(tensor: te.Tensor, kind: DType) -> te.Tensor:
    """The tensor in the type that it is stored in."""
    if tensor.type == kind:
        return tensor
    return te.compute(tensor.extents, lambda *at: te.cast(tensor[at], kind), name="stored")


def _narrowed(func: PrimFunc, kinds: Sequence[DType]) -> PrimFunc:
    """The function with its first parameters in the types that they are stored in, each load of
    them widened.
    """
    narrow = {
        p.buffer: replace(p.buffer, type=kind)
        for p, kind in zip(func.parameters, kinds, strict=False)
        if p.buffer.type != kind
    }
    if not narrow:
        return func

    def widen(node: Node) -> Node:
        match node:
            case Load(buffer, indices) if buffer in narrow:
                return Cast(Load(narrow[buffer], indices), buffer.type)
        return node

    parameters = (replace(p, buffer=narrow.get(p.buffer, p.buffer)) for p in func.parameters)
    return replace(func, parameters=tuple(parameters), body=transform(func.body, widen))
