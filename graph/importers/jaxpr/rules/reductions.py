"""Rules of reductions, places of the largest, running totals, and order."""

from __future__ import annotations

from collections.abc import Sequence

from .....tir.sizes import AnySize
from ....ops import reduction
from ....ops.arithmetic import Max, Min
from ....ops.base import highest, lowest
from ...onnx.node import NotSupported
from ..program import Jaxpr, Variable
from ..rule import Rule
from ..writer import JaxValue, JaxWriter
from .elementwise import RULES as ELEMENTWISE
from .shapes import padded, reversed_along

Axes = Sequence[int]


def _reduced(kind: type[reduction.Reduction]) -> Rule:
    def rule(w: JaxWriter, x: JaxValue, axes: Axes) -> JaxValue:
        return reduced(w, kind, x, axes)

    return rule


def reduced(w: JaxWriter, kind: type[reduction.Reduction], x: JaxValue, axes: Axes) -> JaxValue:
    """All elements along axes as one; the axes go."""
    return w.emit(kind(tuple(sorted(axes)), False), x) if axes else x


def _of_truth(operator: str) -> Rule:
    """Whether any or all of some truth values hold; of numbers it is one of their bits."""

    def rule(w: JaxWriter, x: JaxValue, axes: Axes) -> JaxValue:
        if x.dtype != "bool":
            raise NotSupported(f"it is of {x.dtype}; known are truth values")
        return w.spell(operator, x, w.sizes(sorted(axes)), keepdims=0) if axes else x

    return rule


def _extreme_of(operator: str, kind: type[reduction.Reduction]) -> Rule:
    """The largest or the least; of truth values whether any or all hold."""

    def rule(w: JaxWriter, x: JaxValue, axes: Axes) -> JaxValue:
        if x.dtype != "bool":
            return reduced(w, kind, x, axes)
        made: JaxValue = _of_truth(operator)(w, x, axes)
        return made

    return rule


def combining(jaxpr: Jaxpr) -> str:
    """The primitive that combines two numbers, where a jaxpr is nothing else.

    Raises: NotSupported.
    """
    match jaxpr.equations:
        case [one] if not jaxpr.constants and len(jaxpr.inputs) == len(one.operands) == 2:
            given = {operand.name for operand in one.operands if isinstance(operand, Variable)}
            if given == set(jaxpr.inputs) and jaxpr.outputs == (Variable(one.outputs[0]),):
                return one.primitive
    raise NotSupported("it combines elements by a function of its own; known are +, *, max, min")


_KINDS: dict[str, type[reduction.Reduction]] = {
    "add": reduction.ReduceSum,
    "max": reduction.ReduceMax,
    "min": reduction.ReduceMin,
    "mul": reduction.ReduceProd,
}


def _reduce(w: JaxWriter, *operands: JaxValue, jaxpr: Jaxpr, dimensions: Axes) -> JaxValue:
    """By a function that is one of those that have a primitive of their own."""
    if len(operands) != 2:
        raise NotSupported(f"it reduces {len(operands) // 2} arrays together; known is one")
    x, first = operands
    primitive = combining(jaxpr)
    if primitive in ("and", "or") and x.dtype == "bool":
        made: JaxValue = RULES[f"reduce_{primitive}"](w, x, axes=dimensions)
    elif primitive in _KINDS:
        made = reduced(w, _KINDS[primitive], x, dimensions)
    else:
        raise NotSupported(f"it combines elements by '{primitive}'; known are +, *, max, min")
    whole: JaxValue = ELEMENTWISE[primitive](w, made, first)
    return whole


def _place(operator: str) -> Rule:
    """The first place of the largest or the least; of one that is no number, if there is one."""

    def rule(w: JaxWriter, x: JaxValue, axes: Axes, index_dtype: str) -> JaxValue:
        (axis,) = axes
        source = w.cast(x, "uint8") if x.dtype == "bool" else x
        return w.cast(w.spell(operator, source, axis=axis, keepdims=0), index_dtype)

    return rule


def _running(operator: str) -> Rule:
    def rule(w: JaxWriter, x: JaxValue, axis: int, reverse: bool = False) -> JaxValue:
        return w.spell(operator, x, w.number(axis, "int64"), reverse=int(reverse))

    return rule


def _extreme(op: Max | Min) -> Rule:
    """The largest, or the least, so far: with what is one behind, then two, four, ..."""

    def rule(w: JaxWriter, x: JaxValue, axis: int, reverse: bool = False) -> JaxValue:
        size = x.shape[axis]
        if not isinstance(size, int):
            raise NotSupported(f"calls decide how many elements there are: {size}")
        least = lowest(x.dtype) if isinstance(op, Max) else highest(x.dtype)
        fill, made, step = w.full(least, x.dtype), x, 1
        while step < size:
            widths: list[tuple[AnySize, AnySize, int]] = [(0, 0, 0)] * x.rank
            widths[axis] = (-step, step, 0) if reverse else (step, -step, 0)
            made = w.emit(op, made, padded(w, made, fill, widths))
            step *= 2
        return made

    return rule


def _cumprod(w: JaxWriter, x: JaxValue, axis: int, reverse: bool = False) -> JaxValue:
    given = reversed_along(w, x, (axis,)) if reverse else x
    made = w.spell("CumProd", given, w.number(axis, "int64"))
    return reversed_along(w, made, (axis,)) if reverse else made


def _sort(w: JaxWriter, *operands: JaxValue, dimension: int, num_keys: int = 1) -> list[JaxValue]:
    """By the first operand, where equal by the next: stable sorts from the last key to the first.

    Of one operand the order is all; others follow where its elements came from.
    """
    listed = list(operands)
    count = w.sizes((listed[0].shape[dimension],))
    for number in reversed(range(num_keys)):
        key = listed[number]
        source = w.cast(key, "uint8") if key.dtype == "bool" else key
        made, places = w.spell_all("TopK", 2, source, count, axis=dimension, largest=0, sorted=1)
        listed = [
            w.cast(made, one.dtype)
            if one is key
            else w.spell("GatherElements", one, places, axis=dimension)
            for one in listed
        ]
    return listed


def _top_k(w: JaxWriter, x: JaxValue, k: AnySize, axis: int = -1) -> list[JaxValue]:
    values, places = w.spell_all("TopK", 2, x, w.sizes((k,)), axis=axis, largest=1, sorted=1)
    return [values, w.cast(places, "int32")]


def _approximate_top_k(
    w: JaxWriter,
    x: JaxValue,
    k: int,
    reduction_dimension: int,
    is_max_k: bool,
    recall_target: float = 1.0,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[JaxValue]:
    """All of the largest, none left out."""
    if not aggregate_to_topk:
        raise NotSupported("it gives more candidates than are asked for")
    axis, count = reduction_dimension, w.sizes((k,))
    largest = int(is_max_k)
    values, places = w.spell_all("TopK", 2, x, count, axis=axis, largest=largest, sorted=1)
    return [values, w.cast(places, "int32")]


RULES: dict[str, Rule] = {
    "approx_top_k": _approximate_top_k,
    "argmax": _place("ArgMax"),
    "argmin": _place("ArgMin"),
    "cummax": _extreme(Max()),
    "cummin": _extreme(Min()),
    "cumprod": _cumprod,
    "cumsum": _running("CumSum"),
    "reduce": _reduce,
    "reduce_and": _of_truth("ReduceMin"),
    "reduce_max": _extreme_of("ReduceMax", reduction.ReduceMax),
    "reduce_min": _extreme_of("ReduceMin", reduction.ReduceMin),
    "reduce_or": _of_truth("ReduceMax"),
    "reduce_prod": _reduced(reduction.ReduceProd),
    "reduce_sum": _reduced(reduction.ReduceSum),
    "sort": _sort,
    "top_k": _top_k,
}
