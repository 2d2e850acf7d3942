"""What a model takes and gives, by name, and the check of the arrays of a call against it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...codegen.artifact import Parameter
from ...codegen.program_artifact import HasInterface
from ...tir.dim import Dim
from ...tir.errors import known_names
from ...tir.sizes import Size, dims_in, shape_in
from ...tir.text.display import printable
from ..arrays import (
    Argument,
    ArgumentTypeError,
    ArgumentValueError,
    Array,
    accept_call,
    sizes_of_call,
)


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An input or an output of an engine; a size that a run decides is a text."""

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return printable(f"{self.name}: {self.dtype.name}[{', '.join(map(str, self.shape))}]")

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class ClosedSpec:
    """An input or an output at one choice of the sizes."""

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelArgument(Argument):
    """An input or an output of a model, whose sizes `compile` got by name."""

    def size_error(self, call: str, axis: int, n: int, size: Size) -> ArgumentValueError:
        """What is wrong with an axis of `n` elements, a number that `size` never is."""
        dim = size.dim
        notes: tuple[str, ...] = ()
        hints: tuple[str, ...] = ()
        if dim is not None:
            bounds = (min(n, dim.low), dim.usual, max(n, dim.high))
            hints = (f'tw.compile(model, shapes={{"{dim.name}": {bounds}}}) takes it.',)
        if any(one.assumed for one in size.dims):
            notes = (f"nobody said these bounds, so they were assumed when {call} was compiled.",)
        return ArgumentValueError(
            f"{call}: axis {axis} of '{self.name}' has {n} elements; expected '{size}', which is "
            f"{size.low} to {size.high}.",
            code="engine-size",
            notes=notes,
            hints=hints,
        )


class Interface:
    """The inputs and outputs of a model, in order.

    dims: the sizes that the inputs of a run decide; told: the number of the input, and the axis of
    it, that tells each of them. computed: those of outputs that data decide.
    """

    def __init__(self, artifact: HasInterface) -> None:
        self.name = artifact.name
        self._inputs = tuple(_argument(parameter) for parameter in artifact.inputs)
        self._outputs = tuple(_argument(parameter) for parameter in artifact.outputs)
        self.inputs = tuple(map(_spec, self._inputs))
        self.outputs = tuple(map(_spec, self._outputs))
        self.dims = dims_in(size for one in self._inputs for size in one.shape)
        made = dims_in(size for one in self._outputs for size in one.shape)
        self.computed = tuple(dim for dim in made if dim not in self.dims)
        self._most = {dim: dim.high for dim in self.computed}
        self.told = tuple(told(artifact.inputs).values())
        self._input_names = tuple(spec.name for spec in self.inputs)
        self._known_inputs = set(self._input_names)
        self._output_names = tuple(spec.name for spec in self.outputs)

    def __str__(self) -> str:
        inputs, outputs = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return printable(f"{self.name}({inputs}) -> {outputs}")

    __repr__ = __str__

    def accept(
        self, inputs: Mapping[str, object], out: Mapping[str, object] | None = None
    ) -> tuple[list[Array], list[Array]]:
        """The arrays of a call, in order; outputs that `out` does not give are new.

        Raises: ArgumentTypeError, also for names that are missing or unknown; ArgumentValueError.
        """
        if not isinstance(inputs, Mapping):
            raise ArgumentTypeError(
                f"{self.name}: inputs are a {type(inputs).__name__}; expected a dict of arrays.",
                code="engine-inputs",
                hints=(f"{{{', '.join(f'{spec.name!r}: ...' for spec in self.inputs)}}}",),
            )
        if inputs.keys() != self._known_inputs:
            raise self._names_error(inputs)
        values = [inputs[name] for name in self._input_names]
        if out:
            self._check_names("output", out, self._output_names)
            self._check_computed(out)
            sizes = self._sizes(values)
            values += [
                out[argument.name] if argument.name in out else argument.new(sizes)
                for argument in self._outputs
            ]
        return self._accepted(values)

    def _sizes(self, values: Sequence[object]) -> Mapping[Dim, int]:
        """The sizes that the inputs of a call tell, the most for what data decide."""
        if not any(argument.open_axes for argument in self._inputs):
            return self._most
        pairs = zip(self._inputs, values, strict=True)
        arrays = [argument.accept(value, self.name) for argument, value in pairs]
        return {**sizes_of_call(self.name, self._inputs, arrays), **self._most}

    def _accepted(self, values: Sequence[object]) -> tuple[list[Array], list[Array]]:
        """The arrays of all inputs, or of all inputs and outputs, in order."""
        return accept_call(self.name, self._inputs, self._outputs, values, self._most)

    @property
    def data_decides(self) -> bool:
        """Whether data decide a size of an output."""
        return bool(self._most)

    def written(self, outputs: Sequence[Array], sizes: Mapping[Dim, int]) -> list[Array]:
        """What a run has written of its outputs, which have the most elements that it may write.
        sizes: of the run.
        """
        pairs = zip(self._outputs, outputs, strict=True)
        return [
            array.reshape(-1)[: math.prod(shape)].reshape(shape)
            if argument.open_axes and (shape := shape_in(argument.shape, sizes)) != array.shape
            else array
            for argument, array in pairs
        ]

    def _check_computed(self, out: Mapping[str, object]) -> None:
        """Refuse arrays for outputs of which nobody knows the size before a run."""
        for argument in self._outputs:
            decided = [dim.name for dim in dims_in(argument.shape) if dim in self._most]
            if decided and argument.name in out:
                raise ArgumentValueError(
                    f"{self.name}: 'out' gives the output '{argument.name}', whose size "
                    f"'{decided[0]}' data decide; expected none for it: a run makes it.",
                    code="engine-out-size",
                )

    def inputs_at(self, sizes: Mapping[str, int]) -> tuple[ClosedSpec, ...]:
        """What a run takes at these sizes, by name; what is left out is as it usually is.

        Raises: ArgumentValueError for a name that is none of a size, or a size out of bounds.
        """
        dims = {dim.name: dim for dim in self.dims}
        for name, size in sizes.items():
            if name not in dims or not dims[name].low <= size <= dims[name].high:
                known = ", ".join(f"'{d.name}' of {d.low} to {d.high}" for d in dims.values())
                raise ArgumentValueError(
                    f"{self.name}: the size '{name}' is {size}; a run decides {known or 'none'}.",
                    code="engine-size",
                )
        values = {dim: sizes.get(name, dim.usual) for name, dim in dims.items()}
        return _specs_at(self._inputs, values)

    def specs_at(
        self, values: Mapping[Dim, int]
    ) -> tuple[tuple[ClosedSpec, ...], tuple[ClosedSpec, ...]]:
        """What a run takes and gives at these sizes."""
        return _specs_at(self._inputs, values), _specs_at(self._outputs, values)

    def named(
        self, arrays: Iterable[Array], outputs: Iterable[str] | None = None
    ) -> dict[str, Array]:
        """The arrays of the outputs by name; only those called for, in that order, where some are.

        Raises: ArgumentTypeError for an unknown name.
        """
        by_name = dict(zip(self._output_names, arrays, strict=True))
        if outputs is None:
            return by_name
        wanted = dict.fromkeys(outputs)
        self._check_names("output", wanted, self._output_names)
        return {name: by_name[name] for name in wanted}

    def _names_error(self, inputs: Mapping[str, object]) -> ArgumentTypeError:
        """What is wrong with the names of inputs, which are not those of the model."""
        self._check_names("input", inputs, self._input_names)
        spec = next(spec for spec in self.inputs if spec.name not in inputs)
        return ArgumentTypeError(
            f"{self.name}: input '{spec.name}' is missing; expected {spec}.",
            code="engine-missing",
        )

    def _check_names(self, kind: str, given: Iterable[str], expected: tuple[str, ...]) -> None:
        for name in given:
            if name not in expected:
                listed = known_names(str(name), expected)
                raise ArgumentTypeError(
                    f"{self.name}: there is no {kind} '{name}'; the {kind}s are: {listed}.",
                    code="engine-name",
                )


def _specs_at(arguments: Iterable[Argument], values: Mapping[Dim, int]) -> tuple[ClosedSpec, ...]:
    return tuple(ClosedSpec(a.name, a.dtype, shape_in(a.shape, values)) for a in arguments)


def told(inputs: Sequence[Parameter]) -> dict[Dim, tuple[int, int]]:
    """Which input, by its position, and which axis of it, tells each size that a run decides."""
    axes = {
        size.dim: (number, axis)
        for number, parameter in reversed(tuple(enumerate(inputs)))
        for axis, size in enumerate(parameter.shape)
        if isinstance(size, Size)
    }
    return {dim: axes[dim] for dim in dims_in(size for one in inputs for size in one.shape)}


def _spec(argument: Argument) -> TensorSpec:
    shape = tuple(str(size) if isinstance(size, Size) else size for size in argument.shape)
    return TensorSpec(argument.name, argument.dtype, shape)


def _argument(parameter: Parameter) -> ModelArgument:
    return ModelArgument(
        parameter.name, parameter.dtype.numpy, parameter.shape, parameter.role == "output"
    )
