"""A graph that torch.compile hands over, as what its calls run: an engine, made at the first call,
when the weights are there; or torch, which says why.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...graph.compile import compile as compile_engine
from ...graph.errors import ModelError
from ...runtime.engine.engine import Engine
from ...tir.errors import TilewrightError
from .engine_call import EngineCall
from .equalities import scaling
from .errors import FallbackWarning, NotForEngines
from .options import TorchOptions
from .program import Axis, GraphProgram, TracedGraph, at_numbers, graph_program
from .sizes import Bounds, bounds_for, narrowed, told_sizes
from .weights import HeldWeights

_PATIENCE = 3  # times that a weight may change before it is an input of the engine
_MOST = 8  # engines of one graph for different numbers, as many as torch compiles of one frame


@dataclass(frozen=True, slots=True)
class GraphOutcome:
    """What a graph became. fallback: why torch runs it; held: how many weights the engine holds."""

    traced: TracedGraph
    engine: Engine[Any] | None
    fallback: TilewrightError | None = None
    held: int = 0


Tell = Callable[[GraphOutcome], object]


class GraphCall:
    """Takes the arguments of a call as a list, which it empties, and gives the results.

    There is one engine for all calls, or one for each choice of the numbers that no axis tells and
    of the sizes that must be numbers.
    """

    _boxed_call = True

    def __init__(self, traced: TracedGraph, options: TorchOptions, tell: Tell) -> None:
        self._traced, self._options, self._tell = traced, options, tell
        self._weights = HeldWeights()  # of the engine that was made last
        self._changes = Counter[int]()  # how often each weight has changed
        self._closed: set[str] = scaling(traced.module)  # symbols that must be numbers
        self._loose: tuple[int, ...] = ()  # arguments that are numbers which no axis tells
        self._axes: tuple[Axis, ...] = ()  # what tells the symbols that must be numbers
        self._calls: dict[tuple[int, ...], EngineCall] = {}
        self._bounds: dict[tuple[int, ...], dict[str, Bounds]] = {}
        self._by_torch = False
        self._lock = threading.Lock()

    def __call__(self, values: list[Any]) -> Sequence[Any]:
        given = values[:]
        values.clear()
        if not self._by_torch:
            call = self._known(given) or self._made(given)
            if call is not None:
                return call.run(given)
        results: Sequence[Any] = self._traced.module(*given)
        return results

    def _known(self, given: Sequence[Any]) -> EngineCall | None:
        """What runs these arguments, where it is there."""
        call = self._calls.get(self._key(given))
        return call if call and call.weights.same(given) and call.fits(given) else None

    def _key(self, given: Sequence[Any]) -> tuple[int, ...]:
        numbers = [given[number] for number in self._loose]
        return tuple(numbers + [given[number].shape[axis] for number, axis in self._axes])

    def _made(self, given: Sequence[Any]) -> EngineCall | None:
        """What runs these arguments from now on; None where torch does."""
        with self._lock:
            if self._by_torch:
                return None
            known = self._known(given)  # another thread may have made it
            if known is not None:
                return known
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
        """An engine for these weights, at sizes among which are these: at them alone where an open
        one is refused. Raises: TilewrightError.
        """
        self._weights = self._held(given)
        made = graph_program(self._traced, self._weights.by_place)
        try:
            return self._compiled(made, given)
        except NotForEngines:
            raise
        except ModelError:
            if self._closed >= made.told.keys():
                raise
            kept, self._closed = self._closed, set(made.told)
            self._calls.clear()
            try:
                return self._compiled(made, given)
            except ModelError:
                self._closed = kept
            raise

    def _held(self, given: Sequence[Any]) -> HeldWeights:
        """The weights of a call; engines with others are given up."""
        changed = self._weights.changed(given)
        if changed:
            self._changes.update(changed)
            self._calls.clear()
        static = sorted(self._traced.static)
        return HeldWeights.of(given, [n for n in static if self._changes[n] < _PATIENCE])

    def _compiled(self, made: GraphProgram, given: Sequence[Any]) -> EngineCall:
        self._loose = tuple(made.loose)
        self._axes = tuple(axis for name, axis in made.told.items() if name in self._closed)
        key = self._key(given)
        if key not in self._calls and len(self._calls) >= _MOST:
            names = [*made.loose.values(), *sorted(self._closed & made.told.keys())]
            raise NotForEngines(
                f"the numbers {', '.join(names)} of calls had {_MOST} values",
                "a number that calls decide may be a tensor without axes.",
            )
        numbers = {name: given[number] for number, name in made.loose.items()}
        ranges = narrowed(self._traced.ranges, self._traced.facts, numbers)
        made = at_numbers(made, numbers, ranges)
        sizes = told_sizes(made.told, given)
        bounds = bounds_for(ranges, made.told, sizes, self._bounds.get(key, {}))
        bounds |= {name: (size,) * 3 for name, size in sizes.items() if name in self._closed}
        options = self._options
        engine = compile_engine(
            made.program,
            shapes=dict(bounds),
            strict=options.strict,
            verify=options.verify,
            tolerance=options.tolerance,
            cache=options.cache,
            precision=options.precision,
            calibration=options.known_calibration,
        )
        if engine.interface.data_decides:
            raise NotForEngines("data decide the size of a result", "torch runs such graphs.")
        self._bounds[key] = bounds
        weights = self._weights
        call = self._calls[key] = EngineCall(engine, made, bounds, weights, options.threads)
        self._tell(GraphOutcome(self._traced, engine, None, len(weights.places)))
        return call


def _said(traced: TracedGraph, error: TilewrightError) -> str:
    """Why torch runs a graph: each node where there are some."""
    refuse = "options={'fallback': 'refuse'} makes an error of it."
    return (
        f"torch runs the graph '{traced.name}', which tilewright cannot compile: {error}\n{refuse}"
    )
