"""Build an engine whose products multiply bytes, as far as that pays and a budget allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ....driver.backends.table import backend_of
from ....runtime.engine.engine import Engine
from ....runtime.log import log
from ....runtime.model.precision_report import (
    BYTES,
    FLOATS,
    LayerPrecision,
    LayerTimes,
    PrecisionReport,
)
from ....tir.target.target import Target
from ...ir.ir import Graph
from ...types import Array
from ..accuracy import Accuracy, AccuracyError, Evaluation
from ..layers import Layer
from .byte_model import ByteModel, BytePrices, ByteRequest, Others, byte_model
from .planner import LayerChoice, PrecisionSearch
from .simulation import simulated

Build = Callable[[Graph, bool, Others], Engine]  # is_final: checked as asked, else not at all

_ROUNDS = 3  # in turn, of which the best counts
_RUNS = 7  # of each launch in a round
_SLOWER = 1.05  # times the float kernels: what takes longer stays float, noise decides nothing


@dataclass(frozen=True, slots=True)
class ByteEngine:
    """The engine, and what its products compute with."""

    engine: Engine
    precision: PrecisionReport


def byte_engine(
    imported: Graph,
    target: Target,
    request: ByteRequest,
    prices: BytePrices,
    build: Build,
    tell: Callable[[str], object],
) -> ByteEngine:
    """Build it. prices: of layers on the target. build: makes an engine of a graph for it.

    Without an accuracy those layers that can multiply bytes do whose price that does not raise, or
    those that are named. With one, those do that together keep
    its budget, and whose kernels take at most 1.05 times as long as those of floats, both timed
    here.
    Raises: BytesError for targets on which bytes are never faster, and for names that are no such
    product; ModelError for a calibration of another model; AccuracyError.
    """
    tell("precision")
    job = _ByteJob(byte_model(imported, target, request, prices), target, request, build)
    return job.searched(tell) if request.accuracy else job.all_of()


@dataclass(frozen=True, slots=True)
class _ByteJob:
    model: ByteModel
    target: Target
    request: ByteRequest
    build: Build

    def all_of(self) -> ByteEngine:
        """The engine whose layers multiply bytes by price, or as they were named."""
        layers = self.model.layers
        engine = self._built(layers, self.request.others)
        found = [LayerPrecision(layer.name, BYTES) for layer in layers]
        return ByteEngine(engine, PrecisionReport(self._in_order(found), (self._title(found),)))

    def searched(self, tell: Callable[[str], object]) -> ByteEngine:
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
        model, others = self.model, self.request.others
        layers, exact = model.layers, self.build(model.prepared, False, "float32")
        evaluation = Evaluation(accuracy, model.prepared.inputs, exact.run)
        tell("search")
        simulation = simulated(model.prepared, layers, model.calibration.ranges)
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
        return self.build(self.model.with_levels(layers), True, others)

    def _title(self, found: Sequence[LayerPrecision]) -> str:
        """How many layers multiply bytes, and by which ranges."""
        count = sum(one.precision == BYTES for one in found)
        of = len(found) + len(self.model.kept)
        return f"{count} of {of} products multiply bytes; {self.model.calibration.title}"

    def _in_order(self, found: Sequence[LayerPrecision]) -> tuple[LayerPrecision, ...]:
        """These layers and those that cannot multiply bytes, in the order of the model."""
        kept = [
            LayerPrecision(one.name, FLOATS, one.why, times=one.times) for one in self.model.kept
        ]
        by_name = {one.layer: one for one in (*found, *kept)}
        named = dict.fromkeys(node.name or node.outputs[0] for node in self.model.prepared.nodes)
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
                narrow=min(narrow[layer.name] for _, narrow in rounds),
                floats=min(floats[layer.name] for floats, _ in rounds),
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
