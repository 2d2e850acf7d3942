"""The types that the operands of each expression, and the parts of each access, must have."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..buffer import Buffer, Load
from ..dtype import DType
from ..expr import (
    Add,
    And,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Call,
    Cast,
    Compare,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
)
from ..extern import ExternFunction
from ..lowered import Broadcast, Exchange, Fma, Lanes, Ramp, Reinterpret, Shuffle, Vector
from ..steps import step_problem
from ..stmt import Extern, Prefetch, Store


def extern_problem(extern: Extern, live: Collection[Buffer], root: bool) -> str | None:
    """What is wrong with a call of a C function, or a step, given the buffers in scope; None for
    nothing.
    """
    symbol, outputs = extern.function.symbol, extern.outputs
    if not root:
        return f"'{symbol}' is called inside a loop or a branch; expected at the root"
    for buffer in (*extern.inputs, *outputs):
        if buffer not in live or buffer.scope != "global" or any(buffer.dims):
            return f"'{symbol}' is handed '{buffer.name}'; expected a whole tensor in scope"
    if not outputs or len({*outputs} - {*extern.inputs}) != len(outputs):
        return f"'{symbol}' writes what it reads, or nothing; expected tensors of its own"
    if isinstance(extern.function, ExternFunction):
        return None
    return step_problem(extern.function, extern.inputs, outputs)


def type_problem(expr: Expr) -> str | None:
    """What is wrong with the types of an expression's operands; None when nothing is."""
    match expr:
        case Binary():
            return _arithmetic(expr)
        case Compare():
            return _computed(expr.a.dtype, expr.b.dtype)
        case And() | Or():
            return _truth("an operand", expr.a.dtype, expr.a.dtype.lanes) or _same(
                "the operands", expr.a.dtype, expr.b.dtype
            )
        case Not():
            return _truth("the operand", expr.a.dtype, expr.a.dtype.lanes)
        case Select():
            return _select(expr)
        case Cast():
            return _lanes("the value", expr.value.dtype, expr.type.lanes)
        case Reinterpret():
            value, size = expr.value.dtype, expr.type.bytes * expr.type.lanes
            if value.bytes * value.lanes != size:
                return f"the value is {value}; expected {8 * size} bits"
        case Call():
            return _call(expr)
        case Let():
            return _same("the variable and its value", expr.var.type, expr.value.dtype)
        case Fma():
            return _floats((expr.a, expr.b, expr.c))
        case Ramp():
            return _scalar_integer("the base", expr.base.dtype)
        case Broadcast():
            return _lanes("the value", expr.value.dtype, 1)
        case Lanes(value, first, count):
            if first % count or not 0 <= first <= value.dtype.lanes - count:
                return f"the value is {value.dtype}; it has no {count} lanes from lane {first} on"
        case Exchange():
            return _lanes("the value", expr.value.dtype, 1) or _scalar_integer(
                "the step", expr.step.dtype
            )
        case Vector(values):
            kinds = {value.dtype for value in values}
            if len(kinds) > 1 or len(values) < 2 or values[0].dtype.lanes > 1:
                listed = ", ".join(map(str, sorted(kinds, key=str)))
                return f"{len(values)} lanes of {listed}; expected scalars of one type"
        case Shuffle(a, b, order):
            lanes = 2 * a.dtype.lanes
            if len(order) < 2 or not all(0 <= lane < lanes for lane in order):
                return f"lanes {order} of two {a.dtype}; expected some of 0 .. {lanes - 1}"
            return _same("the operands", a.dtype, b.dtype)
    return None


def access_problem(access: Load | Store | Prefetch) -> str | None:
    """What is wrong with the indices, the mask and the value of an access; None when nothing is."""
    buffer, indices = access.buffer, access.indices
    if len(indices) != len(buffer.shape):
        return (
            f"'{buffer.name}' has {len(buffer.shape)} dimensions; "
            f"expected as many indices, got {len(indices)}"
        )
    for index in indices:
        if not index.dtype.is_integer:
            return f"an index of '{buffer.name}' is {index.dtype}; expected an integer"
    wide = {index.dtype.lanes for index in indices if index.dtype.lanes > 1}
    if len(wide) > 1 or (wide and buffer.type.lanes > 1):
        return f"the indices of '{buffer.name}' have lanes {sorted(wide)}; expected one number"
    if isinstance(access, Prefetch):
        return None
    return _moved(access, element_type(buffer, indices))


def element_type(buffer: Buffer, indices: Sequence[Expr]) -> DType:
    """The type of what an access with `indices` moves."""
    lanes = max((index.dtype.lanes for index in indices), default=1)
    return buffer.type.with_lanes(max(lanes, buffer.type.lanes))


def _moved(access: Load | Store, moved: DType) -> str | None:
    name = access.buffer.name
    if access.mask is not None:
        problem = _truth("the mask", access.mask.dtype, moved.lanes)
        if problem is not None:
            return problem
    if isinstance(access, Store):
        if access.value.dtype != moved:
            return f"'{name}' stores {moved}, and the value is {access.value.dtype}"
        return None
    if access.other is None:
        return None
    if access.mask is None:
        return f"the load of '{name}' has a value for lanes that are off, and no mask"
    other = access.other.dtype
    if other.scalar != moved.scalar or other.lanes not in (1, moved.lanes):
        return f"the lanes that are off have type {other}; expected {moved}"
    return None


def _arithmetic(expr: Binary) -> str | None:
    problem = _computed(expr.a.dtype, expr.b.dtype)
    if problem is not None:
        return problem
    kind = expr.dtype
    match expr:
        case Div():
            return None if kind.is_float else f"the operands are {kind}; expected floats"
        case FloorDiv() | FloorMod() | BitAnd() | BitOr() | BitXor() | ShiftLeft() | ShiftRight():
            return None if kind.is_integer else f"the operands are {kind}; expected integers"
        case Add() | Sub() | Mul() | Min() | Max() if kind.is_bool:
            return "the operands are bool; expected numbers"
    return None


def _select(expr: Select) -> str | None:
    lanes = expr.condition.dtype.lanes
    if lanes > 1:
        lanes = expr.on_true.dtype.lanes
    return _truth("the condition", expr.condition.dtype, lanes) or _same(
        "the branches", expr.on_true.dtype, expr.on_false.dtype
    )


def _call(expr: Call) -> str | None:
    if len(expr.arguments) != expr.intrinsic.arity:
        return f"expected {expr.intrinsic.arity} arguments, got {len(expr.arguments)}"
    carried = expr.intrinsic.carried
    if carried is None:
        return _floats(expr.arguments)
    first, *others = expr.arguments
    operands = (_same("an operand", x.dtype, carried.with_lanes(first.dtype.lanes)) for x in others)
    return next(filter(None, operands), None)


def _floats(operands: Sequence[Expr]) -> str | None:
    for operand in operands:
        kind = operand.dtype
        if kind != operands[0].dtype or not kind.is_float or kind.is_storage:
            types = ", ".join(str(item.dtype) for item in operands)
            return f"the operands are {types}; expected floats of one type"
    return None


def _computed(a: DType, b: DType) -> str | None:
    if a.is_storage:
        return f"the operands are {a}, which is only stored; expected a type to compute with"
    return _same("the operands", a, b)


def _same(what: str, a: DType, b: DType) -> str | None:
    return None if a == b else f"{what} have types {a} and {b}; expected one type"


def _truth(what: str, dtype: DType, lanes: int) -> str | None:
    if dtype.is_bool and dtype.lanes == lanes:
        return None
    return f"{what} is {dtype}; expected {'bool' if lanes == 1 else f'boolx{lanes}'}"


def _lanes(what: str, dtype: DType, lanes: int) -> str | None:
    return None if dtype.lanes == lanes else f"{what} is {dtype}; expected {lanes} lanes"


def _scalar_integer(what: str, dtype: DType) -> str | None:
    if dtype.is_integer and dtype.lanes == 1:
        return None
    return f"{what} is {dtype}; expected one integer"
