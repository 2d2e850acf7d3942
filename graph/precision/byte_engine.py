"""Build an engine whose products multiply bytes, as far as that pays and a budget allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...driver.backends.table import backend_of
from ...runtime.engine.engine import Engine
from ...runtime.log import log
from ...runtime.model.precision_report import (
    BYTES,
    FLOATS,
    LayerPrecision,
    LayerTimes,
    PrecisionReport,
)
from ...tir.errors import InternalError, known_names
from ...tir.target.target import Target, covers
from ..errors import ModelError
from ..ir.ir import Graph
from ..passes.integer_products import IntegerProducts
from ..passes.pipeline import optimise
from ..types import Array
from .accuracy import Accuracy, AccuracyError, Evaluation
from .channel_factors import ChannelDivision
from .layers import KeptLayer, Layer, find_layers
from .level_form import with_levels
from .planner import LayerChoice, PrecisionSearch
from .prepared import prepared_graph
from .simulation import simulated

if TYPE_CHECKING:
    from .calibration import Calibration

Others = str | Mapping[str, str]  # the precision of products that multiply no bytes
Build = Callable[[Graph, bool, Others], Engine]  # is_final: checked as asked, else not at all

_ROUNDS = 3  # in turn, of which the best counts
_RUNS = 7  # of each launch in a round
_SLOWER = 1.05  # times the float kernels: what takes longer stays float, noise decides nothing


class BytesError(ModelError):
    """A model cannot multiply bytes on a target, or not where that is asked for."""


@dataclass(frozen=True, slots=True)
class ByteRequest:
    """What is asked for. names: the products that are to multiply bytes; None: all that can.
    others: the precision of other products; is_auto: which float32 may take the place of.
    is_checked: whether what is done to the graph in front of that is compared on random numbers.
    """

    calibration: Calibration
    accuracy: Accuracy | None = None
    names: frozenset[str] | None = None
    others: Others = "float32"
    is_auto: bool = False
    is_checked: bool = True


@dataclass(frozen=True, slots=True)
class ByteEngine:
    """The engine, and what its products compute with."""

    engine: Engine
    precision: PrecisionReport


def byte_engine(
    imported: Graph,
    target: Target,
    request: ByteRequest,
    build: Build,
    tell: Callable[[str], object],
) -> ByteEngine:
    """Build it. build: makes an engine of a graph for the target.

    Without an accuracy all layers that can multiply bytes do. With one, those do that together keep
    its budget, and whose kernels take at most 1.05 times as long as those of floats, both timed
    here.
    Raises: BytesError for targets on which bytes are never faster, and for names that are no such
    product; ModelError for a calibration of another model; AccuracyError.
    """
    if not any(covers((target.instructions,), one) for one in IntegerProducts.needs):
        raise BytesError(
            f"compile: precision='int8' for the target '{target}', whose products of bytes are "
            f"slower than those of floats; expected {' or '.join(IntegerProducts.needs)}.",
            code="bytes-target",
            hints=("leave out precision: the engine computes in float32.",),
        )
    tell("precision")
    prepared = prepared_graph(imported, check=request.is_checked)
    request.calibration.check_fits(prepared)
    prepared = _divided(prepared, request)
    layers, kept = _named(*find_layers(prepared), request.names)
    layers, without = _with_ranges(layers, request.calibration)
    job = _ByteJob(prepared, target, request, build, (*kept, *without))
    return job.searched(layers, tell) if request.accuracy else job.all_of(layers)


def _divided(prepared: Graph, request: ByteRequest) -> Graph:
    """The graph with its channels divided as the calibration says. Raises: InternalError where it
    does not compute the same.
    """
    divide = ChannelDivision(request.calibration.factors)
    graph, (report,) = optimise(prepared, (divide,), check=request.is_checked)
    if report.verdict == "undone":
        raise InternalError(
            f"compile: dividing channels changed the model: {report.problem}.",
            code="bytes-divided",
        )
    return graph


def _named(
    layers: tuple[Layer, ...], kept: tuple[KeptLayer, ...], names: frozenset[str] | None
) -> tuple[tuple[Layer, ...], tuple[KeptLayer, ...]]:
    """Those of some names. Raises: BytesError."""
    if names is None:
        return layers, kept
    by_name = {layer.name: layer for layer in layers} | {layer.result: layer for layer in layers}
    reasons = {one.name: one.why for one in kept}
    for name in sorted(names - by_name.keys()):
        known = known_names(name, (layer.name for layer in layers))
        why = f"{reasons[name]}" if name in reasons else "the model has no such product"
        raise BytesError(
            f"compile: precision names '{name}' for int8: {why}; known are {known}.",
            code="bytes-name",
        )
    wanted = {by_name[name].result for name in names}
    others = [KeptLayer(one.name, "not asked for") for one in layers if one.result not in wanted]
    return tuple(one for one in layers if one.result in wanted), (*kept, *others)


def _with_ranges(
    layers: Sequence[Layer], calibration: Calibration
) -> tuple[tuple[Layer, ...], tuple[KeptLayer, ...]]:
    ranges = calibration.ranges
    found = tuple(layer for layer in layers if layer.data in ranges)
    kept = [
        KeptLayer(layer.name, f"the calibration has no range of '{layer.data}'")
        for layer in layers
        if layer.data not in ranges
    ]
    return found, tuple(kept)


@dataclass(frozen=True, slots=True)
class _ByteJob:
    prepared: Graph
    target: Target
    request: ByteRequest
    build: Build
    kept: tuple[KeptLayer, ...]

    def all_of(self, layers: tuple[Layer, ...]) -> ByteEngine:
        """The engine whose layers all multiply bytes."""
        engine = self._built(layers, self.request.others)
        found = [LayerPrecision(layer.name, BYTES) for layer in layers]
        return ByteEngine(engine, PrecisionReport(self._in_order(found), (self._title(found),)))

    def searched(self, layers: tuple[Layer, ...], tell: Callable[[str], object]) -> ByteEngine:
        """The engine whose layers multiply bytes where the budget allows it and that pays."""
        accuracy = self.request.accuracy
        assert accuracy is not None
        why = backend_of(self.target).why_not_run(self.target)
        if why is not None:
            raise AccuracyError(
                f"compile: an accuracy is measured here, and {why}; expected a target that this "
                "machine runs.",
                code="accuracy-target",
                hints=("without accuracy=... all products that can multiply bytes do.",),
            )
        exact, others = self.build(self.prepared, False, "float32"), self.request.others
        evaluation = Evaluation(accuracy, self.prepared.inputs, exact.run)
        tell("search")
        simulation = simulated(self.prepared, layers, self.request.calibration.ranges)
        run = self.build(simulation.graph, False, "float32").run
        search = PrecisionSearch(layers, simulation, run, evaluation)
        choice, slow = search.choice(), dict[str, LayerTimes]()
        times, dropped = dict[str, LayerTimes](), list[str]()
        tell("measure")
        while True:
            chosen = tuple(one for one in choice.layers if one.name not in slow)
            engine = self._built(chosen, others)
            if chosen and not slow:
                times = self._times(layers, exact, engine, evaluation)
                slow = {
                    layer.name: times[layer.name]
                    for layer in chosen
                    if times[layer.name].narrow > _SLOWER * times[layer.name].floats
                }
                if slow:
                    continue
            found = evaluation.compared([engine.run(item.inputs) for item in evaluation.items])
            if evaluation.is_within(found):
                break
            if self.request.is_auto and others != "float32":
                dropped = [f"{others} of other products was given up for the budget"]
                others = "float32"
            elif chosen:
                choice = search.with_less(choice)
            else:
                break
        layers_found = _found_layers(choice, chosen, times, slow)
        remarks, none = [self._title(layers_found), *dropped, *choice.notes], list[str]()
        if not chosen:
            none = [f"{_why_none(choice, accuracy)}: the engine computes in float32"]
            log.warning("compile: accuracy: %s", *none)
        report = PrecisionReport(self._in_order(layers_found), tuple(remarks), found, tuple(none))
        return ByteEngine(engine, report)

    def _built(self, layers: tuple[Layer, ...], others: Others) -> Engine:
        known = self.request.calibration
        graph = with_levels(self.prepared, layers, known.ranges, known.channel_means)
        return self.build(graph, True, others)

    def _title(self, found: Sequence[LayerPrecision]) -> str:
        """How many layers multiply bytes, and by which ranges."""
        count = sum(one.precision == BYTES for one in found)
        of = len(found) + len(self.kept)
        return f"{count} of {of} products multiply bytes; {self.request.calibration.title}"

    def _in_order(self, found: Sequence[LayerPrecision]) -> tuple[LayerPrecision, ...]:
        """These layers and those that cannot multiply bytes, in the order of the model."""
        kept = [LayerPrecision(one.name, FLOATS, one.why) for one in self.kept]
        by_name = {one.layer: one for one in (*found, *kept)}
        named = dict.fromkeys(node.name or node.outputs[0] for node in self.prepared.nodes)
        return tuple(by_name[name] for name in named if name in by_name)

    def _times(
        self, layers: Sequence[Layer], exact: Engine, engine: Engine, evaluation: Evaluation
    ) -> dict[str, LayerTimes]:
        """The seconds of each layer in both engines, on the first item of the data."""
        inputs = evaluation.items[0].inputs
        rounds = [
            [_seconds(one, inputs, layers) for one in (exact, engine)] for _ in range(_ROUNDS)
        ]
        return {
            layer.name: LayerTimes(
                min(floats[layer.name] for floats, _ in rounds),
                min(narrow[layer.name] for _, narrow in rounds),
            )
            for layer in layers
        }


def _seconds(
    engine: Engine, inputs: Mapping[str, Array], layers: Sequence[Layer]
) -> dict[str, float]:
    """Seconds of the launches that compute each layer, or make levels for it alone."""
    by_node = {layer.name: layer.name for layer in layers}
    by_data = {layer.data: layer.name for layer in layers}
    found = dict.fromkeys(by_node, 0.0)
    for step in engine.profile(inputs, rounds=_RUNS).steps:
        parts = set(step.label.split(", "))
        owners = {by_node[part] for part in parts if part in by_node}
        if not owners and parts <= by_data.keys():
            owners = {by_data[part] for part in parts}
        for owner in owners:
            found[owner] += step.seconds / len(owners)
    return found


def _found_layers(
    choice: LayerChoice,
    chosen: Sequence[Layer],
    times: Mapping[str, LayerTimes],
    slow: Mapping[str, LayerTimes],
) -> list[LayerPrecision]:
    """What became of each layer: its type, its error, its times, or why it stays float."""
    errors = choice.errors
    found = {
        name: LayerPrecision(name, BYTES, "", errors[name], times[name])
        for name in (layer.name for layer in chosen)
    }
    for name, one in slow.items():
        why = "slower with bytes"
        found[name] = LayerPrecision(name, FLOATS, why, errors[name], one)
    for group in choice.given_up:
        why = (
            "given up for the budget: alone it changes the outputs by "
            f"{group.alone:.1e} of their power"
        )
        for name in (layer.name for layer in group.layers):
            found[name] = LayerPrecision(name, FLOATS, why, errors[name])
    return list(found.values())


def _why_none(choice: LayerChoice, accuracy: Accuracy) -> str:
    """Why no product multiplies bytes."""
    if choice.layers:
        return "all products that keep the budget are slower with bytes"
    return f"no product may multiply bytes within a drop of {accuracy.max_drop:g}"
