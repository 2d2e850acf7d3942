"""Rules of the recurrent operators: LSTM, GRU and RNN, as products and loops over their steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .....tir.sizes import AnySize, closed, largest
from ....errors import ModelError
from ....ops.arithmetic import Add
from ....ops.elementwise import Elementwise
from ....ops.logic import Less
from ....ops.movement import Concat, Identity, Reshape, Transpose
from ....types import Shape, TensorType, array_of
from ..cells import ACTIVATIONS, Cell, Gru, Lstm, Rnn, chosen_activations
from ..node import NodeReader, NotSupported
from ..recurrence import (
    DirectionInputs,
    DirectionResult,
    Steps,
    join_steps,
    part,
    run_direction,
    split_steps,
    zeros,
)
from .rule import Application, ImportRule, Result, Several

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_X, _W, _R, _B, _LENGTHS, _H, _C, _P = range(8)
_NAMES = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
_PARAMETERS = ("activation_alpha", "activation_beta")
_SWAPPED = (1, 0, 2)  # batch and steps, or batch and directions


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The sizes of a recurrent node."""

    steps: AnySize
    batch: AnySize
    inputs: int
    hidden: int
    directions: int


def _lstm(node: NodeReader) -> Result:
    coupled = node.flag("input_forget")
    return _recurrent(node, Lstm, lambda functions, limit: Lstm(functions, limit, coupled))


def _gru(node: NodeReader) -> Result:
    linear = node.flag("linear_before_reset")
    return _recurrent(node, Gru, lambda functions, limit: Gru(functions, limit, linear))


def _rnn(node: NodeReader) -> Result:
    return _recurrent(node, Rnn, Rnn)


def _recurrent(
    node: NodeReader,
    kind: type[Cell],
    make: Callable[[tuple[Elementwise, ...], float | None], Cell],
) -> Result:
    """The operator, direction by direction, and its outputs of both."""
    reverse = _reverse(node)
    sizes = _checked(node, kind, len(reverse))
    activations, limit = _activations(node, kind, len(reverse)), _limit(node)
    batch_first = _is_batch_first(node)
    x = node.emit(Transpose(_SWAPPED), node.value(_X)) if batch_first else node.value(_X)
    steps, masks = split_steps(node, x), _masks(node, sizes)
    found, collects = [], bool(node.proto.output[0])
    for number, backwards in enumerate(reverse):
        cell = make(activations[number], limit)
        given = _direction(node, cell, number, backwards, sizes, batch_first)
        found.append(run_direction(node, cell, given, steps, masks, collects))
    return Several(tuple(_outputs(node, kind, found, sizes, batch_first)))


def _reverse(node: NodeReader) -> tuple[bool, ...]:
    """Whether each direction goes from the last step to the first."""
    name = node.text("direction", "forward")
    if name not in _DIRECTIONS:
        raise NotSupported(f"direction is '{name}'; known are {', '.join(_DIRECTIONS)}")
    return _DIRECTIONS[name]


def _is_batch_first(node: NodeReader) -> bool:
    layout = node.integer("layout", 0)
    if layout not in (0, 1):
        raise NotSupported(f"layout is {layout}; known are 0 and 1")
    return layout == 1


def _checked(node: NodeReader, kind: type[Cell], directions: int) -> _Sizes:
    """The sizes, where those of all inputs fit each other. Raises: ModelError."""
    x, w, r = (node.type(position) for position in (_X, _W, _R))
    if {x.rank, w.rank, r.rank} != {3} or not x.is_float:
        raise ModelError(
            f"model: {node.title} has the inputs X, {x}, W, {w}, and R, {r}; expected "
            "floating-point numbers with three axes.",
            code="onnx-recurrent-rank",
        )
    first, second, inputs = x.shape
    steps, batch = (second, first) if _is_batch_first(node) else (first, second)
    hidden = node.integer("hidden_size", closed(r.shape[-1]))
    sizes = _Sizes(steps, batch, closed(inputs), hidden, directions)
    for position, shape in _shapes(node, sizes, len(kind.gates)).items():
        dtype = "int32" if position == _LENGTHS else x.dtype
        if node.has(position) and node.type(position) != TensorType(dtype, shape):
            raise ModelError(
                f"model: input {_NAMES[position]} of {node.title} is {node.type(position)}; "
                f"expected {TensorType(dtype, shape)}, for {sizes.steps} steps of {sizes.batch} "
                f"sequences, {sizes.inputs} inputs, hidden_size {hidden} and "
                f"{directions} direction{'s' if directions > 1 else ''}.",
                code="onnx-recurrent-shape",
            )
    return sizes


def _shapes(node: NodeReader, sizes: _Sizes, gates: int) -> dict[int, Shape]:
    """What shape each input must have."""
    steps, batch, inputs = sizes.steps, sizes.batch, sizes.inputs
    hidden, directions = sizes.hidden, sizes.directions
    state: Shape = (directions, batch, hidden)
    if batch_first := _is_batch_first(node):
        state = (batch, directions, hidden)
    return {
        _X: (batch, steps, inputs) if batch_first else (steps, batch, inputs),
        _W: (directions, gates * hidden, inputs),
        _R: (directions, gates * hidden, hidden),
        _B: (directions, 2 * gates * hidden),
        _LENGTHS: (batch,),
        _H: state,
        _C: state,
        _P: (directions, 3 * hidden),
    }


def _activations(
    node: NodeReader, kind: type[Cell], directions: int
) -> tuple[tuple[Elementwise, ...], ...]:
    """The activations of each direction. Raises: NotSupported, ModelError."""
    letters, spellings = len(kind.functions), {name.lower(): name for name in ACTIVATIONS}
    given = node.texts("activations") or kind.functions * directions
    if unknown := [name for name in given if name.lower() not in spellings]:
        raise NotSupported(
            f"activation '{unknown[0]}' is not known; known are {', '.join(ACTIVATIONS)}"
        )
    names = [spellings[name.lower()] for name in given]
    taken = [sum(ACTIVATIONS[name][1] > n for name in names) for n in range(2)]
    lists = [node.reals(name) if node.given(name) else () for name in _PARAMETERS]
    if len(names) != letters * directions:
        raise ModelError(
            f"model: {node.title} has {len(names)} activations; expected {letters * directions}, "
            f"{letters} for each direction.",
            code="onnx-recurrent-activations",
        )
    for name, numbers, most in zip(_PARAMETERS, lists, taken, strict=True):
        if len(numbers) > most:
            raise ModelError(
                f"model: {node.title} has {len(numbers)} numbers in {name}; expected at most "
                f"{most}, one for each of its activations that takes one: {', '.join(names)}.",
                code="onnx-recurrent-parameters",
            )
    found = chosen_activations(names, *lists)
    return tuple(found[n * letters : (n + 1) * letters] for n in range(directions))


def _limit(node: NodeReader) -> float | None:
    """The largest magnitude of what activations are applied to; None where there is none."""
    if not node.given("clip"):
        return None
    limit = node.real("clip", 0.0)
    if not limit > 0:
        raise NotSupported(f"clip is {limit:g}; expected a number above 0")
    return limit


def _masks(node: NodeReader, sizes: _Sizes) -> tuple[Steps, ...]:
    """Whether a step is one of each sequence, [steps, batch, 1]; none where all are as long as can
    be.
    """
    if not node.has(_LENGTHS):
        return ()
    lengths = node.builder.constants.get(node.value(_LENGTHS))
    most = largest(sizes.steps)
    if lengths is not None and np.greater_equal(array_of(lengths), most).all():
        return ()
    every = node.table("steps", np.arange(most, dtype=np.int32).reshape(-1, 1, 1))
    numbers = part(node, every, 0, 0, sizes.steps)
    wanted = node.emit(Reshape((sizes.batch, 1)), node.value(_LENGTHS))
    return split_steps(node, node.emit(Less(), numbers, wanted))


def _direction(
    node: NodeReader, cell: Cell, number: int, reverse: bool, sizes: _Sizes, batch_first: bool
) -> DirectionInputs:
    """What one direction computes with: its parts of the inputs."""
    hidden, gates = sizes.hidden, len(cell.gates)

    def own(position: int) -> str:
        value = part(node, node.value(position), 0, number, 1)
        return node.emit(Reshape(node.builder.types[value].shape[1:]), value)

    def parts(value: str, count: int, first: int = 0) -> tuple[str, ...]:
        starts = range(first * hidden, (first + count) * hidden, hidden)
        return tuple(part(node, value, 0, start, hidden) for start in starts)

    biases, others = ("",) * gates, tuple[str, ...]()
    apart = [cell.is_apart(letter) for letter in cell.gates]
    if node.has(_B):
        both = own(_B)
        inner, outer = parts(both, gates), parts(both, gates, gates)
        pairs = zip(inner, outer, apart, strict=True)
        biases = tuple(a if alone else node.emit(Add(), a, b) for a, b, alone in pairs)
        others = tuple(b for b, alone in zip(outer, apart, strict=True) if alone)
    if node.has(_P):
        others = parts(own(_P), 3)
    states = tuple(
        _first_state(node, position, number, sizes, batch_first)
        for position in (_H, _C)[: cell.states]
    )
    return DirectionInputs(
        parts(own(_W), gates), biases, parts(own(_R), gates), others, states, reverse
    )


def _first_state(
    node: NodeReader, position: int, number: int, sizes: _Sizes, batch_first: bool
) -> str:
    shape = (sizes.batch, sizes.hidden)
    if not node.has(position):
        return zeros(node, node.type(_X).dtype, shape)
    own = part(node, node.value(position), 1 if batch_first else 0, number, 1)
    return node.emit(Reshape(shape), own)


def _outputs(
    node: NodeReader,
    kind: type[Cell],
    found: list[DirectionResult],
    sizes: _Sizes,
    batch_first: bool,
) -> list[Application]:
    """Y, Y_h and Y_c, as far as the node gives them."""
    made: list[Application] = []
    for number, name in enumerate(node.proto.output[: 1 + kind.states]):
        if not name:
            made.append((Identity(), (node.value(_X),)))  # nobody asks for it
        elif number == 0:
            shape = (len(found), sizes.batch, sizes.hidden)
            whole = join_steps(node, [one.rows for one in found], shape)
            made.append((Transpose((2, 0, 1, 3)) if batch_first else Identity(), (whole,)))
        else:
            axis, state = int(batch_first), (sizes.batch, sizes.hidden)
            alone = Reshape((*state[:axis], 1, *state[axis:]))
            last = tuple(node.emit(alone, one.states[number - 1]) for one in found)
            made.append((Concat(axis), last))
    return made


_COMMON = ("activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size")
_VERSIONS = (7, 14, 22)
RULES: dict[str, ImportRule] = {
    "GRU": ImportRule(_VERSIONS, (*_COMMON, "layout", "linear_before_reset"), _gru, outputs=2),
    "LSTM": ImportRule(_VERSIONS, (*_COMMON, "input_forget", "layout"), _lstm, outputs=3),
    "RNN": ImportRule(_VERSIONS, (*_COMMON, "layout"), _rnn, outputs=2),
}
