"""Rules of numbers that calls decide: sizes and arithmetic with them; and of what an exporter
asserts about them, which the sizes of a call are compared with anyway.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from .....tir.sizes import AnySize, greatest, least, product_of, quotient
from ...onnx.node import NotSupported
from ...size_texts import remainder
from ..rule import Rule
from ..writer import AtenValue, AtenWriter


def _sym_size(w: AtenWriter, self: AtenValue, dim: int) -> AnySize:
    return self.shape[self.axis(dim)]


def _sym_numel(w: AtenWriter, self: AtenValue) -> AnySize:
    return product_of(self.shape)


def _nothing(w: AtenWriter, *positional: object, **named: object) -> None:
    return None


def _of_sizes(function: Callable[[AnySize, AnySize], AnySize]) -> Rule:
    def rule(w: AtenWriter, a: AnySize, b: AnySize) -> AnySize:
        return function(a, b)

    return rule


def _of_numbers(function: Callable[..., float]) -> Rule:
    """What sizes have no algebra for: of numbers alone."""

    def rule(w: AtenWriter, a: AnySize | float, b: AnySize | float | None = None) -> float:
        given = (a,) if b is None else (a, b)
        if not all(isinstance(one, int | float) for one in given):
            raise NotSupported("it computes with a size that is decided by each call")
        return function(*given)

    return rule


def _item(w: AtenWriter, self: AtenValue) -> int | float | bool:
    known = w.known(self)
    if known is None:
        raise NotSupported("its number is decided by data")
    number: int | float | bool = known.item()
    return number


RULES: dict[str, Rule] = {
    "_assert_async.msg": _nothing,
    "_assert_scalar": _nothing,
    "_assert_tensor_metadata": _nothing,
    "_local_scalar_dense": _item,
    "_operator.add": _of_sizes(operator.add),
    "_operator.floordiv": _of_sizes(quotient),
    "_operator.ge": _nothing,
    "_operator.gt": _nothing,
    "_operator.le": _nothing,
    "_operator.lt": _nothing,
    "_operator.eq": _nothing,
    "_operator.ne": _nothing,
    "_operator.and_": _nothing,
    "_operator.mod": _of_sizes(remainder),
    "_operator.mul": _of_sizes(operator.mul),
    "_operator.neg": _of_numbers(operator.neg),
    "_operator.pow": _of_numbers(operator.pow),
    "_operator.sub": _of_sizes(operator.sub),
    "_operator.truediv": _of_numbers(operator.truediv),
    "item": _item,
    "math.ceil": _of_numbers(math.ceil),
    "math.floor": _of_numbers(math.floor),
    "math.trunc": _of_numbers(math.trunc),
    "sym_constrain_range_for_size": _nothing,
    "sym_numel": _sym_numel,
    "sym_size.int": _sym_size,
    "torch.sym_float": _of_numbers(float),
    "torch.sym_max": _of_sizes(greatest),
    "torch.sym_min": _of_sizes(least),
}
