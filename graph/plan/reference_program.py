"""The model as imported, as a Program of one plain function for each node: what a saved engine is
verified against.
"""

from __future__ import annotations

from ...runtime.model.model import Model
from ...tir.program.syncs import place_syncs
from ...tir.sizes import size_of
from ...tir.text.canonical import workload_key
from ..ir.ir import Graph
from ..ir.views import is_view
from ..kernels.express import express
from ..kernels.fused_kernel import FusedKernel, fused_kernel_of
from ..kernels.groups import FusionGroup
from .choose import KernelChoice
from .flatten import flatten
from .lowering import lower
from .pricing import Price, PricedKernel


def reference_model(graph: Graph) -> Model:
    """The nodes of a graph, each a launch of its own, with the constants that they read."""
    kernels: dict[FusedKernel, PricedKernel] = {}
    parts = []
    model = flatten(graph)
    flat = model.graph
    for node in flat.nodes:
        if is_view(node, flat.types):
            continue
        group = FusionGroup((node,))
        fused, values = fused_kernel_of(flat, group)
        if fused not in kernels:
            func = express(fused)
            kernels[fused] = PricedKernel(
                func, workload_key(func), Price(0.0), tuple(map(size_of, func.dims))
            )
        parts.append(KernelChoice(group, fused, values, kernels[fused]))
    lowered = lower(model, parts)
    return Model(place_syncs(lowered.program), lowered.constants)
