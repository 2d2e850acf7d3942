"""Ways to compute a group other than as its operators say: one value each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ...tir.target.target import Target
from .collapse import as_matrix_product
from .fused_kernel import FusedKernel
from .joined_groups import as_joined
from .network_order import as_network
from .online_attention import as_online
from .searched_scatter import as_search
from .winograd import as_winograd, expected_error


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A way to compute the fused kernels that begin with some operator.

    name: of groups that are computed so; words: what stands behind such a group's title. rewrite:
    such a kernel as it is computed then; None of one that cannot be. keeps_order: whether it adds
    up what the operators say in their order, as a strict build asks. expected_error: of what
    `rewrite` made, where it rounds more than the operators' own sums and so needs a tolerance. gpu:
    whether it is for GPUs alone, and takes the place of the operators' own way there. cpu: whether
    it is for CPUs alone.
    """

    name: str
    words: str
    rewrite: Callable[[FusedKernel], FusedKernel | None]
    keeps_order: bool = False
    expected_error: Callable[[FusedKernel], float] | None = None
    gpu: bool = False
    cpu: bool = False

    def admit(
        self, fused: FusedKernel, target: Target, strict: bool, tolerance: float | None
    ) -> FusedKernel | None:
        """A fused kernel by the algorithm; None where it cannot be computed so, or must not be."""
        if (strict and not self.keeps_order) or (self.gpu and not target.has_grid):
            return None
        if self.cpu and target.has_grid:
            return None
        if self.expected_error is None:
            return self.rewrite(fused)
        made = self.rewrite(fused) if tolerance is not None else None
        if made is None or tolerance is None:
            return None
        return made if self.expected_error(made) <= tolerance else None

    def error(self, fused: FusedKernel) -> float:
        """What to expect of a fused kernel that `rewrite` made; 0 where it rounds no more."""
        return 0.0 if self.expected_error is None else self.expected_error(fused)


_MATMUL = Algorithm("matmul", "as matmul", as_matrix_product, keeps_order=True)
_WINOGRAD = Algorithm("winograd", "by Winograd", as_winograd)
_WINOGRAD_4X4 = Algorithm(
    "winograd-4x4",
    "by Winograd F(4x4)",
    lambda fused: as_winograd(fused, 4),
    expected_error=expected_error,
)
_JOINED = tuple(
    Algorithm(
        f"joined-{lanes}",
        f"in groups of {lanes} outputs",
        partial(as_joined, lanes=lanes),
        keeps_order=True,
        cpu=True,
    )
    for lanes in (4, 8, 16)
)
_ONLINE = Algorithm("online", "by tiles of keys", as_online, gpu=True)
_NETWORK = Algorithm("network", "by a sorting network", as_network, keeps_order=True, cpu=True)
_SEARCH = Algorithm("search", "by search", as_search, keeps_order=True, gpu=True)

# in the order in which they are priced: of equal prices the first is taken
ALGORITHMS: Mapping[str, Algorithm] = {
    one.name: one
    for one in (_MATMUL, _WINOGRAD, _WINOGRAD_4X4, *_JOINED, _ONLINE, _NETWORK, _SEARCH)
}
ROUNDING_MORE = frozenset(one.name for one in ALGORITHMS.values() if one.expected_error)
