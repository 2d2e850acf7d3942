"""Rules of arithmetic and of functions of one number."""

from __future__ import annotations

from ....errors import ModelError
from ....ops import arithmetic, functions, modulo, movement, whole_powers
from ..node import NodeReader, NotSupported
from .rule import Application, ImportRule, Result, plain
from .variadic import fold, folded

_LARGEST = 3.4028234663852886e38  # of float32: what Clip's attributes are when they are not given


def _negated(node: NodeReader) -> Result:
    return arithmetic.Mul(), (node.value(0), node.number(-1))


def _reciprocal(node: NodeReader) -> Result:
    return arithmetic.Div(), (node.number(1), node.value(0))


def _pow(node: NodeReader) -> Result:
    """In the type of the base; an integer to the power of a float, by way of float64."""
    base, exponent = node.type(0), node.type(1)
    if base.is_float:
        return arithmetic.Pow(), (node.value(0), _as(node, 1, base.dtype))
    if exponent.is_float:
        power = node.emit(arithmetic.Pow(), _as(node, 0, "float64"), _as(node, 1, "float64"))
        return functions.Cast(base.dtype), (power,)
    if exponent.dtype == "uint64":
        raise NotSupported(f"the exponent is {exponent}; known are integers that int64 has")
    if base.dtype == "int64":
        return whole_powers.PowInteger(), (node.value(0), _as(node, 1, "int64"))
    power = node.emit(whole_powers.PowInteger(), _as(node, 0, "int64"), _as(node, 1, "int64"))
    return functions.Cast(base.dtype), (power,)


def _as(node: NodeReader, position: int, dtype: str) -> str:
    """An input in element type `dtype`."""
    value = node.value(position)
    same = node.type(position).dtype == dtype
    return value if same else node.emit(functions.Cast(dtype), value)


def _modulo(node: NodeReader) -> Result:
    """In old opsets, too, fmod=0 of floats is what ONNX's reference makes of it."""
    return modulo.Mod(node.flag("fmod")), node.inputs


def _mean(node: NodeReader) -> Result:
    total = node.emit(arithmetic.Sum(), *folded(node, arithmetic.Sum()))
    return arithmetic.Div(), (total, node.number(len(node.inputs)))


def clipped(node: NodeReader, value: str, least: str, most: str) -> Application:
    """min(max(value, least), most); a bound that is "" is none."""
    if least and most:
        value = node.emit(arithmetic.Max(), value, least)
    if not least and not most:
        return movement.Identity(), (value,)
    return (arithmetic.Min(), (value, most)) if most else (arithmetic.Max(), (value, least))


def _clip(node: NodeReader) -> Result:
    if node.version < 11:
        least, most = node.real("min", -_LARGEST), node.real("max", _LARGEST)
        return clipped(node, node.value(0), node.number(least), node.number(most))
    return clipped(node, node.value(0), *(_bound(node, position) for position in (1, 2)))


def _bound(node: NodeReader, position: int) -> str:
    """A bound of Clip, which has one element; "" where it is left out."""
    if not node.has(position):
        return ""
    type_ = node.type(position)
    if type_.elements != 1:
        raise ModelError(
            f"model: {node.title} has the bound '{node.value(position)}' of type {type_}; "
            "expected one element.",
            code="onnx-clip",
        )
    value = node.value(position)
    return node.emit(movement.Reshape(()), value) if type_.rank else value


RULES: dict[str, ImportRule] = {
    "Abs": ImportRule((6, 13), (), plain(functions.Abs())),
    "Add": ImportRule((7, 13, 14), (), plain(arithmetic.Add())),
    "Ceil": ImportRule((6, 13), (), plain(functions.Ceil())),
    "Clip": ImportRule((6, 11, 12, 13), ("max", "min"), _clip),
    "Div": ImportRule((7, 13, 14), (), plain(arithmetic.Div())),
    "Erf": ImportRule((9, 13), (), plain(functions.Erf())),
    "Exp": ImportRule((6, 13), (), plain(functions.Exp())),
    "Floor": ImportRule((6, 13), (), plain(functions.Floor())),
    "Log": ImportRule((6, 13), (), plain(functions.Log())),
    "Max": ImportRule((6, 8, 12, 13), (), fold(arithmetic.Max())),
    "Mean": ImportRule((6, 8, 13), (), _mean),
    "Min": ImportRule((6, 8, 12, 13), (), fold(arithmetic.Min())),
    "Mod": ImportRule((10, 13, 28), ("fmod",), _modulo),
    "Mul": ImportRule((7, 13, 14), (), plain(arithmetic.Mul())),
    "Neg": ImportRule((6, 13), (), _negated),
    "Pow": ImportRule((7, 12, 13, 15), (), _pow),
    "Reciprocal": ImportRule((6, 13), (), _reciprocal),
    "Round": ImportRule((11, 22), (), plain(functions.Round())),
    "Sign": ImportRule((9, 13), (), plain(functions.Sign())),
    "Sqrt": ImportRule((6, 13), (), plain(functions.Sqrt())),
    "Sub": ImportRule((7, 13, 14), (), plain(arithmetic.Sub())),
    "Sum": ImportRule((6, 8, 13), (), fold(arithmetic.Sum())),
    "Tanh": ImportRule((6, 13), (), plain(functions.Tanh())),
}
