"""What a model of narrower types may lose, and how that is measured: `tw.Accuracy`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...runtime.model.precision_report import SliceScore
from ...tir.errors import known_names
from ..errors import ModelError
from ..types import Array

Outputs = Mapping[str, Array]
Metric = Callable[[Outputs, object], object]  # outputs and what was expected -> score, or scores
Scores = NDArray[np.float64]

METRICS = ("top1", "agreement", "error")
_LOW_CONFIDENCE = 0.1  # of the samples, those whose two best classes are nearest


class AccuracyError(ModelError, ValueError):
    """An accuracy that is asked for cannot be measured."""


@dataclass(frozen=True, repr=False)
class Accuracy:
    """The budget of a choice of precision.

    metric: "top1", the share of samples whose largest number along the last axis of the first
    output is at the expected place; "agreement", the same beside what the model of floats says;
    "error", the sum of the squares of what is off over that of the outputs, as a loss; or a
    function of the outputs by name and what was expected that gives a score, or an array of the
    scores of samples, of which more is better. max_drop: by how much the mean of the scores may be
    below that of the model of floats. data: pairs of inputs, as `Engine.run` takes them or one
    array for a model of one input, and what is expected of them, or inputs alone where the metric
    needs no more; read once, and kept. slices: further parts of the data, each of which is held to
    the same drop: a function of inputs and expectation that says which samples belong to it.
    seconds: what the search may take, at most, beside builds.
    """

    metric: str | Metric = "top1"
    max_drop: float = 0.01
    data: Iterable[object] = ()
    slices: Mapping[str, Callable[[object, object], object]] = field(default_factory=dict)
    seconds: float = 300.0

    def __str__(self) -> str:
        name = self.metric if isinstance(self.metric, str) else "a metric of your own"
        parts = f", and so each of {', '.join(self.slices)}" if self.slices else ""
        return f"accuracy: {name}, at most {self.max_drop:g} below that of the floats{parts}"

    __repr__ = __str__

    def __post_init__(self) -> None:
        """Raises: AccuracyError."""
        if not callable(self.metric) and self.metric not in METRICS:
            raise AccuracyError(
                f"accuracy: metric {self.metric!r} is not known; expected a function, or one of "
                f"{known_names(str(self.metric), METRICS)}.",
                code="accuracy-metric",
            )
        if not 0 <= self.max_drop < np.inf:
            raise AccuracyError(
                f"accuracy: max_drop is {self.max_drop!r}; expected a number from 0 on.",
                code="accuracy-drop",
            )


@dataclass(frozen=True, slots=True)
class Item:
    """One element of the data: inputs by name, and what is expected."""

    inputs: Mapping[str, Array]
    expected: object


class Evaluation:
    """Measures models beside the model of floats on one set of data."""

    def __init__(
        self,
        accuracy: Accuracy,
        names: Sequence[str],
        exact: Callable[[Mapping[str, Array]], Outputs],
    ) -> None:
        """names: of the inputs of the model; exact: runs the model of floats.

        Raises: AccuracyError where there are no data, or they do not fit.
        """
        self.accuracy = accuracy
        self.items = [_item(one, names) for one in accuracy.data]
        if not self.items:
            raise AccuracyError(
                "accuracy: the data are empty; expected at least one pair of inputs and what is "
                "expected of them.",
                code="accuracy-data",
            )
        self.exact_outputs = [exact(item.inputs) for item in self.items]
        self.exact = self.scores(self.exact_outputs)
        self._slices = self._members()

    def scores(self, outputs: Sequence[Outputs]) -> list[Scores]:
        """The scores of each item. Raises: AccuracyError."""
        return [self._score(n, one) for n, one in enumerate(outputs)]

    def compared(self, outputs: Sequence[Outputs]) -> tuple[SliceScore, ...]:
        """The scores of outputs beside those of floats: of all data, then of each slice."""
        exact, narrow = (np.concatenate(one) for one in (self.exact, self.scores(outputs)))
        metric = self.accuracy.metric if isinstance(self.accuracy.metric, str) else "score"
        found = []
        for name, members, is_held in self._slices:
            if members.any():
                means = float(exact[members].mean()), float(narrow[members].mean())
                most = self.accuracy.max_drop if is_held else None
                found.append(SliceScore(metric, name, int(members.sum()), *means, most))
        return tuple(found)

    def is_within(self, found: Iterable[SliceScore]) -> bool:
        """Whether all that is held to the budget keeps it."""
        return all(one.is_within for one in found)

    def _score(self, number: int, outputs: Outputs) -> Scores:
        metric, item = self.accuracy.metric, self.items[number]
        if metric == "error":
            return np.array([-normalised_error(self.exact_outputs[number], outputs)])
        if callable(metric):
            found = np.atleast_1d(np.asarray(metric(outputs, item.expected), np.float64)).ravel()
        else:
            places = best_places(outputs)
            wanted = (
                best_places(self.exact_outputs[number])
                if metric == "agreement"
                else np.asarray(item.expected).ravel()
            )
            if places.shape != wanted.shape:
                raise AccuracyError(
                    f"accuracy: item {number} expects {wanted.size} places, and the first output "
                    f"has {places.size} rows; expected one for each.",
                    code="accuracy-expected",
                    hints=('metric="agreement" asks for no expectation.',),
                )
            found = (places == wanted).astype(np.float64)
        if not np.all(np.isfinite(found)):
            raise AccuracyError(
                f"accuracy: the metric gives {found} for item {number}; expected finite numbers.",
                code="accuracy-score",
            )
        return found

    def _members(self) -> list[tuple[str, NDArray[np.bool_], bool]]:
        """The name of each part of the data, its samples, and whether it is held to the budget."""
        counts = [one.size for one in self.exact]
        found = [("all", np.ones(sum(counts), np.bool_), True)]
        for name, belongs in self.accuracy.slices.items():
            parts = [
                np.broadcast_to(np.asarray(belongs(item.inputs, item.expected), np.bool_), count)
                for item, count in zip(self.items, counts, strict=True)
            ]
            found.append((name, np.concatenate(parts), True))
        if self.accuracy.metric in ("top1", "agreement"):
            margins = np.concatenate([best_margins(one) for one in self.exact_outputs])
            found.append(
                ("low confidence", margins <= np.quantile(margins, _LOW_CONFIDENCE), False)
            )
        return found


def _item(one: object, names: Sequence[str]) -> Item:
    """Raises: AccuracyError."""
    inputs, expected = one if isinstance(one, tuple) and len(one) == 2 else (one, None)
    if isinstance(inputs, Mapping):
        return Item({name: np.asarray(array) for name, array in inputs.items()}, expected)
    if len(names) != 1:
        raise AccuracyError(
            f"accuracy: an item of the data is {type(inputs).__name__}, and the model has the "
            f"inputs {', '.join(names)}; expected a mapping by name.",
            code="accuracy-item",
        )
    return Item({names[0]: np.asarray(inputs)}, expected)


def _rows(outputs: Outputs) -> Scores:
    first = np.asarray(next(iter(outputs.values())))
    return first.reshape(-1, first.shape[-1] if first.ndim else 1).astype(np.float64)


def best_places(outputs: Outputs) -> NDArray[np.int64]:
    """Where the largest number of each row of the first output is."""
    return np.asarray(np.argmax(_rows(outputs), axis=-1), np.int64)


def best_margins(outputs: Outputs) -> Scores:
    """How far the two largest numbers of each row of the first output are apart."""
    rows = _rows(outputs)
    if rows.shape[-1] < 2:
        return np.zeros(len(rows))
    best = np.partition(rows, -2, axis=-1)
    return best[:, -1] - best[:, -2]


def normalised_error(exact: Outputs, narrow: Outputs) -> float:
    """The sum of the squares of the difference over that of the outputs, of all floats together."""
    off = power = 0.0
    for name, array in exact.items():
        if array.dtype.kind == "f":
            wide = array.astype(np.float64)
            off += float(np.sum((narrow[name].astype(np.float64) - wide) ** 2))
            power += float(np.sum(wide**2))
    return off / power if power else float(off > 0)
