"""Build an engine whose products multiply bytes, as far as that pays and a budget allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...driver.backends.table import backend_of
from ...runtime.engine.engine import Engine
from ...runtime.log import log
from ...tir.errors import InternalError, known_names
from ...tir.target.target import Target, covers
from ..errors import ModelError
from ..ir.ir import Graph
from ..passes.integer_products import IntegerProducts
from ..passes.pipeline import optimise
from ..types import Array
from .accuracy import Accuracy, AccuracyError, Evaluation, SliceScore
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
_SLOWER = 1.05  # times the float kernels, so that noise decides nothing


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
    """The engine, and what is to be said of its precision, line by line."""

    engine: Engine
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Seconds of the kernels of a layer, with those that only make its levels."""

    floats: float
    bytes: float

    def __str__(self) -> str:
        return f"{self.bytes * 1e6:.1f} us, in floats {self.floats * 1e6:.1f} us"


def byte_engine(
    imported: Graph,
    target: Target,
    request: ByteRequest,
    build: Build,
    tell: Callable[[str], object],
) -> ByteEngine:
    """Build it. build: makes an engine of a graph for the target.

    Without an accuracy all layers that can multiply bytes do. With one, those do that together keep
    its budget, and whose kernels are not slower than those of floats, both timed here.
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
        said = {layer.name: "bytes" for layer in layers}
        return ByteEngine(engine, self._notes(layers, said))

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
                    if times[layer.name].bytes > _SLOWER * times[layer.name].floats
                }
                if slow:
                    continue
            found = evaluation.compared([engine.run(item.inputs) for item in evaluation.items])
            if evaluation.is_within(found):
                break
            if self.request.is_auto and others != "float32":
                dropped = [f"precision: {others} of other products was given up for the budget"]
                others = "float32"
            elif chosen:
                choice = search.with_less(choice)
            else:
                break
        remarks = [*dropped, *(f"precision: {note}" for note in choice.notes)]
        remarks += _scores(accuracy, found)
        if not chosen:
            why = f"accuracy: {_why_none(choice, accuracy)}: the engine computes in float32"
            log.warning("compile: %s", why)
            remarks.append(why)
        said = _layer_notes(choice, chosen, times, slow)
        return ByteEngine(engine, self._notes(chosen, said, remarks))

    def _built(self, layers: tuple[Layer, ...], others: Others) -> Engine:
        known = self.request.calibration
        graph = with_levels(self.prepared, layers, known.ranges, known.channel_means)
        return self.build(graph, True, others)

    def _notes(
        self, layers: tuple[Layer, ...], said: Mapping[str, str], remarks: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Lines of all, then of each product in the order of the model."""
        all_said = {**said, **{one.name: f"float32: {one.why}" for one in self.kept}}
        named = (node.name or node.outputs[0] for node in self.prepared.nodes)
        lines = [f"precision: '{name}': {all_said[name]}" for name in named if name in all_said]
        return (
            f"precision: {len(layers)} of {len(all_said)} products multiply bytes; "
            f"{self.request.calibration.title}",
            *remarks,
            *dict.fromkeys(lines),
        )

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


def _layer_notes(
    choice: LayerChoice,
    chosen: Sequence[Layer],
    times: Mapping[str, LayerTimes],
    slow: Mapping[str, LayerTimes],
) -> dict[str, str]:
    """What is said of each layer: its type, its error, its times, or why it stays float."""
    said = {layer.name: f"bytes: {{}}; {times[layer.name]}" for layer in chosen}
    for name, one in slow.items():
        said[name] = f"float32: {{}}; as bytes it is not faster: {one}"
    for group in choice.given_up:
        for layer in group.layers:
            said[layer.name] = (
                "float32: {}; given up for the budget: alone it changes the outputs by "
                f"{group.alone:.1e} of their power"
            )
    errors = choice.errors
    return {
        name: text.format(f"error {errors[name]:.1e} of the power of its result")
        for name, text in said.items()
    }


def _why_none(choice: LayerChoice, accuracy: Accuracy) -> str:
    """Why no product multiplies bytes."""
    if choice.layers:
        return "no product that keeps the budget is faster with bytes"
    return f"no product may multiply bytes within a drop of {accuracy.max_drop:g}"


def _scores(accuracy: Accuracy, found: Sequence[SliceScore]) -> list[str]:
    metric = accuracy.metric if isinstance(accuracy.metric, str) else "score"
    return [f"accuracy: {metric} of {one}" for one in found]
