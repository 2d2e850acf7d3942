"""What one step of a recurrent operator computes: LSTM, GRU and RNN as ordinary operators.

A gate is one product of the state and the elementwise operators behind it, which share its kernel.
Each gate has weights of its own, and every other step runs the gates in the opposite order: what a
step read last of weights that a cache does not hold whole, the next one reads first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...ir.build import GraphBuilder
from ...ops.activation import LeakyRelu, Relu, Sigmoid, Softplus
from ...ops.arithmetic import Add, Div, Max, Min, Mul, Sub
from ...ops.base import Operator
from ...ops.functions import Abs, Exp, Tanh
from ...ops.logic import Less, Where
from ...ops.matmul import Gemm
from ...types import Splat

_PRODUCT = Gemm(trans_b=True)


@dataclass(frozen=True, slots=True)
class Activation:
    """A function of one number. parameters: how many of alpha and beta it takes, what they are
    where a model does not say.
    """

    apply: Callable[[CellBuilder, str, float, float], str]
    parameters: int = 0
    alpha: float = 0.0
    beta: float = 0.0


@dataclass(frozen=True, slots=True)
class ChosenActivation:
    """An activation with its numbers. clip: the largest magnitude of what it is applied to."""

    activation: Activation
    alpha: float
    beta: float
    clip: float | None

    def __call__(self, builder: CellBuilder, x: str) -> str:
        """The value of the function."""
        if self.clip is not None:
            x = builder.add(Max(), x, builder.number(-self.clip))
            x = builder.add(Min(), x, builder.number(self.clip))
        return self.activation.apply(builder, x, self.alpha, self.beta)


@dataclass(frozen=True, slots=True)
class CellBuilder:
    """Adds nodes of one step to a graph. label: how they are called in messages and reports."""

    graph: GraphBuilder
    dtype: str
    label: str

    def add(self, op: Operator, *inputs: str) -> str:
        """A node with one output."""
        return self.graph.add(op, *inputs, name=self.label)

    def number(self, value: float) -> str:
        """A constant without axes."""
        with np.errstate(over="ignore"):  # what a float16 cannot hold is infinite
            rounded = np.asarray(value).astype(self.dtype).item()
        return self.graph.constant(self.graph.fresh("number"), Splat(rounded, self.dtype, ()))


@dataclass(frozen=True, slots=True)
class StepInputs:
    """What a step reads. states: h, and c of an LSTM; rows: of each gate, the product of the input
    with its bias; weights: of each gate, those of the state; others: what else a cell asks for.
    """

    states: tuple[str, ...]
    rows: tuple[str, ...]
    weights: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell(ABC):
    """One step of a recurrence. activations: one for each letter of ONNX's formulas.

    gates: the letters of the gates, in the order of the weights; states: how many values go from
    step to step; functions: the activations where a model names none.
    """

    activations: tuple[ChosenActivation, ...]

    gates: ClassVar[str]
    states: ClassVar[int]
    functions: ClassVar[tuple[str, ...]]

    def is_apart(self, letter: str) -> bool:
        """Whether the bias of a gate's product of the state cannot be added to the input's."""
        return False

    def product(self, builder: CellBuilder, given: StepInputs, letter: str) -> str:
        """The products of the state and of the input with the weights of one gate."""
        number = self.gates.index(letter)
        return builder.add(_PRODUCT, given.states[0], given.weights[number], given.rows[number])

    @abstractmethod
    def step(self, builder: CellBuilder, given: StepInputs, backwards: bool) -> tuple[str, ...]:
        """The next states. backwards: run the gates in the opposite order."""


@dataclass(frozen=True, slots=True)
class LstmCell(Cell):
    """others: the peepholes of i, o and f, where there are any. is_coupled: f is 1 - i."""

    is_coupled: bool = False

    gates = "iofc"
    states = 2
    functions = ("sigmoid", "tanh", "tanh")

    def step(self, builder: CellBuilder, given: StepInputs, backwards: bool) -> tuple[str, ...]:
        c = given.states[1]
        peepholes = dict(zip("iof", given.others, strict=False))

        def gate(letter: str, seen: str = c) -> str:
            x = self.product(builder, given, letter)
            if letter in peepholes:
                x = builder.add(Add(), x, builder.add(Mul(), peepholes[letter], seen))
            return self.activations[letter == "c"](builder, x)

        made = {}
        for letter in "cifo" if backwards else "ofic":
            coupled = letter == "f" and self.is_coupled
            if not coupled and not (letter == "o" and peepholes):
                made[letter] = gate(letter)
        if self.is_coupled:
            made["f"] = builder.add(Sub(), builder.number(1), made["i"])
        kept = builder.add(Mul(), made["f"], c)
        later = builder.add(Add(), kept, builder.add(Mul(), made["i"], made["c"]))
        if peepholes:
            made["o"] = gate("o", later)
        return builder.add(Mul(), made["o"], self.activations[2](builder, later)), later


@dataclass(frozen=True, slots=True)
class GruCell(Cell):
    """is_linear: the reset gate stands behind the product of the state; others: its bias then."""

    is_linear: bool = False

    gates = "zrh"
    states = 1
    functions = ("sigmoid", "tanh")

    def is_apart(self, letter: str) -> bool:
        return self.is_linear and letter == "h"

    def step(self, builder: CellBuilder, given: StepInputs, backwards: bool) -> tuple[str, ...]:
        (h,) = given.states
        made = {}
        for letter in self._order(backwards):
            if letter != "h":
                x = self.product(builder, given, letter)
                made[letter] = self.activations[0](builder, x)
            elif self.is_linear:
                made[letter] = builder.add(_PRODUCT, h, given.weights[2], *given.others)
            else:
                shown = builder.add(Mul(), made["r"], h)
                made[letter] = builder.add(_PRODUCT, shown, given.weights[2], given.rows[2])
        x = made["h"]
        if self.is_linear:
            x = builder.add(Add(), given.rows[2], builder.add(Mul(), made["r"], x))
        proposal = self.activations[1](builder, x)
        rest = builder.add(Sub(), builder.number(1), made["z"])
        kept = builder.add(Mul(), made["z"], h)
        return (builder.add(Add(), builder.add(Mul(), rest, proposal), kept),)

    def _order(self, backwards: bool) -> str:
        if not backwards:
            return "zrh"
        return "hrz" if self.is_linear else "rhz"


@dataclass(frozen=True, slots=True)
class RnnCell(Cell):
    """One gate, which is the state."""

    gates = "h"
    states = 1
    functions = ("tanh",)

    def step(self, builder: CellBuilder, given: StepInputs, backwards: bool) -> tuple[str, ...]:
        return (self.activations[0](builder, self.product(builder, given, "h")),)


def _plain(op: Operator) -> Callable[[CellBuilder, str, float, float], str]:
    return lambda builder, x, alpha, beta: builder.add(op, x)


def _affine(builder: CellBuilder, x: str, alpha: float, beta: float) -> str:
    scaled = builder.add(Mul(), x, builder.number(alpha))
    return builder.add(Add(), scaled, builder.number(beta))


def _leaky_relu(builder: CellBuilder, x: str, alpha: float, beta: float) -> str:
    return builder.add(LeakyRelu(alpha), x)


def _thresholded_relu(builder: CellBuilder, x: str, alpha: float, beta: float) -> str:
    below = builder.add(Less(), x, builder.number(alpha))
    return builder.add(Where(), below, builder.number(0), x)


def _scaled_tanh(builder: CellBuilder, x: str, alpha: float, beta: float) -> str:
    inner = builder.add(Tanh(), builder.add(Mul(), x, builder.number(beta)))
    return builder.add(Mul(), inner, builder.number(alpha))


def _hard_sigmoid(builder: CellBuilder, x: str, alpha: float, beta: float) -> str:
    line = _affine(builder, x, alpha, beta)
    return builder.add(Min(), builder.add(Max(), line, builder.number(0)), builder.number(1))


def _elu(builder: CellBuilder, x: str, alpha: float, beta: float) -> str:
    below = builder.add(Sub(), builder.add(Exp(), x), builder.number(1))
    scaled = builder.add(Mul(), below, builder.number(alpha))
    return builder.add(Where(), builder.add(Less(), x, builder.number(0)), scaled, x)


def _softsign(builder: CellBuilder, x: str, alpha: float, beta: float) -> str:
    return builder.add(Div(), x, builder.add(Add(), builder.add(Abs(), x), builder.number(1)))


ACTIVATIONS = {
    "affine": Activation(_affine, 2, 1.0, 0.0),
    "elu": Activation(_elu, 1, 1.0),
    "hardsigmoid": Activation(_hard_sigmoid, 2, 0.2, 0.5),
    "leakyrelu": Activation(_leaky_relu, 1, 0.01),
    "relu": Activation(_plain(Relu())),
    "scaledtanh": Activation(_scaled_tanh, 2, 1.0, 1.0),
    "sigmoid": Activation(_plain(Sigmoid())),
    "softplus": Activation(_plain(Softplus())),
    "softsign": Activation(_softsign),
    "tanh": Activation(_plain(Tanh())),
    "thresholdedrelu": Activation(_thresholded_relu, 1, 1.0),
}


def chosen(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float], clip: float | None
) -> tuple[ChosenActivation, ...]:
    """The activations of these names, in lower case. Each takes the next number of a list where it
    has such a number, its own one where the list is at its end.
    """
    alpha, beta, found = iter(alphas), iter(betas), list[ChosenActivation]()
    for name in names:
        one = ACTIVATIONS[name]
        first = next(alpha, one.alpha) if one.parameters > 0 else 0.0
        second = next(beta, one.beta) if one.parameters > 1 else 0.0
        found.append(ChosenActivation(one, first, second, clip))
    return tuple(found)
