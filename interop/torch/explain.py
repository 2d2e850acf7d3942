"""What torch.compile with the backend "tilewright" made of a function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from ...graph.errors import UnsupportedOperator
from .dynamo import compiled
from .errors import FallbackWarning, TrainingGraphError
from .graph_call import GraphOutcome
from .report import CompiledGraph, GraphBreak, TorchReport


def explain(
    function: Callable[..., Any],
    *args: object,
    options: Mapping[str, object] | None = None,
    **kwargs: object,
) -> TorchReport:
    """Run a function, or a module, once with these arguments as torch.compile does, and say what
    became of it: its graphs, each with what it was compiled to or why torch runs it; where graphs
    end before the function does, and why; what torch compares before each call.

    options: those of the backend. What torch has compiled before is forgotten.
    Raises: what the function raises; OptionError.
    """
    made, modules, guards = list[GraphOutcome](), list[Any](), list[Any]()

    def backend(module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        modules.append(module)
        return compiled(module, inputs, options, None, made.append)

    torch._dynamo.reset()
    try:
        run = torch._dynamo.optimize(backend, guard_export_fn=guards.extend)(function)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)  # the report says it
            run(*args, **kwargs)
    finally:
        torch._dynamo.reset()
    return TorchReport(
        tuple(map(_graph, made)), tuple(_breaks(modules)), tuple(dict.fromkeys(map(_guard, guards)))
    )


def _graph(made: GraphOutcome) -> CompiledGraph:
    nodes = [node for node in made.traced.module.graph.nodes if node.op == "call_function"]
    why, error = list[str](), made.fallback
    if isinstance(error, UnsupportedOperator):
        why = [str(one) for one in (*error.nodes, *error.parts)]
    elif isinstance(error, TrainingGraphError):
        why = ["its gradients are needed"]
    elif error is not None:
        why = [error.message]
    engine = made.engine
    return CompiledGraph(
        made.traced.name,
        len(nodes),
        made.held,
        tuple(why),
        "" if engine is None else str(engine.interface),
        () if engine is None else tuple((d.name, d.low, d.high) for d in engine.interface.dims),
        None if engine is None else engine.explain(),
    )


def _breaks(modules: Iterable[Any]) -> Iterable[GraphBreak]:
    for module in modules:
        reason = getattr(module, "compile_subgraph_reason", None)
        if reason is not None and reason.graph_break:
            places = [f"{frame.filename}:{frame.lineno}" for frame in reason.user_stack]
            yield GraphBreak(reason.reason.strip().splitlines()[0], places[-1] if places else "")


def _guard(guard: Any) -> str:
    return f"{guard.name or 'state'}: {guard.create_fn_name()}"
