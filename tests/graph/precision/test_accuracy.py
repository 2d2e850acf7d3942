"""tw.Accuracy: what is measured, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.precision.accuracy import (
    AccuracyError,
    Evaluation,
    best_margins,
    normalised_error,
)
from tilewright.graph.types import Array

SCORES = np.array([[3, 1, 0], [0, 2, 1.9], [1, 0, 4]], np.float32)  # the best: 0, 1, 2


def exact(inputs: Mapping[str, Array]) -> dict[str, Array]:
    return {"y": np.asarray(inputs["x"])}


def evaluated(accuracy: tw.Accuracy) -> Evaluation:
    return Evaluation(accuracy, ("x",), exact)


def refused(make: Callable[[], object]) -> str:
    with pytest.raises(AccuracyError) as error:
        make()
    return str(error.value)


def test_top1_is_the_share_of_the_expected_places() -> None:
    evaluation = evaluated(tw.Accuracy("top1", 0.4, [(SCORES, [0, 1, 1])]))
    other = np.array([[0, 1, 0], [0, 1, 9], [0, 9, 0]], np.float32)  # the best: 1, 2, 1
    whole, unsure = evaluation.compared([{"y": other}])
    assert (whole.name, whole.count, whole.most_drop) == ("all", 3, 0.4)
    assert (whole.exact, whole.narrow) == pytest.approx((2 / 3, 1 / 3))
    assert evaluation.is_within([whole]) is True
    assert str(whole) == (
        "top1 of all: 0.333333, in float32 0.666667; 3 samples, at most 0.4 lower"
    )
    # the two best of the second row are nearest
    assert (unsure.name, unsure.count, unsure.exact, unsure.narrow) == ("low confidence", 1, 1, 0)
    assert str(unsure) == (
        "top1 of low confidence: 0, in float32 1; 1 samples, not held to the budget"
    )
    assert best_margins({"y": SCORES}) == pytest.approx([2, 0.1, 3])


def test_agreement_needs_no_expectation() -> None:
    evaluation = evaluated(tw.Accuracy("agreement", 0.01, [SCORES, {"x": SCORES[:1]}]))
    found = evaluation.compared([{"y": SCORES[::-1]}, {"y": SCORES[:1]}])
    assert (found[0].exact, found[0].narrow, found[0].count) == (1, 0.5, 4)
    assert not evaluation.is_within(found)


def test_an_error_is_a_share_of_the_power_and_a_loss() -> None:
    evaluation = evaluated(tw.Accuracy("error", 0.01, [SCORES]))
    found = evaluation.compared([{"y": SCORES * np.float32(1.1)}])
    assert found[0].exact == 0
    assert found[0].drop == pytest.approx(0.01, rel=1e-5)
    assert normalised_error({"y": np.zeros(2, np.float32)}, {"y": np.ones(2, np.float32)}) == 1


def test_a_function_gives_scores_and_slices_hold_some_of_them_to_the_budget() -> None:
    accuracy = tw.Accuracy(
        lambda outputs, expected: outputs["y"][:, 0] * expected,
        0.5,
        [(SCORES, 2.0), (SCORES[:1], 1.0)],
        {"small": lambda inputs, _: inputs["x"][:, 0] < 1, "none": lambda *_: False},
    )
    evaluation = evaluated(accuracy)
    lower = SCORES.copy()
    lower[1, 0] -= 0.4
    found = evaluation.compared([{"y": lower}, {"y": SCORES[:1]}])
    assert [(one.name, one.count) for one in found] == [("all", 4), ("small", 1)]
    assert found[0].exact == pytest.approx((6 + 0 + 2 + 3) / 4)
    assert found[0].drop == pytest.approx(0.2)
    assert found[1].drop == pytest.approx(0.8)
    assert evaluation.is_within(found[:1])
    assert not evaluation.is_within(found)


def test_a_budget_shows_itself() -> None:
    assert str(tw.Accuracy("top1", 0.02)) == (
        "accuracy: top1, at most 0.02 below that of the floats"
    )
    own = tw.Accuracy(lambda *_: 1.0, slices={"edges": lambda *_: True})
    assert repr(own) == (
        "accuracy: a metric of your own, at most 0.01 below that of the floats, and so each of "
        "edges"
    )


def test_options_without_a_meaning_are_refused() -> None:
    assert refused(lambda: tw.Accuracy("top5")) == (
        "AccuracyError: accuracy: metric 'top5' is not known; expected a function, or one of "
        "'top1', 'agreement', 'error'. [accuracy-metric]"
    )
    assert refused(lambda: tw.Accuracy(max_drop=-0.1)) == (
        "AccuracyError: accuracy: max_drop is -0.1; expected a number from 0 on. [accuracy-drop]"
    )


def test_data_that_do_not_fit_are_refused() -> None:
    assert refused(lambda: evaluated(tw.Accuracy("error"))) == (
        "AccuracyError: accuracy: the data are empty; expected at least one pair of inputs and "
        "what is expected of them. [accuracy-data]"
    )
    accuracy = tw.Accuracy("error", data=[(SCORES, 1)])
    assert refused(lambda: Evaluation(accuracy, ("x", "mask"), exact)) == (
        "AccuracyError: accuracy: an item of the data is ndarray, and the model has the inputs "
        "x, mask; expected a mapping by name. [accuracy-item]"
    )
    assert refused(lambda: evaluated(tw.Accuracy("top1", data=[(SCORES, [1, 2])]))) == (
        "AccuracyError: accuracy: item 0 expects 2 places, and the first output has 3 rows; "
        "expected one for each. [accuracy-expected]\n"
        '  Hint: metric="agreement" asks for no expectation.'
    )
    accuracy = tw.Accuracy(lambda *_: np.nan, data=[SCORES])
    assert refused(lambda: evaluated(accuracy)) == (
        "AccuracyError: accuracy: the metric gives [nan] for item 0; expected finite numbers. "
        "[accuracy-score]"
    )
