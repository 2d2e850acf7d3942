"""Operators that work element by element: of floats, of truth values, of integers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from onnx import TensorProto

from .drawing import Attribute, Drawing, DrawnPoint, bounded, limits, positive, scalar, whole

_SMOOTH = (
    *("Abs", "Asinh", "Atan", "Celu", "Cos", "Dropout", "Elu", "Erf", "HardSigmoid", "HardSwish"),
    *("Identity", "LeakyRelu", "LogSoftmax", "Neg", "Relu", "Selu", "Sigmoid", "Sin"),
    *("Softmax", "Softplus", "Softsign", "Tanh"),
)
_BOUNDED = ("Acos", "Asin", "Atanh", "Cosh", "Exp", "Sinh", "Tan")
_POSITIVE = ("Acosh", "Log", "Reciprocal", "Sqrt")
_STEPS = ("Ceil", "Floor", "Hardmax", "Round", "Sign", "ThresholdedRelu")
_BINARY = ("Add", "Max", "Mean", "Min", "Mul", "Sub", "Sum")
_COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
_LOGIC = ("And", "Or", "Xor")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_ALPHAS = ("Celu", "Elu", "LeakyRelu", "ThresholdedRelu")


def _with_attributes(draw: DrawnPoint, op: str, value: str) -> str:
    """A node of one operand, with attributes where it has some."""
    chosen: dict[str, Attribute] = {}
    if op in _ALPHAS and draw.rng.random() < 0.5:
        chosen["alpha"] = draw.rng.choice((0.25, 0.5, 1.5))
    if op == "HardSigmoid" and draw.rng.random() < 0.5:
        chosen.update(alpha=0.25, beta=0.375)
    if op in ("Softmax", "LogSoftmax", "Hardmax"):
        chosen["axis"] = draw.rng.choice((0, 1, 2, -1))
    return draw.nodes.add(op, value, **chosen)


def _smooth(op: str, draw: DrawnPoint) -> str:
    return _with_attributes(draw, op, draw.value())


def _bounded(op: str, draw: DrawnPoint) -> str:
    return draw.nodes.add(op, bounded(draw))


def _positive(op: str, draw: DrawnPoint) -> str:
    return draw.nodes.add(op, positive(draw))


def _steps(op: str, draw: DrawnPoint) -> str:
    return _with_attributes(draw, op, draw.exact())


def _binary(op: str, draw: DrawnPoint) -> str:
    """With an operand that has all axes, some or none."""
    ways = (draw.value, lambda: draw.weight(draw.width), lambda: draw.weight(1, draw.width))
    other = draw.rng.choice((*ways, lambda: draw.weight(1, 1, 1)))()
    pair = (draw.value(), other)
    return draw.nodes.add(op, *(pair if draw.rng.random() < 0.5 else pair[::-1]))


def _div(draw: DrawnPoint) -> str:
    return draw.nodes.add("Div", draw.value(), positive(draw))


def _pow(draw: DrawnPoint) -> str:
    return draw.nodes.add("Pow", positive(draw), bounded(draw))


def _prelu(draw: DrawnPoint) -> str:
    return draw.nodes.add("PRelu", draw.value(), draw.weight(draw.width))


def _clip(draw: DrawnPoint) -> str:
    low, high = limits(draw, -0.5, 0.75)
    given = draw.rng.choice(((low, high), (low,), ("", high)))
    return draw.nodes.add("Clip", draw.value(), *given)


def _gelu(draw: DrawnPoint) -> str:
    return draw.nodes.add("Gelu", draw.value(), approximate=draw.rng.choice(("none", "tanh")))


def _cast(draw: DrawnPoint) -> str:
    """To another type of floats, and back."""
    kind = draw.rng.choice((TensorProto.FLOAT16, TensorProto.DOUBLE))
    other = draw.nodes.add("Cast", draw.exact(), to=kind)
    return draw.nodes.add("Cast", other, to=TensorProto.FLOAT)


def _cast_like(draw: DrawnPoint) -> str:
    return draw.nodes.add("CastLike", whole(draw), draw.value())


# -- truth values ---------------------------------------------------------------------------------


def _truth(draw: DrawnPoint) -> str:
    return draw.nodes.add(draw.rng.choice(_COMPARISONS), draw.exact(), draw.exact())


def _chosen(draw: DrawnPoint, truth: str) -> str:
    """One of two values by a truth value, or the truth value as a number."""
    if draw.rng.random() < 0.3:
        return draw.nodes.add("Cast", truth, to=TensorProto.FLOAT)
    return draw.nodes.add("Where", truth, draw.value(), draw.value())


def _compared(op: str, draw: DrawnPoint) -> str:
    return _chosen(draw, draw.nodes.add(op, draw.exact(), draw.exact()))


def _logic(op: str, draw: DrawnPoint) -> str:
    return _chosen(draw, draw.nodes.add(op, _truth(draw), _truth(draw)))


def _not(draw: DrawnPoint) -> str:
    return _chosen(draw, draw.nodes.add("Not", _truth(draw)))


def _where(draw: DrawnPoint) -> str:
    return draw.nodes.add("Where", _truth(draw), draw.value(), draw.value())


def _is_odd(op: str, draw: DrawnPoint) -> str:
    """Whether a quotient by what may be zero is a number."""
    over = draw.nodes.add("Div", draw.exact(), draw.nodes.add("Relu", draw.exact()))
    return _chosen(draw, draw.nodes.add(op, over))


# -- integers -------------------------------------------------------------------------------------


def _integer(draw: DrawnPoint, kind: str, *, least: int | None = None) -> str:
    """Integers of a type; small ones. least: 1, say, where that is the smallest."""
    numbers = whole(draw)
    if kind.startswith("u") or least is not None:
        numbers = draw.nodes.add("Abs", numbers)
    if least:
        numbers = draw.nodes.add("Add", numbers, scalar(draw, least))
    return draw.nodes.add("Cast", numbers, to=getattr(TensorProto, kind.upper()))


def _as_float(draw: DrawnPoint, integers: str) -> str:
    floats = draw.nodes.add("Cast", integers, to=TensorProto.FLOAT)
    return draw.nodes.add("Mul", floats, scalar(draw, 1 / 64))


def _integers(op: str, draw: DrawnPoint) -> str:
    """Of two integers of any type."""
    kind = draw.rng.choice(_INTEGERS)
    return _as_float(draw, draw.nodes.add(op, _integer(draw, kind), _integer(draw, kind)))


def _divided(op: str, draw: DrawnPoint) -> str:
    """By an integer of at least one; of negative numbers, Div has no meaning that all keep."""
    kinds = _INTEGERS if op == "Mod" else [kind for kind in _INTEGERS if kind.startswith("u")]
    kind = draw.rng.choice(kinds)
    divisor = _integer(draw, kind, least=1)
    return _as_float(draw, draw.nodes.add(op, _integer(draw, kind), divisor))


def _shifted(draw: DrawnPoint) -> str:
    kind = draw.rng.choice([kind for kind in _INTEGERS if kind.startswith("u")])
    by = draw.hold(draw.rng.randrange(4), kind)
    direction = draw.rng.choice(("LEFT", "RIGHT"))
    return _as_float(
        draw, draw.nodes.add("BitShift", _integer(draw, kind), by, direction=direction)
    )


def _one_integer(op: str, draw: DrawnPoint) -> str:
    kinds = _INTEGERS if op == "BitwiseNot" else _INTEGERS[:4]
    return _as_float(draw, draw.nodes.add(op, _integer(draw, draw.rng.choice(kinds))))


def all_drawings() -> Iterator[Drawing]:
    """Every drawing of this module."""
    for names, write in (
        (_SMOOTH, _smooth),
        (_BOUNDED, _bounded),
        (_POSITIVE, _positive),
        (_STEPS, _steps),
        (_BINARY, _binary),
        (_COMPARISONS, _compared),
        (_LOGIC, _logic),
        (("Add", "Max", "Min", "Mul", "Sub"), _integers),
        (("Div", "Mod"), _divided),
        (("Abs", "Neg", "Sign"), _one_integer),
        (("IsInf", "IsNaN"), _is_odd),
    ):
        yield from (Drawing(op, partial(write, op)) for op in names)
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield Drawing(op, partial(_integers, op), 18)
    yield Drawing("BitwiseNot", partial(_one_integer, "BitwiseNot"), 18)
    yield Drawing("BitShift", _shifted)
    yield Drawing("Gelu", _gelu, 20)
    yield Drawing("Mish", partial(_smooth, "Mish"), 18)
    yield from (
        Drawing("Div", _div),
        Drawing("Pow", _pow),
        Drawing("PRelu", _prelu),
        Drawing("Clip", _clip),
        Drawing("Cast", _cast),
        Drawing("CastLike", _cast_like),
        Drawing("Not", _not),
        Drawing("Where", _where),
    )
