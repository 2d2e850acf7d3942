"""What an operator promises to passes and to fusion, by its role and by methods with an answer that
is not the default, held against its reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from ...tir.sizes import closed_shape
from ..ir.at_sizes import has_sizes
from ..kernels.collapse import collapsed
from ..kernels.fused_kernel import fused_kernel_of
from ..kernels.groups import FusionGroup
from ..ops.base import OperatorRole
from ..ops.spatial import is_spatial
from ..types import Array, inverse, permutation_to_first
from .report import OperatorFinding
from .subject import OperatorCase

_CLOSE = 1e-5  # sums in another order, in the types of the case
_ROLE = "role = OperatorRole.GENERAL promises nothing."


def role_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """An element of the result depends on those of the inputs that the role names."""
    match case.op.role:
        case OperatorRole.ELEMENTWISE:
            yield from _elementwise(case)
        case OperatorRole.ROWWISE:
            yield from _rowwise(case)
        case OperatorRole.MOVEMENT:
            yield from _movement(case)
        case OperatorRole.SPATIAL:
            yield from _spatial(case)


def _elementwise(case: OperatorCase) -> Iterator[OperatorFinding]:
    y = _only(case)
    whole = [np.broadcast_to(array, y.shape).reshape(-1) for array in case.arrays]
    turned = _only(case.with_arrays([array[::-1].copy() for array in whole]))
    if not _equal(turned[::-1], y.reshape(-1)):
        problem = "it is ELEMENTWISE, and elements in another order give other results"
        yield case.finding("role", problem, _ROLE)


def _rowwise(case: OperatorCase) -> Iterator[OperatorFinding]:
    x, *rest = case.arrays
    y = _only(case)
    if y.shape != x.shape:
        problem = f"it is ROWWISE, and makes of the shape {x.shape} the shape {y.shape}"
        yield case.finding("role", problem, _ROLE)
        return
    if x.ndim < 2 or len(x) < 2:
        return
    other = x.copy()
    other[0] = x[0, ..., ::-1]
    if not _equal(_only(case.with_arrays([other, *rest]))[1:], y[1:]):
        problem = "it is ROWWISE, and a row of the result depends on another row"
        yield case.finding("role", problem, _ROLE)


def _movement(case: OperatorCase) -> Iterator[OperatorFinding]:
    if not case.arrays:
        return
    x, *rest = case.arrays
    y = _only(case)
    given = [array.reshape(-1) for array in case.arrays if array.dtype == x.dtype]
    moved = np.isin(y, np.concatenate(given))
    if y.dtype != x.dtype or (case.op.rearranges and not moved.all()):
        problem = "it is a MOVEMENT that rearranges, and gives elements that no input has"
        yield case.finding("role", problem, _ROLE)
    elif x.dtype.kind == "f":
        doubled = _only(case.with_arrays([2 * x, *rest]))
        if not _equal(y[~moved], doubled[~moved]):
            problem = "it is a MOVEMENT, and computes elements that no input has from them"
            yield case.finding("role", problem, _ROLE)


def _spatial(case: OperatorCase) -> Iterator[OperatorFinding]:
    op, arrays = case.op, list(case.arrays)
    if not is_spatial(op) or op.layout != "NCHW":
        return
    rank, expected = arrays[0].ndim, _only(case)
    moved = case.call("channels_last", op.channels_last)
    for n, permutation in enumerate(case.call("operands_last", lambda: op.operands_last(rank))):
        arrays[n] = arrays[n].transpose(permutation)
    last = _only(OperatorCase(moved, tuple(arrays))).transpose(permutation_to_first(rank))
    if not _close(last, expected):
        problem = "channels_last gives another result on operands with channels last"
        yield case.finding("role", problem, _ROLE)
    in_place = case.call("in_place", moved.in_place)
    if in_place is not None:
        read = OperatorCase(in_place, (case.arrays[0], *arrays[1:]))
        if not _close(_only(read).transpose(permutation_to_first(rank)), expected):
            problem = "in_place gives another result on data with channels first"
            yield case.finding("role", problem, "in_place gives None where it cannot.")


def view_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """A view has the bytes of its first input."""
    said = case.call("is_view", lambda: bool(case.arrays) and case.op.is_view(case.types))
    if said and _only(case).tobytes() != case.arrays[0].tobytes():
        problem = "is_view says that the result has the bytes of the first input"
        yield case.finding("view", problem, "is_view gives False where it is not sure.")


def unchanged_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """An input that is said to be the result is it, where another one is 0 or 1 everywhere."""
    hint = "unchanged_input gives None where it is not sure; `neutral` leaves the other input."
    for n, number in ((n, number) for n in range(len(case.arrays)) for number in (0, 1)):
        arrays = list(case.arrays)
        arrays[n] = np.full_like(arrays[n], number)
        asked = (n, number)

        def is_all(*what: int, known: tuple[int, int] = asked) -> bool:
            return what == known

        found = case.call(
            "unchanged_input",
            lambda f=is_all: case.op.unchanged_input(len(case.arrays), f),  # type: ignore[misc]
        )
        if found is None:
            continue
        y = _only(case.with_arrays(arrays))
        same = y.size == arrays[found].size and y.dtype == arrays[found].dtype
        if same and not _equal(y.reshape(-1), arrays[found].reshape(-1)):
            yield case.finding(
                "unchanged input",
                f"unchanged_input says that input {found} is the result where input {n} is "
                f"{number} everywhere; it is not",
                hint,
            )
            return


def commutative_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """Two inputs may change places where they are said to."""
    if not case.op.commutative:
        return
    if len(case.arrays) != 2 or not _equal(_only(case.with_arrays(case.arrays[::-1])), _only(case)):
        problem = "commutative says that two inputs may change places; the result is another one"
        yield case.finding("commutative", problem, "commutative = False is the default.")


def permuted_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """The operator on permuted operands is what it says."""
    ranks = {array.ndim for array in case.arrays}
    if len(ranks) != 1 or case.op.output_count > 1:
        return
    (rank,) = ranks
    for permutation in list(permutations(range(rank)))[: 1 << 3]:
        moved = case.call("permute_axes", lambda p=permutation: case.op.permute_axes(p))  # type: ignore[misc]
        if moved is None:
            continue
        arrays = tuple(array.transpose(inverse(permutation)) for array in case.arrays)
        got = _only(OperatorCase(moved.operator, arrays)).transpose(moved.permutation)
        if not _close(got, _only(case)):
            yield case.finding(
                "permuted axes",
                f"permute_axes({permutation}) gives {moved.operator!r} and the permutation "
                f"{moved.permutation}, and the result is another one",
                "permute_axes gives None where it is not sure.",
            )
            return


def joined_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """The operator on joined axes gives the same elements."""
    graph = case.graph()
    if has_sizes(case.op) or not case.arrays or case.op.output_count > 1:
        return
    fused, _ = fused_kernel_of(graph, FusionGroup(graph.nodes))
    small = case.call("joinable_axes", lambda: collapsed(fused))
    if small == fused:
        return
    shapes = [closed_shape(operand.type.shape) for operand in small.operands]
    arrays = [array.reshape(s) for array, s in zip(case.arrays, shapes, strict=True)]
    y = _only(OperatorCase(small.steps[0].op, tuple(arrays)))
    if y.shape != small.result.shape or not _close(y.reshape(-1), _only(case).reshape(-1)):
        problem = "joinable_axes says that axes may be joined; the result is another one"
        yield case.finding("joined axes", problem, "joinable_axes gives None where it is not sure.")


def _only(case: OperatorCase) -> Array:
    """The only result of the reference."""
    made: Sequence[Array] = case.computed()
    return np.asarray(made[0])


def _equal(one: Array, other: Array) -> bool:
    """Whether two arrays have the same elements, in whatever type."""
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _close(one: Array, other: Array) -> bool:
    """Whether two arrays are the same but for what sums in another order change."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return _equal(one, other)
    return bool(np.allclose(one, other, rtol=_CLOSE, atol=_CLOSE, equal_nan=True))
