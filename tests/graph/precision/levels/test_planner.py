"""The search for layers that may multiply bytes, on a model whose loss is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tilewright.graph.ir.ir import GraphNode
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.precision.accuracy import Accuracy, Evaluation
from tilewright.graph.precision.layers import Layer
from tilewright.graph.precision.levels.planner import PrecisionSearch
from tilewright.graph.precision.levels.simulation import Simulation
from tilewright.graph.types import Array

NAMES = "abcdef"


class Model:
    """A model whose output is off by what the layers that multiply bytes lose, each for itself.

    data: of each layer what it reads. losses: of each layer. together: what some layers lose more
    where all of them multiply bytes.
    """

    def __init__(
        self, losses: Sequence[float], data: str = NAMES, together: tuple[str, float] = ("", 0.0)
    ) -> None:
        self.losses = np.array(losses)
        self.together = together
        self.layers = [
            Layer(GraphNode(MatMul(), (one, f"w{n}"), (f"y{n}",), NAMES[n]), 1)
            for n, one in enumerate(data[: len(losses)])
        ]
        self.runs = 0

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self.runs += 1
        switches = np.asarray(inputs["switches"])
        members, more = self.together
        is_on = all(switches[NAMES.index(one)] for one in members)
        off = np.sqrt(np.sum(switches * self.losses) + more * is_on)
        found = {"y": np.array([1.0 + off], np.float32)}
        for n, loss in enumerate(self.losses):
            found |= {f"e{n}": np.float32(loss), f"p{n}": np.float32(2)}
        return found

    def search(self, max_drop: float, seconds: float = 60.0) -> PrecisionSearch:
        count = len(self.losses)
        simulation = Simulation(
            None,  # type: ignore[arg-type]  # only its engine would look at it
            "switches",
            tuple(f"e{n}" for n in range(count)),
            tuple(f"p{n}" for n in range(count)),
        )
        accuracy = Accuracy("error", max_drop, [np.zeros(1, np.float32)], seconds=seconds)
        exact = {"y": np.array([1.0], np.float32)}
        evaluation = Evaluation(accuracy, ("x",), lambda _: exact)
        return PrecisionSearch(self.layers, simulation, self.run, evaluation)


def names(layers: Sequence[Layer]) -> str:
    return "".join(layer.name for layer in layers)


def test_all_layers_where_the_budget_allows_it() -> None:
    model = Model([0.01, 0.02, 0.03])
    choice = model.search(0.07).choice()
    assert (names(choice.layers), choice.given_up) == ("abc", ())
    assert choice.errors == {
        "a": pytest.approx(0.005),
        "b": pytest.approx(0.01),
        "c": pytest.approx(0.015),
    }
    assert [one.drop for one in choice.found] == pytest.approx([0.06])


def test_the_worst_are_given_up_and_no_more_than_that() -> None:
    choice = Model([0.01, 0.2, 0.03, 0.5, 0.02]).search(0.07).choice()
    assert names(choice.layers) == "ace"
    assert [names(group.layers) for group in choice.given_up] == ["d", "b"]
    assert [group.alone for group in choice.given_up] == pytest.approx([0.5, 0.2])


def test_what_halving_gave_up_too_much_comes_back() -> None:
    # c and d are bad together: without a, b and c little is lost, and b may return
    choice = Model([0.3, 0.06, 0.05, 0.04], together=("cd", 0.5)).search(0.12).choice()
    assert names(choice.layers) == "bd"
    assert [names(group.layers) for group in choice.given_up] == ["a", "c"]


def test_layers_that_read_the_same_levels_are_given_up_together() -> None:
    choice = Model([0.01, 0.3, 0.01, 0.02], "xyyz").search(0.05).choice()
    assert names(choice.layers) == "ad"
    assert [names(group.layers) for group in choice.given_up] == ["bc"]


def test_none_is_left_where_each_loses_too_much() -> None:
    choice = Model([0.1, 0.2, 0.3]).search(0.05).choice()
    assert choice.layers == ()
    assert len(choice.given_up) == 3
    assert choice.found[0].drop == 0


def test_a_choice_that_the_engine_does_not_keep_loses_its_worst_group() -> None:
    search = Model([0.01, 0.02, 0.03]).search(0.07)
    first = search.choice()
    second = search.with_less(first)
    assert names(second.layers) == "ab"
    assert names(search.with_less(second).layers) == "a"


def test_the_search_asks_for_the_metric_a_few_times_only() -> None:
    model = Model([0.001] * 5 + [0.9])
    model.search(0.01).choice()
    # errors, all at once, each alone, halving, what comes back, the result
    assert model.runs <= 1 + 1 + 6 + 3 + 1 + 1


def test_where_time_ends_layers_are_ranked_by_their_own_errors_and_that_is_told() -> None:
    choice = Model([0.01, 0.2, 0.03]).search(0.07, seconds=0).choice()
    assert names(choice.layers) == "ac"
    assert choice.notes == ("the layers were ranked in part by what bytes change in their results",)
    late = Model([0.4, 0.07, 0.06, 0.06]).search(0.05, seconds=0).choice()
    assert late.notes[-1] == (
        "the search ended after 0 s: some layers that stay float might not have to"
    )
