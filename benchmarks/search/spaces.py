"""The spaces that benchmarks.search records: odd sizes, one of each kind of kernel that a tuner
meets most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tilewright.autotune.space.space import RuleFunction
from tilewright.tir.func import PrimFunc

from ..subjects.functions import convolution, product, softmax


@dataclass(frozen=True)
class Recipe:
    """A space: of what, by which rule (the one that fits, if None).

    only: for questions by name, the answers that are tried beside the rule's own, where all of them
    would be too many points.
    """

    func: Callable[[], PrimFunc]
    only: Mapping[str, Sequence[object]] = field(default_factory=dict)
    rule: RuleFunction | None = None


SPACES = {
    "matmul": Recipe(partial(product, 99, 333, 215), {"copies of the body of C": (1, 2, 4)}),
    "convolution": Recipe(partial(convolution, 29, 40, 72, 3)),
    # drawn when the search was done
    "few_rows": Recipe(partial(product, 11, 517, 1029)),
    "softmax": Recipe(
        partial(softmax, 157, 777),
        {"copies of the body of M_rf": (1, 2, 4), "copies of the body of S_rf": (1, 4)},
    ),
}
