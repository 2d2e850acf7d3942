"""Calls of an engine with tensors: they are read and written where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...graph.importers.fx.tensors import dtype_name, shown
from ...graph.types import inverse
from ...runtime.engine.engine import Engine
from .errors import NotForEngines
from .program import GraphProgram, GraphResult
from .sizes import Bounds, evaluated, shape_at, told_sizes, value_at
from .weights import HeldWeights

_KEPT = 64  # choices of sizes whose results are known
_REPORT = "this is a defect of tilewright: please report it."
_AGREE = "keys, values and masks of an attention have as many places."


@dataclass(frozen=True, slots=True)
class _Results:
    """What a call at some sizes takes and gives: the shape and the type of each input and of each
    output of the engine, in order; by the place of their result numbers, and the shape, the strides
    and the offset of views.
    """

    inputs: tuple[tuple[tuple[int, ...], Any], ...]
    outputs: tuple[tuple[tuple[int, ...], Any], ...]
    numbers: Mapping[int, int | float | bool]
    views: Mapping[int, tuple[tuple[int, ...], tuple[int, ...], int]]


class EngineCall:
    """An engine, and how the arguments and results of a graph are its inputs and outputs. weights:
    those that it holds.
    """

    def __init__(
        self,
        engine: Engine[Any],
        made: GraphProgram,
        bounds: Mapping[str, Bounds],
        weights: HeldWeights,
        threads: int | None,
    ) -> None:
        self._engine, self._threads = engine, threads
        self.weights = weights
        self._made = made
        taken = {one.name: one for one in made.taken}
        self._taken = tuple(taken[spec.name] for spec in engine.inputs)
        self._places = {spec.name: place for place, spec in enumerate(engine.outputs)}
        self._given = made.given
        self._axes = tuple((*made.told[name], low, high) for name, (low, _, high) in bounds.items())
        self._known: dict[tuple[int, ...], _Results] = {}
        self._plain = list(map(_whole, made.given)) == list(self._places)
        self._restored = [inverse(one.order) if one.order else None for one in made.given]

    def fits(self, values: Sequence[Any]) -> bool:
        """Whether the engine is made for the sizes of a call."""
        return all(low <= values[n].shape[axis] <= high for n, axis, low, high in self._axes)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The results of a call. Raises: IndexRangeError."""
        results = self._results(values)
        inputs = []
        for one, expected in zip(self._taken, results.inputs, strict=True):
            tensor = values[one.argument]
            tensor = tensor if one.order is None else tensor.permute(one.order)
            if (tensor.shape, tensor.dtype) != expected:
                raise _disagreement(one.argument, tensor, expected)
            inputs.append(_array(tensor if tensor.is_contiguous() else tensor.contiguous()))
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
            tensor = made[self._places[given.output]]
        elif given.argument is not None:
            tensor = values[given.argument]
        else:
            return results.numbers.get(place)
        if place in results.views:
            shape, strides, offset = results.views[place]
            return tensor.as_strided(shape, strides, tensor.storage_offset() + offset)
        restored = self._restored[place]
        return tensor if restored is None else tensor.permute(restored)

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
                view, root = given.view, given.value
                begins = [int(value_at(one.storage_offset(), sizes)) for one in (view, root)]
                offset = begins[0] - begins[1]
                views[place] = shape_at(view.shape, sizes), shape_at(view.stride(), sizes), offset
        numbers = {
            place: value_at(given.number, sizes)
            for place, given in enumerate(self._given)
            if given.number is not None
        }
        listed = tuple(outputs[name] for name in self._places)
        values_of = {dim: sizes[dim.name] for dim in self._engine.interface.dims}
        inputs, planned = self._engine.interface.specs_at(values_of)
        for (shape, dtype), spec in zip(listed, planned, strict=True):
            if shape != spec.shape or dtype_name(dtype) != spec.dtype.name:
                own = f"output '{spec.name}' of the engine is {spec.dtype.name}{list(spec.shape)}"
                raise NotForEngines(f"{own}, and torch has {dtype}{list(shape)} for it", _REPORT)
        types = tuple((spec.shape, _dtype(spec.dtype.name)) for spec in inputs)
        return _Results(types, listed, numbers, views)


def _whole(given: GraphResult) -> str:
    """The output that a result is, as it is; "" for others."""
    return given.output if given.order is None and given.view is None else ""


def _dtype(name: str) -> Any:
    return getattr(torch, name)


def _disagreement(number: int, tensor: Any, expected: tuple[tuple[int, ...], Any]) -> NotForEngines:
    """What is wrong with an argument that is not as the others tell."""
    shape, dtype = expected
    own, other = f"{tensor.dtype}{list(tensor.shape)}", f"{dtype}{list(shape)}"
    return NotForEngines(f"argument {number} is {own} where others tell {other}", _AGREE)


def _array(tensor: Any) -> Any:
    """The memory of a contiguous tensor as an array."""
    return shown(tensor.detach() if tensor.requires_grad else tensor)
