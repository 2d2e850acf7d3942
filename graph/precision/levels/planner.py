"""Which layers of a model may multiply bytes within a budget of accuracy.

As NNCF's accuracy control does it, layers that read the same levels are given up together, the
worst first; but a choice is tried by the switches of one engine (`Simulation`), and how many have
to go is found by halving, so that the budget is asked a few times and not once for each layer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....runtime.model.precision_report import SliceScore
from ...types import Array
from ..accuracy import Evaluation, Outputs, normalised_error
from ..layers import Layer
from .simulation import Simulation

Run = Callable[[Mapping[str, Array]], Outputs]
Switches = NDArray[np.float32]

_RANKED_BY = 16  # items of the data, at most


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Layers that read the same levels. alone: the error of the outputs where they alone multiply
    bytes, as a share of the outputs' power.
    """

    layers: tuple[Layer, ...]
    alone: float


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """The layers that multiply bytes, and those that were given up, the worst first.

    found: the scores of the choice, by the simulation. errors: what bytes change in the result of
    each layer alone, as a share of its power, by name. notes: what the search met.
    """

    layers: tuple[Layer, ...]
    given_up: tuple[LayerGroup, ...]
    found: tuple[SliceScore, ...]
    errors: Mapping[str, float]
    notes: tuple[str, ...] = ()


class PrecisionSearch:
    """Searches with the engine of a simulation."""

    def __init__(
        self,
        layers: Sequence[Layer],
        simulation: Simulation,
        run: Run,
        evaluation: Evaluation,
    ) -> None:
        self._layers = tuple(layers)
        self._simulation = simulation
        self._run = run
        self._evaluation = evaluation
        self._end = time.monotonic() + evaluation.accuracy.seconds
        self._notes: list[str] = []
        self._groups: list[LayerGroup] = []  # ranked, once somebody has asked
        self._places = {layer.result: n for n, layer in enumerate(self._layers)}

    def choice(self) -> LayerChoice:
        """The largest choice of layers that was found to keep the budget."""
        errors = self._local_errors()
        found = self._compared(self._layers)
        if self._evaluation.is_within(found):
            return LayerChoice(self._layers, (), found, errors)
        groups = self._ranked(errors)
        count = self._fewest(groups)
        kept = self._put_back(groups, count)
        layers = self._without(kept)
        return LayerChoice(layers, kept, self._compared(layers), errors, tuple(self._notes))

    def with_less(self, choice: LayerChoice) -> LayerChoice:
        """The choice without its worst group."""
        worst, *_ = [one for one in self._ranked(choice.errors) if one not in choice.given_up]
        given_up = (*choice.given_up, worst)
        layers = self._without(given_up)
        return LayerChoice(layers, given_up, self._compared(layers), choice.errors, choice.notes)

    def _fewest(self, groups: Sequence[LayerGroup]) -> int:
        """How many of the worst groups have to go, at least, as halving finds it."""
        low, high = 0, len(groups)  # too few; enough, since then all are floats
        while high - low > 1:
            middle = (low + high) // 2
            if self._is_enough(groups[:middle]):
                high = middle
            else:
                low = middle
        return high

    def _put_back(self, groups: Sequence[LayerGroup], count: int) -> tuple[LayerGroup, ...]:
        """Those of the worst groups that are needed: others come back, the least harmful first."""
        kept = list(groups[:count])
        for group in reversed(groups[: count - 1]):
            if self._is_late():
                self._notes.append(
                    f"the search ended after {self._evaluation.accuracy.seconds:g} s: some layers "
                    "that stay float might not have to"
                )
                break
            fewer = [one for one in kept if one is not group]
            if self._is_enough(fewer):
                kept = fewer
        return tuple(kept)

    def _ranked(self, errors: Mapping[str, float]) -> list[LayerGroup]:
        """The groups, the worst first: by what each alone does to the outputs, or, where time ends,
        to its own result.
        """
        if self._groups:
            return self._groups
        by_data: dict[str, list[Layer]] = {}
        for layer in self._layers:
            by_data.setdefault(layer.data, []).append(layer)
        groups = []
        for members in by_data.values():
            if self._is_late(0.5):
                alone = max(errors[layer.name] for layer in members)
            else:
                alone = self._alone(members)
            groups.append(LayerGroup(tuple(members), alone))
        if self._is_late(0.5):
            self._notes.append(
                "the layers were ranked in part by what bytes change in their results"
            )
        self._groups = sorted(groups, key=lambda group: -group.alone)
        return self._groups

    def _alone(self, layers: Iterable[Layer]) -> float:
        switches, few = self._switches(layers), self._evaluation.items[:_RANKED_BY]
        exact = self._evaluation.exact_outputs
        errors = [
            normalised_error(exact[n], self._outputs(item.inputs, switches))
            for n, item in enumerate(few)
        ]
        return float(np.mean(errors))

    def _local_errors(self) -> dict[str, float]:
        """What bytes change in each result, where all in front of it are floats."""
        off = np.zeros((len(self._layers), 2))
        for item in self._evaluation.items[:_RANKED_BY]:
            found = self._run(self._given(item.inputs, self._switches(())))
            pairs = zip(self._simulation.errors, self._simulation.powers, strict=True)
            off += [[float(found[one]), float(found[other])] for one, other in pairs]
        shares = off[:, 0] / np.where(off[:, 1] > 0, off[:, 1], 1)
        return {layer.name: float(one) for layer, one in zip(self._layers, shares, strict=True)}

    def _is_enough(self, given_up: Sequence[LayerGroup]) -> bool:
        return self._evaluation.is_within(self._compared(self._without(given_up)))

    def _without(self, given_up: Sequence[LayerGroup]) -> tuple[Layer, ...]:
        gone = {layer.result for group in given_up for layer in group.layers}
        return tuple(layer for layer in self._layers if layer.result not in gone)

    def _compared(self, layers: Iterable[Layer]) -> tuple[SliceScore, ...]:
        switches = self._switches(layers)
        items = self._evaluation.items
        return self._evaluation.compared([self._outputs(item.inputs, switches) for item in items])

    def _outputs(self, inputs: Mapping[str, Array], switches: Switches) -> Outputs:
        found = self._run(self._given(inputs, switches))
        inner = {*self._simulation.errors, *self._simulation.powers}
        return {name: array for name, array in found.items() if name not in inner}

    def _given(self, inputs: Mapping[str, Array], switches: Switches) -> dict[str, Array]:
        return {**inputs, self._simulation.switches: switches}

    def _switches(self, layers: Iterable[Layer]) -> Switches:
        switches = np.zeros(len(self._layers), np.float32)
        for layer in layers:
            switches[self._places[layer.result]] = 1
        return switches

    def _is_late(self, share: float = 1.0) -> bool:
        left = self._end - time.monotonic()
        return left < (1 - share) * self._evaluation.accuracy.seconds
