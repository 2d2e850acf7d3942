"""How large a function may be for the numeric check of its kernel: it holds the arrays of a run
between fences, their reference in float64, and the bound on each element.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...runtime.machine.memory import process_memory
from ...tir.analysis.facts import agree
from ...tir.analysis.specialise import specialise
from ...tir.dim import Dim
from ...tir.func import PrimFunc

MOST_BYTES = 8 << 30  # and half of the memory that the process may take
# of an element, beside those of its own type and of a copy: measured, rounded up
_READ_BYTES = 8  # the number in float64
_STORED_BYTES = 52  # the reference, the bound, the error, the ratio of both


def checked_sizes(func: PrimFunc) -> tuple[Mapping[Dim, int], ...]:
    """The sizes at which the kernel of a function is run: those that are usual, all as small as can
    be, each as large as can be beside the smallest others, where that is not too large and the
    sizes belong together.
    """
    least = {dim: dim.low for dim in func.dims}
    chosen = [{dim: dim.usual for dim in func.dims}, least]
    chosen += [{**least, dim: dim.high} for dim in func.dims]
    chosen = [sizes for sizes in chosen if agree(func.facts, sizes)]
    usual, *others = [sizes for n, sizes in enumerate(chosen) if sizes not in chosen[:n]]
    fitting = (sizes for sizes in others if unchecked_because(specialise(func, sizes)) is None)
    return (usual, *fitting)


def unchecked_because(func: PrimFunc) -> str | None:
    """What a report says of a kernel that is too large to be checked, at the sizes that are usual;
    None where it is not.
    """
    if func.dims:
        return unchecked_because(specialise(func, {dim: dim.usual for dim in func.dims}))
    outputs = frozenset(func.outputs)
    needed = sum(
        b.size * (2 * b.type.bytes + (_STORED_BYTES if b in outputs else _READ_BYTES))
        for b in (*(p.buffer for p in func.parameters), *func.allocations)
    )
    most = min(MOST_BYTES, process_memory() // 2)
    if needed <= most:
        return None
    return (
        f"unchecked: too large: the check would take {needed / 2**30:.1f} GiB, "
        f"more than {most / 2**30:.3g}"
    )
