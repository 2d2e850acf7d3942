"""The backend of torch.compile: AOTAutograd makes graphs of aten operators without gradients, which
become engines.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import TracingContext

from ...graph.importers.aten.rules.table import RULES, rule_name
from ...graph.importers.fx.exported import end_of_range
from ...graph.options import OptionError
from .errors import FallbackWarning, TrainingGraphError
from .graph_call import GraphCall, GraphOutcome, Tell
from .options import TorchOptions
from .program import TracedGraph

_told_training = False


def tilewright(
    module: Any,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, object] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """What torch.compile(model, backend="tilewright", options={...}) calls for each graph.

    module: a GraphModule of FX; inputs: examples of its arguments. options: see `TorchOptions`.
    Raises: OptionError; UnsupportedOperator and other errors of a compile, at the first call, where
    fallback is "refuse"; TrainingGraphError where training is "refuse".
    """
    return compiled(module, inputs, options, mode, _silent)


def compiled(
    module: Any,
    inputs: Sequence[Any],
    options: Mapping[str, object] | None,
    mode: str | None,
    tell: Tell,
) -> Callable[..., Any]:
    """As `tilewright`; `tell` is called with what each graph became."""
    if mode is not None:
        raise OptionError(
            f"torch.compile: mode={mode!r} is Inductor's; expected none for the backend "
            "'tilewright'.",
            code="torch-mode",
            hints=("options={'tolerance': 1e-3} allows algorithms that round more.",),
        )
    chosen, name = TorchOptions.of(options), _name(module)

    def inference(graph: Any, _: Sequence[Any]) -> GraphCall:
        return GraphCall(_traced(name, graph), chosen, tell)

    def training(graph: Any, _: Sequence[Any]) -> Callable[..., Any]:
        if chosen.training == "refuse":
            raise TrainingGraphError
        _tell_training()
        tell(GraphOutcome(_traced(name, graph), None, TrainingGraphError()))
        by_torch: Callable[..., Any] = make_boxed_func(graph)
        return by_torch

    def gradients(graph: Any, _: Sequence[Any]) -> Callable[..., Any]:
        by_torch: Callable[..., Any] = make_boxed_func(graph)
        return by_torch

    made: Callable[..., Any] = aot_autograd(
        fw_compiler=training,
        bw_compiler=gradients,
        inference_compiler=inference,
        decompositions=_decompositions(),
    )(module, inputs)
    return made


def _silent(made: GraphOutcome) -> None:
    """Discard what a graph became."""


@cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """How torch writes operators that have no rule by others: attentions stay whole."""
    known = core_aten_decompositions()
    return {op: made for op, made in known.items() if rule_name(str(op)) not in RULES}


def _traced(name: str, graph: Any) -> TracedGraph:
    """A graph with what the context of its making knows of it."""
    context = TracingContext.get()
    metadata, ranges, facts = context.fw_metadata, {}, ()
    if context.fake_mode is not None and context.fake_mode.shape_env is not None:
        sizes = context.fake_mode.shape_env
        found = sizes.var_to_range.items()
        ranges = {str(s): (end_of_range(r.lower), end_of_range(r.upper)) for s, r in found}
        facts = tuple(guard.expr for guard in sizes.guards)
    changed = {n for n, info in enumerate(metadata.input_info) if info.mutates_data}
    static = frozenset(metadata.static_input_indices) - changed
    return TracedGraph(name, graph, static, ranges, facts)


def _name(module: Any) -> str:
    """The name of what is compiled: the class of the outermost module where nodes tell it."""
    for node in module.graph.nodes:
        stack = node.meta.get("nn_module_stack")
        if stack:
            return str(getattr(next(iter(stack.values()))[1], "__name__", "graph"))
    return "graph"


def _tell_training() -> None:
    """Say once that gradients are torch's."""
    global _told_training
    if not _told_training:
        _told_training = True
        warnings.warn(
            "torch runs graphs whose gradients are needed; with torch.no_grad(): ... they are "
            "compiled. options={'training': 'refuse'} makes an error of it.",
            FallbackWarning,
            stacklevel=2,
        )
