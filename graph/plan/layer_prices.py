"""What a product takes with numbers of each type, alone and by the cost model: whether bytes pay
where nothing is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...runtime.model.precision_report import LayerTimes
from ...tir.target.target import Target
from ..ir.ir import Graph
from ..ops.base import OperatorRole
from ..ops.convolution import Conv
from .choose import Alternative
from .plan import plan_model

_AS_DEFINED = {"direct", "matmul"}  # the ways that multiply as often as an operator says


@dataclass(frozen=True, slots=True)
class LayerPrices:
    """Prices of products on one target. tolerance: of algorithms that round more, as `plan_model`
    has it.
    """

    target: Target
    tolerance: float | None = None

    def times(self, floats: Graph, with_levels: Callable[[], Graph]) -> LayerTimes | None:
        """Seconds of the one product of a graph and of what its kernel does besides, as it is and
        with levels. None where floats are multiplied as often as the product says, in one group:
        there bytes take fewer cycles on every target that multiplies them.
        """
        plain = self._product(floats)
        has_groups = any(isinstance(n.op, Conv) and n.op.groups > 1 for n in floats.nodes)
        if not has_groups and all(part.group.algorithm in _AS_DEFINED for part in plain.parts):
            return None
        narrow = self._product(with_levels())
        return LayerTimes(narrow=narrow.seconds, floats=plain.seconds, is_estimate=True)

    def _product(self, graph: Graph) -> Alternative:
        """How the group is computed that begins with the product; all others are of other roles."""
        planned = plan_model(graph, self.target, check=False, tolerance=self.tolerance)
        roles = OperatorRole.SPATIAL, OperatorRole.GENERAL
        return next(one.chosen for one in planned.decisions if one.group.nodes[0].op.role in roles)
