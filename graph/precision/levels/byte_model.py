"""A model of floats with the products that are to multiply bytes: which those are, and the graph
that has their levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ....runtime.model.precision_report import LayerTimes
from ....tir.errors import InternalError, known_names
from ....tir.target.target import Target, covers
from ...errors import ModelError
from ...ir.ir import Graph, GraphNode, make_graph
from ...passes.integer_products import IntegerProducts
from ...passes.pipeline import optimise
from ..accuracy import Accuracy
from ..channels.channel_factors import ChannelDivision, rescaled
from ..halves import PAIRS
from ..layers import KeptLayer, Layer, find_layers
from ..prepared import prepared_graph
from .level_form import with_levels

if TYPE_CHECKING:
    from ..calibration.calibration import Calibration

Others = str | Mapping[str, str]  # the precision of products that multiply no bytes


class BytePrices(Protocol):
    """Says what a product takes where nothing is timed."""

    def times(self, floats: Graph, with_levels: Callable[[], Graph]) -> LayerTimes | None:
        """Seconds of the one product as it is and with levels; None where bytes always pay."""


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

    @staticmethod
    def of(
        precision: str | Mapping[str, str],
        calibration: Calibration,
        target: Target,
        accuracy: Accuracy | None = None,
        *,
        is_checked: bool = True,
    ) -> ByteRequest:
        """What the options of a compile for a target ask for."""
        how = (calibration, accuracy)
        if precision == "auto":
            others = "bfloat16" if covers((target.instructions,), PAIRS) else "float16"
            return ByteRequest(*how, None, others, is_auto=True, is_checked=is_checked)
        if isinstance(precision, str):
            return ByteRequest(*how, is_checked=is_checked)
        named = {name: kind for name, kind in precision.items() if kind != "int8"}
        names = frozenset(precision.keys() - named.keys())
        return ByteRequest(*how, names, named or "float32", is_checked=is_checked)


@dataclass(frozen=True, slots=True)
class ByteModel:
    """A prepared graph, its layers that may multiply bytes, and those that may not."""

    prepared: Graph
    layers: tuple[Layer, ...]
    kept: tuple[KeptLayer, ...]
    calibration: Calibration

    def with_levels(self, layers: Sequence[Layer]) -> Graph:
        """The graph of which these of the layers multiply bytes."""
        known = self.calibration
        return with_levels(self.prepared, layers, known.ranges, known.channel_means)


def byte_model(
    imported: Graph, target: Target, request: ByteRequest, prices: BytePrices
) -> ByteModel:
    """The layers of a model that a request means, on the graph on which precision is decided.

    Where it asks for all and has no accuracy, so that nothing is timed, those whose price in floats
    is lower stay floats. Prices depend on the target alone, whatever a log knows: a model has the
    same products when it is tuned and when it is compiled with what that found.
    Raises: BytesError for targets on which bytes are never faster, and for names that are no such
    product; ModelError for a calibration of another model.
    """
    if not any(covers((target.instructions,), one) for one in IntegerProducts.needs):
        raise BytesError(
            f"compile: precision='int8' for the target '{target}', whose products of bytes are "
            f"slower than those of floats; expected {' or '.join(IntegerProducts.needs)}.",
            code="bytes-target",
            hints=("leave out precision: the engine computes in float32.",),
        )
    prepared = prepared_graph(imported, check=request.is_checked)
    known = request.calibration.fitted(prepared)
    request = replace(request, calibration=known)
    prepared = _divided(prepared, request)
    layers, kept = _named(*find_layers(prepared), request.names)
    if known.weights == "tensor":
        layers = tuple(replace(layer, is_by_tensor=True) for layer in layers)
    layers, without = _with_ranges(layers, known)
    slower = tuple[KeptLayer, ...]()
    if request.names is None and request.accuracy is None:
        layers, slower = _paying(prepared, layers, known, prices)
    return ByteModel(prepared, layers, (*kept, *without, *slower), known)


def _divided(prepared: Graph, request: ByteRequest) -> Graph:
    """The graph with its channels divided as the calibration says. Raises: InternalError where it
    is checked and does not compute the same.
    """
    factors = request.calibration.factors
    if request.is_checked:
        _, (report,) = optimise(prepared, (ChannelDivision(factors),))
        if report.verdict == "undone":
            raise InternalError(
                f"compile: dividing channels changed the model: {report.problem}.",
                code="bytes-divided",
            )
    return rescaled(prepared, factors)


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


def _paying(
    prepared: Graph, layers: Sequence[Layer], calibration: Calibration, prices: BytePrices
) -> tuple[tuple[Layer, ...], tuple[KeptLayer, ...]]:
    """Those whose bytes are no slower than floats, and the others."""
    known: dict[object, LayerTimes | None] = {}
    found, kept = list[Layer](), list[KeptLayer]()
    for layer in layers:
        lone = _alone(prepared, layer)
        key = (layer.node.op, *lone.types.values())
        if key not in known:
            known[key] = prices.times(lone, partial(_levels_alone, lone, layer, calibration))
        times = known[key]
        if times is None or times.narrow <= times.floats:
            found.append(layer)
        else:
            kept.append(KeptLayer(layer.name, "slower with bytes", times))
    return tuple(found), tuple(kept)


def _alone(prepared: Graph, layer: Layer) -> Graph:
    """A product without its bias as a graph."""
    data, weights = layer.data, layer.weights
    node = GraphNode(layer.node.op, (data, weights), (layer.result,))
    types = {data: prepared.types[data]}
    return make_graph("layer", types, node.outputs, (node,), {weights: prepared.constants[weights]})


def _levels_alone(lone: Graph, layer: Layer, calibration: Calibration) -> Graph:
    (node,) = lone.nodes
    return with_levels(lone, (replace(layer, node=node),), calibration.ranges)
