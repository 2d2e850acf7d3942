"""Rules of the optimisers of ai.onnx.preview.training, a step of which is elementwise arithmetic:
Adagrad, Adam, Momentum. Gradient, which differentiates a graph, is none of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....errors import ModelError
from ....ops.functions import Cast
from ....ops.movement import Identity
from ..node import NodeReader, NotSupported
from .data_sizes import scalar
from .microsoft.spelling import number_like
from .rule import ImportRule, Result, Several

Step = Callable[["Optimiser", Sequence[str]], tuple[str, ...]]


class Optimiser:
    """A node: what its steps of all tensors have in common.

    rate: the learning rate, of `kind`; step: the number of the step, one int64; is_later: whether
    it is above 0.
    """

    def __init__(self, node: NodeReader, kind: str) -> None:
        self.node, self.kind = node, kind
        rate = scalar(node, 0, node.type(0).dtype)
        self.rate = rate if node.type(0).dtype == kind else node.emit(Cast(kind), rate)
        self.step = scalar(node, 1)
        self.is_later = node.spell("Greater", self.step, number_like(node, self.step, 0))

    def number(self, value: float) -> str:
        """A number of the type of the tensors."""
        return number_like(self.node, self.rate, value)

    def sum(self, a: str, b: str) -> str:
        """a + b"""
        return self.node.spell("Add", a, b)

    def difference(self, a: str, b: str) -> str:
        """a - b"""
        return self.node.spell("Sub", a, b)

    def times(self, a: str, b: str) -> str:
        """a * b"""
        return self.node.spell("Mul", a, b)

    def scaled(self, value: str, factor: float) -> str:
        """The value times a number; itself where that is 1."""
        return value if factor == 1.0 else self.times(value, self.number(factor))

    def over(self, a: str, b: str) -> str:
        """a / b"""
        return self.node.spell("Div", a, b)

    def root_above(self, value: str, epsilon: float) -> str:
        """The root of a value, and epsilon."""
        return self.sum(self.node.spell("Sqrt", value), self.number(epsilon))

    def regularised(self, x: str, gradient: str) -> str:
        """The gradient, and that of half the square of x times `norm_coefficient`."""
        share = self.node.real("norm_coefficient", 0.0)
        return self.sum(self.scaled(x, share), gradient) if share else gradient


def _adagrad(optimiser: Optimiser, tensors: Sequence[str]) -> tuple[str, ...]:
    """x - r / (1 + t * decay) * g / (root of the sum of all g * g + epsilon)"""
    node, (x, gradient, squares) = optimiser.node, tensors
    steps = node.emit(Cast(optimiser.kind), optimiser.step)
    slower = optimiser.scaled(steps, node.real("decay_factor", 0.0))
    rate = optimiser.over(optimiser.rate, optimiser.sum(slower, optimiser.number(1.0)))
    own = optimiser.regularised(x, gradient)
    total = optimiser.sum(squares, optimiser.times(own, own))
    root = optimiser.root_above(total, node.real("epsilon", 1e-6))
    return optimiser.difference(x, optimiser.over(optimiser.times(rate, own), root)), total


def _adam(optimiser: Optimiser, tensors: Sequence[str]) -> tuple[str, ...]:
    """x - r * m / (root of s + epsilon), m and s running means of g and g * g."""
    node, (x, gradient, mean, square) = optimiser.node, tensors
    alpha, beta = node.real("alpha", 0.9), node.real("beta", 0.999)
    own = optimiser.regularised(x, gradient)
    mean = optimiser.sum(optimiser.scaled(mean, alpha), optimiser.scaled(own, 1 - alpha))
    squared = optimiser.scaled(optimiser.times(own, own), 1 - beta)
    square = optimiser.sum(optimiser.scaled(square, beta), squared)
    root = optimiser.root_above(square, node.real("epsilon", 1e-6))
    change = optimiser.times(_unbiased_rate(optimiser, alpha, beta), optimiser.over(mean, root))
    x = optimiser.difference(x, change)
    return optimiser.scaled(x, 1 - node.real("norm_coefficient_post", 0.0)), mean, square


def _unbiased_rate(optimiser: Optimiser, alpha: float, beta: float) -> str:
    """r * root of (1 - beta^t) / (1 - alpha^t) from the first step on, computed in float64."""
    node = optimiser.node
    steps = node.emit(Cast("float64"), optimiser.step)
    one = number_like(node, steps, 1.0)
    left = [
        node.spell("Sub", one, node.spell("Pow", number_like(node, steps, base), steps))
        for base in (alpha, beta)
    ]
    factor = node.spell("Div", node.spell("Sqrt", left[1]), left[0])
    known = node.spell("Where", optimiser.is_later, factor, one)
    return optimiser.times(optimiser.rate, node.emit(Cast(optimiser.kind), known))


def _momentum(optimiser: Optimiser, tensors: Sequence[str]) -> tuple[str, ...]:
    """x - r * v, v = alpha * v + beta * g; in the mode 'nesterov' x - r * (g + alpha * v)."""
    node, (x, gradient, speed) = optimiser.node, tensors
    alpha, mode = node.real("alpha", 0.0), node.text("mode", "standard")
    if mode not in ("standard", "nesterov"):
        raise NotSupported(f"mode is '{mode}'; known are standard, nesterov")
    own = optimiser.regularised(x, gradient)
    beta = optimiser.number(node.real("beta", 1.0))
    share = node.spell("Where", optimiser.is_later, beta, optimiser.number(1.0))
    speed = optimiser.sum(optimiser.scaled(speed, alpha), optimiser.times(own, share))
    change = speed if mode == "standard" else optimiser.sum(own, optimiser.scaled(speed, alpha))
    return optimiser.difference(x, optimiser.times(change, optimiser.rate)), speed


def _each(step: Step, kinds: int) -> Callable[[NodeReader], Result]:
    """The rule of an optimiser of several tensors, each with `kinds - 1` others: all of a kind
    stand together, among the inputs as among the outputs, which lack the gradients.
    """

    def build(node: NodeReader) -> Result:
        tensors = node.inputs[2:]
        if not tensors or len(tensors) % kinds or "" in tensors:
            raise ModelError(
                f"model: {node.title} has {len(tensors)} inputs behind the step; expected {kinds} "
                "for each tensor.",
                code="onnx-optimiser",
            )
        count = len(tensors) // kinds
        made: list[tuple[str, ...]] = []
        for number in range(count):
            own = tensors[number::count]
            optimiser = Optimiser(node, node.builder.types[own[0]].dtype)
            made.append(step(optimiser, own))
        return Several(
            tuple((Identity(), (value,)) for kind in zip(*made, strict=True) for value in kind)
        )

    return build


RULES: dict[str, ImportRule] = {
    "ai.onnx.preview.training.Adagrad": ImportRule(
        (1,), ("decay_factor", "epsilon", "norm_coefficient"), _each(_adagrad, 3), outputs=None
    ),
    "ai.onnx.preview.training.Adam": ImportRule(
        (1,),
        ("alpha", "beta", "epsilon", "norm_coefficient", "norm_coefficient_post"),
        _each(_adam, 4),
        outputs=None,
    ),
    "ai.onnx.preview.training.Momentum": ImportRule(
        (1,), ("alpha", "beta", "mode", "norm_coefficient"), _each(_momentum, 3), outputs=None
    ),
}
