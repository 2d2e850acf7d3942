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
from ...ir.ir import GraphNode
from ...ops import activation
from ...ops.arithmetic import Add, Max, Min, Mul, Sub
from ...ops.base import Operator
from ...ops.elementwise import Elementwise
from ...ops.functions import Tanh
from ...ops.matmul import Gemm
from ...ops.recurrent import LstmCell
from ...types import Splat, numpy_type

_PRODUCT = Gemm(trans_b=True)
# with how many of alpha and beta each is made
ACTIVATIONS: dict[str, tuple[Callable[..., Elementwise], int]] = {
    "Affine": (activation.AffineFunction, 2),
    "Elu": (activation.Elu, 1),
    "HardSigmoid": (activation.HardSigmoid, 2),
    "LeakyRelu": (activation.LeakyRelu, 1),
    "Relu": (activation.Relu, 0),
    "ScaledTanh": (activation.ScaledTanh, 2),
    "Sigmoid": (activation.Sigmoid, 0),
    "Softplus": (activation.Softplus, 0),
    "Softsign": (activation.Softsign, 0),
    "Tanh": (Tanh, 0),
    "ThresholdedRelu": (activation.ThresholdedRelu, 1),
}


def chosen_activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> tuple[Elementwise, ...]:
    """The activations of these names. Each takes the next number of a list where it
    has such a number, its own one where the list is at its end.
    """
    lists = [list(alphas), list(betas)]
    found = []
    for name in names:
        make, count = ACTIVATIONS[name]
        given = [numbers.pop(0) if numbers else None for numbers in lists[:count]]
        pairs = zip(("alpha", "beta"), given, strict=False)
        found.append(make(**{key: number for key, number in pairs if number is not None}))
    return tuple(found)


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
            rounded = np.asarray(value).astype(numpy_type(self.dtype)).item()
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
    """One step of a recurrence. activations: one for each letter of ONNX's formulas; limit: the
    largest magnitude of what they are applied to.

    gates: the letters of the gates, in the order of the weights; states: how many values go from
    step to step; functions: the activations where a model names none.
    """

    activations: tuple[Elementwise, ...]
    limit: float | None

    gates: ClassVar[str]
    states: ClassVar[int]
    functions: ClassVar[tuple[str, ...]]

    def is_apart(self, letter: str) -> bool:
        """Whether the bias of a gate's product of the state cannot be added to the input's."""
        return False

    def product(self, builder: CellBuilder, given: StepInputs, letter: str) -> str:
        """The sum of the products of the state and of the input with the weights of one gate."""
        number = self.gates.index(letter)
        return builder.add(_PRODUCT, given.states[0], given.weights[number], given.rows[number])

    def apply(self, builder: CellBuilder, number: int, x: str) -> str:
        """One of the activations."""
        if self.limit is not None:
            x = builder.add(Max(), x, builder.number(-self.limit))
            x = builder.add(Min(), x, builder.number(self.limit))
        return builder.add(self.activations[number], x)

    @abstractmethod
    def step(self, builder: CellBuilder, given: StepInputs, backwards: bool) -> tuple[str, ...]:
        """The next states. backwards: run the gates in the opposite order."""


@dataclass(frozen=True, slots=True)
class Lstm(Cell):
    """others: the peepholes of i, o and f, where there are any. is_coupled: f is 1 - i."""

    is_coupled: bool = False

    gates = "iofc"
    states = 2
    functions = ("Sigmoid", "Tanh", "Tanh")

    def step(self, builder: CellBuilder, given: StepInputs, backwards: bool) -> tuple[str, ...]:
        taken = "ioc" if self.is_coupled else "iocf"
        order = reversed(taken) if backwards else taken
        made = {letter: self.product(builder, given, letter) for letter in order}
        peepholes = given.others[: len(taken) - 1]
        f, g, h = self.activations
        op = LstmCell(f, g, h, self.limit, self.is_coupled, bool(peepholes))
        inputs = (given.states[1], *(made[letter] for letter in taken), *peepholes)
        names = (builder.graph.fresh("h"), builder.graph.fresh("c"))
        builder.graph.add_node(GraphNode(op, inputs, names, builder.label))
        return names


@dataclass(frozen=True, slots=True)
class Gru(Cell):
    """is_linear: the reset gate stands behind the product of the state; others: its bias then."""

    is_linear: bool = False

    gates = "zrh"
    states = 1
    functions = ("Sigmoid", "Tanh")

    def is_apart(self, letter: str) -> bool:
        return self.is_linear and letter == "h"

    def step(self, builder: CellBuilder, given: StepInputs, backwards: bool) -> tuple[str, ...]:
        (h,) = given.states
        made = {}
        for letter in self._order(backwards):
            if letter != "h":
                x = self.product(builder, given, letter)
                made[letter] = self.apply(builder, 0, x)
            elif self.is_linear:
                made[letter] = builder.add(_PRODUCT, h, given.weights[2], *given.others)
            else:
                shown = builder.add(Mul(), made["r"], h)
                made[letter] = builder.add(_PRODUCT, shown, given.weights[2], given.rows[2])
        x = made["h"]
        if self.is_linear:
            x = builder.add(Add(), given.rows[2], builder.add(Mul(), made["r"], x))
        proposal = self.apply(builder, 1, x)
        rest = builder.add(Sub(), builder.number(1), made["z"])
        kept = builder.add(Mul(), made["z"], h)
        return (builder.add(Add(), builder.add(Mul(), rest, proposal), kept),)

    def _order(self, backwards: bool) -> str:
        """The gates in order; what is linear waits for no gate."""
        if self.is_linear:
            return "hzr" if backwards else "rzh"
        return "rhz" if backwards else "zrh"


@dataclass(frozen=True, slots=True)
class Rnn(Cell):
    """One gate, which is the state."""

    gates = "h"
    states = 1
    functions = ("Tanh",)

    def step(self, builder: CellBuilder, given: StepInputs, backwards: bool) -> tuple[str, ...]:
        return (self.apply(builder, 0, self.product(builder, given, "h")),)
