"""Stores whose places data decide, in the tensor-expression language: te.scatter.

    at = te.compute((K,), lambda k: te.cast(te.checked(I[k], N, what="row"), "int32"), name="at")
    Y = te.scatter(X, U, at, axis=0, combining="add", name="Y")   # Y[at[k], j] += U[k, j]

Y is X with the updates U, written one after the other (tir/scatter.py): one block, which no
schedule looks into. Tensors before and after it are like any others.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from ..errors import IRError, IRTypeError
from ..scatter import COMBININGS, ScatterFunction, scatter_problem
from .tensor import ExternComputation, Tensor


def scatter(
    x: Tensor,
    updates: Tensor,
    places: Tensor | tuple[Tensor, ...],
    *,
    axis: int,
    span: int = 1,
    combining: str = "none",
    shape: Sequence[int] | None = None,
    name: str,
) -> Tensor:
    """x with each of `updates` at its place, in row-major order of the updates.

    places: integers, for each of several axes of x that stand in the place of `span` axes of the
    updates from `axis` on; they have the shape of the updates, or of their first axes, these among
    them. shape: that of the result, where x is one element that all of them begin as.
    combining: "none", an update stands there instead of what was there; or "add", "mul", "max",
    "min". A place outside of x is moved to the nearest one inside: te.checked reports it.
    Raises: IRError for shapes, types or a name that do not fit, or a size that a call decides;
    IRTypeError for what is no tensor.
    """
    listed = (x, updates, *(places if isinstance(places, tuple) else (places,)))
    for tensor in listed:
        _check_tensor(name, tensor)
    if combining not in COMBININGS:
        raise IRError(
            f"te.scatter: '{name}' combines by {combining!r}; expected one of "
            f"{', '.join(COMBININGS)}.",
            code="te-scatter-combining",
        )
    function = ScatterFunction(COMBININGS[combining], axis, span)
    extents = x.shape if shape is None else tuple(map(operator.index, shape))
    results = ((x.type, extents),)
    made = ExternComputation((name,), (), (), (), function, listed, results)
    result = Tensor(name, x.type, extents, computation=made)
    problem = scatter_problem(function, listed, (result,))
    if problem is not None:
        raise IRError(f"te.scatter: {problem}.", code="te-scatter-shape")
    return result


def _check_tensor(name: str, tensor: object) -> None:
    if not isinstance(tensor, Tensor) or tensor.state:
        shown = f"state '{tensor.name}'" if isinstance(tensor, Tensor) else repr(tensor)
        raise IRTypeError(
            f"te.scatter: '{name}' reads {shown}; expected tensors.",
            code="te-scatter-tensor",
            hints=("it is handed whole tensors: U, not U[k].",),
        )
    if any(dim is not None for dim in tensor.dims):
        raise IRError(
            f"te.scatter: '{name}' reads '{tensor.name}', which has a size that a call decides; "
            "expected numbers.",
            code="te-scatter-dim",
            hints=("te.max over the updates whose place it is finds the one of each element.",),
        )
