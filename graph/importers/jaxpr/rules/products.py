"""Rules of matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from .....tir.sizes import AnySize, product_of
from ....ops.matmul import MatMul
from ..rule import Rule
from ..writer import JaxValue, JaxWriter

Axes = Sequence[int]


def _dot_general(
    w: JaxWriter,
    a: JaxValue,
    b: JaxValue,
    dimension_numbers: tuple[tuple[Axes, Axes], tuple[Axes, Axes]],
    preferred_element_type: str | None = None,
) -> JaxValue:
    """Sums of products over pairs of axes; batches come first, then what is left of each operand.

    Axes that are summed over are taken in the order of the first operand, so that it need not move.
    """
    (own, other), (batch, others_batch) = dimension_numbers
    pairs = sorted(zip(own, other, strict=True))
    summed, others_summed = [one for one, _ in pairs], [one for _, one in pairs]
    kind = preferred_element_type or a.dtype
    a, b = w.cast(a, kind), w.cast(b, kind)
    rows = [axis for axis in range(a.rank) if axis not in (*summed, *batch)]
    columns = [axis for axis in range(b.rank) if axis not in (*others_summed, *others_batch)]
    stack, left, right = (
        [x.shape[axis] for axis in axes] for x, axes in ((a, batch), (a, rows), (b, columns))
    )
    inner = product_of(a.shape[axis] for axis in summed)
    x = w.transpose(a, (*batch, *rows, *summed))
    y = w.transpose(b, (*others_batch, *others_summed, *columns))
    if not batch and left:  # rows of any number of axes, as they are
        x = w.reshape(x, (*left, inner))
    else:
        x = w.reshape(x, (*stack, product_of(left), inner))
    y = w.reshape(y, (*stack, inner, product_of(right)))
    shape: list[AnySize] = [*stack, *left, *right]
    return w.reshape(w.emit(MatMul(), x, y), shape)


RULES: dict[str, Rule] = {"dot_general": _dot_general}
