"""Operators that work element by element, and conversions."""

from __future__ import annotations

from .subject import Draw, Subject, integers, known, normal, uniform

_ROWS = (128, 768)  # of a text: positions and widths
_OF = f"{_ROWS[0]}x{_ROWS[1]}"
_NARROW = ("bfloat16", "float16", "float8_e4m3fn")
_CODES = {"float32": 1, "int8": 3, "float16": 10, "bfloat16": 16, "float8_e4m3fn": 17, "int4": 22}


def _one(operator: str, draw: Draw, opset: int = 22) -> Subject:
    return Subject(f"{operator} {_OF}", f"y = {operator}(x)", {"x": draw}, opset)


def _two(operator: str, dtype: str, a: Draw, b: Draw, opset: int = 20) -> Subject:
    name, _, attributes = operator.partition(" ")
    body = f"y = {name} {attributes} (a, b)"
    return Subject(f"{operator} {dtype} {_OF}", body, {"a": a, "b": b}, opset)


def _cast(source: str, to: str) -> Subject:
    body = f"y = Cast <to={_CODES[to]}> (x)"
    draw = uniform(-100.0, 100.0, *_ROWS, dtype=source)
    return Subject(f"Cast {source} to {to} {_OF}", body, {"x": draw}, 21)


TRIGONOMETRY = (
    *(_one(name, uniform(-3.0, 3.0, *_ROWS)) for name in ("Sin", "Cos", "Tan", "Atan")),
    *(_one(name, uniform(-1.0, 1.0, *_ROWS)) for name in ("Asin", "Acos")),
)
HYPERBOLIC = (
    *(_one(name, uniform(-3.0, 3.0, *_ROWS)) for name in ("Sinh", "Cosh", "Asinh")),
    _one("Acosh", uniform(1.0, 9.0, *_ROWS)),
    _one("Atanh", uniform(-0.9, 0.9, *_ROWS)),
)
_POSITIVE = {kind: integers(1, 100, *_ROWS, dtype=kind) for kind in ("int32", "int64")}
REMAINDERS = (
    _two("Mod", "int32", integers(-1000, 1000, *_ROWS, dtype="int32"), _POSITIVE["int32"]),
    _two("Mod", "int64", integers(-1000, 1000, *_ROWS), _POSITIVE["int64"]),
    _two("Mod", "int64 by 7", integers(-1000, 1000, *_ROWS), known(7, "int64")),
    _two("Mod <fmod=1>", "float32", normal(*_ROWS), uniform(0.5, 2.0, *_ROWS)),
)
_WORDS = integers(0, 2**31, *_ROWS, dtype="int32")
_BYTES = integers(0, 256, *_ROWS, dtype="uint8")
_POINTS = normal(*_ROWS)
POINTWISE = (
    *(
        _one(name, _POINTS)
        for name in ("Exp", "Sigmoid", "Tanh", "Softplus", "Erf", "Relu", "Mish")
    ),
    *(_one(name, _POINTS) for name in ("Elu", "HardSwish", "Gelu")),
    _one("Log", uniform(0.1, 9.0, *_ROWS)),
    _one("Sqrt", uniform(0.1, 9.0, *_ROWS)),
    _two("Pow", "float32", uniform(0.1, 3.0, *_ROWS), known(2.5)),
    _two("Pow", "float32 by another", uniform(0.1, 3.0, *_ROWS), normal(*_ROWS)),
    _two("Add", "float32", _POINTS, _POINTS),
    _two("Mul", "float32 by a row", _POINTS, normal(_ROWS[1])),
    _two("Div", "int32", _WORDS, _POSITIVE["int32"]),
    _two("Div", "int64", integers(-(2**40), 2**40, *_ROWS), _POSITIVE["int64"]),
    _two("Less", "float32", _POINTS, _POINTS),
    Subject(
        f"Where {_OF}",
        "y = Where(c, a, b)",
        {"c": integers(0, 2, *_ROWS, dtype="bool"), "a": _POINTS, "b": _POINTS},
    ),
    Subject(f"Sigmoid times itself {_OF}", "s = Sigmoid(x) y = Mul(x, s)", {"x": _POINTS}),
    Subject(
        "Add, Relu, Mul 64x56x56",
        "s = Add(a, b) r = Relu(s) y = Mul(r, c)",
        {"a": normal(1, 64, 56, 56), "b": normal(1, 64, 56, 56), "c": normal(1, 64, 1, 1)},
    ),
)
BITS = (
    _two("BitwiseAnd", "int32", _WORDS, _WORDS),
    _two("BitwiseXor", "uint8", _BYTES, _BYTES),
    _two(
        'BitShift <direction="RIGHT">',
        "uint32",
        integers(0, 2**31, *_ROWS, dtype="uint32"),
        integers(0, 8, *_ROWS, dtype="uint32"),
    ),
    _one("BitwiseNot", _WORDS),
)
CONVERSIONS = (
    *(_cast("float32", kind) for kind in _NARROW),
    *(_cast(kind, "float32") for kind in _NARROW),
    Subject(
        f"Cast float32 to int4 and back {_OF}",
        f"z = Cast <to={_CODES['int4']}> (x) y = Cast <to=1> (z)",
        {"x": integers(-8, 8, *_ROWS, dtype="float32")},  # peers round others to the nearest
        21,
    ),
    _cast("float32", "int8"),
    _cast("int8", "float32"),
)
