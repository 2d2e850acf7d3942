"""The model as imported, as a Program of one plain function for each node: what a saved engine is
verified against.
"""

from __future__ import annotations

from ...runtime.model.model import Model
from ...tir.program.program import place_syncs
from ...tir.text.canonical import workload_key
from ..ir.ir import Graph
from ..ir.views import is_view
from ..kernels.express import express
from ..kernels.form import FusedKernel, form_of
from ..kernels.groups import FusionGroup
from .choose import KernelChoice
from .lowering import lower
from .pricing import Price, PricedKernel


def reference_model(graph: Graph) -> Model:
    """The nodes of a graph, each a launch of its own, with the constants that they read."""
    kernels: dict[FusedKernel, PricedKernel] = {}
    parts = []
    for node in graph.nodes:
        if is_view(node, graph.types):
            continue
        group = FusionGroup((node,))
        form, values = form_of(graph, group)
        if form not in kernels:
            func = express(form)
            kernels[form] = PricedKernel(func, workload_key(func), Price(0.0))
        parts.append(KernelChoice(group, form, values, kernels[form]))
    lowered = lower(graph, parts)
    return Model(place_syncs(lowered.program), lowered.constants)
