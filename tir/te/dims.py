"""te.dim: sizes that a call decides, and where the language takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral

from ..buffer import Buffer
from ..dim import Dim, Extent
from ..errors import IRError

_LARGEST = 1 << 31  # so that no address of any shape leaves int64


def dim(name: str, low: int, high: int) -> Dim:
    """A size of `low` .. `high` that each call decides: of an axis, a reduction, in expressions.

        m, n = te.dim("m", 1, 64), te.dim("n", 1, 2048)
        A = te.placeholder((m, n), "float32", name="A")
        k = te.reduce_axis(n, name="k")

    One kernel serves all sizes. An element that does not depend on a size has the same bits at
    each. Intermediate tensors have room for `high`.
    Raises: IRError for bounds that are not 0 <= low <= high.
    """
    if not _is_integer(low) or not _is_integer(high) or not 0 <= low <= high < _LARGEST:
        raise IRError(
            f"te.dim: the bounds of '{name}' are {low!r} and {high!r}; expected integers "
            f"0 <= low <= high < {_LARGEST}.",
            code="te-dim-bounds",
            hints=(f'te.dim("{name}", 1, 2048): every size of 1 .. 2048.',),
        )
    return Dim(name, low=int(low), high=int(high))


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral)


def check_constant(name: str, extents: Sequence[Extent]) -> None:
    """Refuse a constant whose size a call decides. Raises: IRError."""
    for extent in extents:
        if isinstance(extent, Dim):
            raise IRError(
                f"te.placeholder: '{name}' is a constant of size '{extent.name}', which a call "
                "decides; expected numbers: a constant is bound when a kernel is built.",
                code="te-dim-constant",
                hints=(f"te.placeholder(..., name='{name}') makes it an input of the call.",),
            )


def check_stepped(name: str, extents: Sequence[Extent]) -> None:
    """Refuse a size that a call decides in a part of a scan. Raises: IRError."""
    for extent in extents:
        if isinstance(extent, Dim):
            raise IRError(
                f"te.scan: '{name}' has the size '{extent.name}', which a call decides; expected "
                "numbers.",
                code="te-dim-scan",
                hints=("build a kernel for each size that there is.",),
            )


def check_dims(func: str, inputs: Iterable[Buffer], extents: Iterable[Extent]) -> None:
    """Refuse a dim that no input of a function has: nothing of a call would say what it is.

    Raises: IRError.
    """
    known = {d for tensor in inputs for d in tensor.dims if d is not None}
    lost = next((e for e in extents if isinstance(e, Dim) and e not in known), None)
    if lost is not None:
        raise IRError(
            f"te.func: no input of '{func}' has the size '{lost.name}'; expected one whose shape "
            "tells it.",
            code="te-dim-unknown",
            hints=(f"te.placeholder(({lost.name}, ...), ...) among the parameters of '{func}'.",),
        )
