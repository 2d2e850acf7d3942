"""Boxes that overlap, in the tensor-expression language: te.suppress.

    kept, number = te.suppress((left, top, right, bottom, area), count, share, most=100,
                               name=("kept", "number"))

Of the boxes of each row, the best ones first, those are kept that overlap none kept before
(tir/suppression.py): one block, which no schedule looks into.
"""

from __future__ import annotations

from ..dtype import INT32
from ..errors import IRError, IRTypeError
from ..suppression import SuppressionFunction, suppression_problem
from .tensor import ExternComputation, Tensor

Sides = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def suppress(
    sides: Sides, count: Tensor, share: Tensor, *, most: int, name: tuple[str, str]
) -> tuple[Tensor, Tensor]:
    """Which of the first boxes of each row are kept, `most` at most, int32 of (rows, most), -1
    behind the last one; and how many, int32 of (rows,).

    sides: where boxes begin and end on both axes, left, top, right, bottom, and their areas, NaN
    for a box that overlaps none: each float32 of (rows, n), the boxes that go first in front.
    count: int32 of (rows,), how many there are in each. share: float32 without axes, how much two
    boxes may have in common of what they cover together.
    Raises: IRError for shapes or types that do not fit, or a size that a call decides; IRTypeError
    for what is no tensor.
    """
    listed = (*sides, count, share)
    for tensor in listed:
        _check_tensor(name, tensor)
    function, rows = SuppressionFunction(), sides[0].shape[:1]
    results = ((INT32, (*rows, most)), (INT32, rows))
    made = ExternComputation(name, (), (), (), function, listed, results)
    kept, number = (
        Tensor(own, kind, shape, computation=made, output=n)
        for n, (own, (kind, shape)) in enumerate(zip(name, results, strict=True))
    )
    problem = suppression_problem(listed, (kept, number))
    if problem is not None:
        raise IRError(f"te.suppress: {problem}.", code="te-suppress-shape")
    return kept, number


def _check_tensor(name: tuple[str, str], tensor: object) -> None:
    if isinstance(tensor, Tensor) and not tensor.state and all(d is None for d in tensor.dims):
        return
    title = ", ".join(name)
    shown = f"'{tensor.name}'" if isinstance(tensor, Tensor) else repr(tensor)
    raise IRTypeError(
        f"te.suppress: '{title}' reads {shown}; expected tensors whose sizes are numbers.",
        code="te-suppress-tensor",
    )
