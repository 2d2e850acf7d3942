"""A graph that torch.compile hands over, as what its calls run: an engine, made at the first call,
when the weights are there; or torch, which says why.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...graph.compile import compile as compile_engine
from ...runtime.engine.engine import Engine
from ...tir.errors import TilewrightError
from .engine_call import EngineCall
from .errors import FallbackWarning, NotForEngines
from .options import TorchOptions
from .program import TracedGraph, at_numbers, graph_program
from .sizes import Bounds, bounds_for, narrowed, told_sizes
from .weights import FrozenWeights

_MOST = 8  # engines of one graph for different numbers, as many as torch compiles of one frame


@dataclass(frozen=True, slots=True)
class GraphOutcome:
    """What a graph became. fallback: why torch runs it."""

    traced: TracedGraph
    engine: Engine[Any] | None
    fallback: TilewrightError | None = None
    held: int = 0


Tell = Callable[[GraphOutcome], object]


class GraphCall:
    """Takes the arguments of a call as a list, which it empties, and gives the results."""

    _boxed_call = True

    def __init__(self, traced: TracedGraph, options: TorchOptions, tell: Tell) -> None:
        self._traced, self._options, self._tell = traced, options, tell
        self._weights = FrozenWeights(traced.static)
        self._loose: tuple[int, ...] = ()  # arguments that are numbers which no axis tells
        self._calls: dict[tuple[int, ...], EngineCall] = {}
        self._bounds: dict[tuple[int, ...], dict[str, Bounds]] = {}
        self._by_torch = False
        self._lock = threading.Lock()

    def __call__(self, values: list[Any]) -> Sequence[Any]:
        given = values[:]
        values.clear()
        if not self._by_torch:
            call = self._calls.get(tuple([given[number] for number in self._loose]))
            if call is None or not self._weights.same(given) or not call.fits(given):
                call = self._made(given)
            if call is not None:
                return call.run(given)
        results: Sequence[Any] = self._traced.module(*given)
        return results

    def _made(self, given: Sequence[Any]) -> EngineCall | None:
        """What runs these arguments from now on; None where torch does."""
        with self._lock:
            try:
                return self._engine_call(given)
            except TilewrightError as error:
                if self._options.fallback == "refuse":
                    raise
                self._by_torch = True
                self._tell(GraphOutcome(self._traced, None, error))
                warnings.warn(_said(self._traced, error), FallbackWarning, stacklevel=2)
                return None

    def _engine_call(self, given: Sequence[Any]) -> EngineCall:
        """An engine for these weights, at sizes among which are these. Raises: TilewrightError."""
        if self._weights.changed:
            self._calls.clear()
        held = self._weights.hold(given)
        made = graph_program(self._traced, held)
        self._loose = tuple(made.loose)
        key = tuple(given[number] for number in self._loose)
        if key not in self._calls and len(self._calls) >= _MOST:
            raise NotForEngines(
                f"the numbers {', '.join(made.loose.values())} of calls had {_MOST} values",
                "a number that calls decide may be a tensor without axes.",
            )
        numbers = dict(zip(made.loose.values(), key, strict=True))
        ranges = narrowed(self._traced.ranges, self._traced.facts, numbers)
        made = at_numbers(made, numbers, ranges)
        sizes = told_sizes(made.told, given)
        bounds = self._bounds[key] = bounds_for(ranges, made.told, sizes, self._bounds.get(key, {}))
        options = self._options
        engine = compile_engine(
            made.program,
            shapes=dict(bounds),
            strict=options.strict,
            verify=options.verify,
            tolerance=options.tolerance,
            cache=options.cache,
        )
        if engine.interface.data_decides:
            raise NotForEngines("data decide the size of a result", "torch runs such graphs.")
        call = EngineCall(engine, made, bounds, options.threads)
        self._calls[key] = call
        self._tell(GraphOutcome(self._traced, engine, None, len(held)))
        return call


def _said(traced: TracedGraph, error: TilewrightError) -> str:
    """Why torch runs a graph: each node where there are some."""
    refuse = "options={'fallback': 'refuse'} makes an error of it."
    return (
        f"torch runs the graph '{traced.name}', which tilewright cannot compile: {error}\n{refuse}"
    )
