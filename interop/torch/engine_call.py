"""Calls of an engine with tensors: they are read and written where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...graph.importers.fx.tensors import shown
from ...runtime.engine.engine import Engine
from .errors import NotForEngines
from .layout import inverse
from .program import GraphProgram, GraphResult
from .sizes import Bounds, evaluated, shape_at, told_sizes, value_at

_KEPT = 64  # choices of sizes whose results are known
_AGREE = "keys, values and masks of an attention have as many places."


@dataclass(frozen=True, slots=True)
class _Results:
    """What a call at some sizes takes and gives: the shape of each input of the engine, the shape
    and the type of each output, in order; by the place of their result numbers, and the shape, the
    strides and the offset of views.
    """

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[tuple[int, ...], Any], ...]
    numbers: Mapping[int, int | float | bool]
    views: Mapping[int, tuple[tuple[int, ...], tuple[int, ...], int]]


class EngineCall:
    """An engine, and how the arguments and results of a graph are its inputs and outputs."""

    def __init__(
        self,
        engine: Engine[Any],
        made: GraphProgram,
        bounds: Mapping[str, Bounds],
        threads: int | None,
    ) -> None:
        self._engine, self._threads = engine, threads
        self._made = made
        places = {one.name: (one.argument, one.order) for one in made.taken}
        self._taken = tuple(places[spec.name] for spec in engine.inputs)
        self._places = {spec.name: place for place, spec in enumerate(engine.outputs)}
        self._given = made.given
        self._axes = tuple((*made.told[name], low, high) for name, (low, _, high) in bounds.items())
        self._known: dict[tuple[int, ...], _Results] = {}
        self._plain = [
            one.output for one in made.given if one.order is None and one.view is None
        ] == list(self._places)
        self._restored = [inverse(one.order) if one.order else None for one in made.given]

    def fits(self, values: Sequence[Any]) -> bool:
        """Whether the engine is made for the sizes of a call."""
        return all(low <= values[n].shape[axis] <= high for n, axis, low, high in self._axes)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The results of a call. Raises: IndexRangeError."""
        results = self._results(values)
        inputs = []
        for (number, order), shape in zip(self._taken, results.inputs, strict=True):
            tensor = values[number] if order is None else values[number].permute(order)
            inputs.append(_array(tensor if tensor.is_contiguous() else tensor.contiguous()))
            if tensor.shape != shape:
                told = f"argument {number} has shape {list(tensor.shape)} where others tell "
                raise NotForEngines(f"{told}{list(shape)}", _AGREE)
        made = [torch.empty(shape, dtype=dtype) for shape, dtype in results.outputs]
        if made:
            threads = self._threads or torch.get_num_threads()
            self._engine.run_unchecked(inputs, [_array(tensor) for tensor in made], threads)
        if self._plain:
            return made
        return [
            self._result(place, given, made, results, values)
            for place, given in enumerate(self._given)
        ]

    def _result(
        self,
        place: int,
        given: GraphResult,
        made: Sequence[Any],
        results: _Results,
        values: Sequence[Any],
    ) -> Any:
        if given.output:
            restored, tensor = self._restored[place], made[self._places[given.output]]
            if place in results.views:
                return tensor.as_strided(*results.views[place])
            return tensor if restored is None else tensor.permute(restored)
        if given.argument is not None:
            return values[given.argument]
        return results.numbers.get(place)

    def _results(self, values: Sequence[Any]) -> _Results:
        sizes = tuple([values[n].shape[axis] for n, axis, _, _ in self._axes])
        found = self._known.get(sizes)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[sizes] = self._at(values)
        return found

    def _at(self, values: Sequence[Any]) -> _Results:
        """What results are at the sizes of a call."""
        sizes = {**told_sizes(self._made.told, values), **self._made.program.numbers}
        sizes |= {name: int(evaluated(one, sizes)) for name, one in self._made.same.items()}
        outputs = dict[str, tuple[tuple[int, ...], Any]]()
        views = dict[int, tuple[tuple[int, ...], tuple[int, ...], int]]()
        for place, given in enumerate(self._given):
            if given.output:
                shape = shape_at(given.value.shape, sizes, given.order)
                outputs[given.output] = shape, given.value.dtype
            if given.view is not None:
                offset = int(value_at(given.view.storage_offset(), sizes))
                view = given.view
                views[place] = shape_at(view.shape, sizes), shape_at(view.stride(), sizes), offset
        numbers = {
            place: value_at(given.number, sizes)
            for place, given in enumerate(self._given)
            if given.number is not None
        }
        values_of = {dim: sizes[dim.name] for dim in self._engine.interface.dims}
        inputs, _ = self._engine.interface.specs_at(values_of)
        return _Results(
            tuple(spec.shape for spec in inputs),
            tuple(outputs[name] for name in self._places),
            numbers,
            views,
        )


def _array(tensor: Any) -> Any:
    """The memory of a contiguous tensor as an array."""
    return shown(tensor.detach() if tensor.requires_grad else tensor)
