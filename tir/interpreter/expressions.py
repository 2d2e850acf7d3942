"""Expressions as Python text, which the interpreter executes.

Scalars become Python expressions, vectors NumPy expressions. What must not be evaluated is not: a
branch of a scalar Select is a branch of Python's; a vector's lanes that a Select leaves out reach
the loads below it as a mask. An integer operation wraps only where the bounds of its operands let
it overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..buffer import Load
from ..dtype import DType
from ..expr import (
    EQ,
    LE,
    LT,
    NE,
    Add,
    And,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Call,
    Cast,
    Compare,
    Const,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
)
from ..lowered import Broadcast, Fma, Lanes, Ramp, Reinterpret, Shuffle, Vector
from ..number import integer_range
from ..reference import arithmetic
from ..stmt import Store
from ..visit import walk
from .checks import InterpreterError
from .memory import LoadPlace, Memory

SYMBOLS: dict[type[Expr], str] = {
    Add: "+",
    Sub: "-",
    Mul: "*",
    Div: "/",
    FloorDiv: "//",
    FloorMod: "%",
    BitAnd: "&",
    BitOr: "|",
    BitXor: "^",
    EQ: "==",
    NE: "!=",
    LT: "<",
    LE: "<=",
}
DEEPEST = 30  # parentheses in one line; Python's own limit is 200


@dataclass(frozen=True, slots=True)
class Text:
    """Python text of a value. low, high: bounds of an integer. depth: how deeply its parentheses
    nest.
    """

    text: str
    low: int = 0
    high: int = 0
    depth: int = 0

    def __str__(self) -> str:
        return self.text


class ExprWriter:
    """Writes expressions; lines that must run before the current one go to `lines`.

    constants: the values that the text refers to by name, besides its own variables.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.lines: list[str] = []
        self.indent = 1
        self.constants: dict[str, object] = {"np": np, "ar": arithmetic}
        self.bound: dict[Var, Text] = {}
        self._named: dict[object, str] = {}
        self._count = 0

    def emit(self, line: str) -> None:
        """Add a line at the current indentation."""
        self.lines.append(" " * self.indent + line)

    def fresh(self, prefix: str) -> str:
        """A name that nothing else has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def keep(self, text: Text) -> Text:
        """The value under a name of its own."""
        name = self.fresh("t")
        self.emit(f"{name} = {text}")
        return replace(text, text=name, depth=0)

    def constant(self, key: object, value: object) -> str:
        """The name of a Python value that the text refers to."""
        name = self._named.get(key)
        if name is None:
            name = self._named[key] = f"c{len(self._named)}"
            self.constants[name] = value
        return name

    def expr(self, expr: Expr, active: str | None = None) -> Text:
        """The text of an expression; `active` names the mask of the lanes that are evaluated at
        all.
        """
        text = self._vector(expr, active) if expr.dtype.lanes > 1 else self._scalar(expr, active)
        return self.keep(text) if text.depth > DEEPEST else text

    def branch(self, expr: Expr, active: str | None) -> tuple[Text, list[str]]:
        """The text of an expression that may stay unused, and the lines that it needs first."""
        outer, self.lines = self.lines, []
        self.indent += 1
        text = self.expr(expr, active)
        self.indent -= 1
        inner, self.lines = self.lines, outer
        return text, inner

    # scalars

    def _scalar(self, expr: Expr, active: str | None) -> Text:
        match expr:
            case Var():
                return self._var(expr)
            case Const():
                return self._number(expr)
            case FloorDiv() | FloorMod() | Add() | Sub() | Mul() | BitAnd() | BitOr() | BitXor():
                return self._arithmetic(expr, active)
            case ShiftLeft() | ShiftRight():
                return self._shift(expr, active)
            case Min() | Max():
                return self._extremum(expr, active)
            case Div() | Compare():
                a, b = self.expr(expr.a, active), self.expr(expr.b, active)
                return self._join(a, SYMBOLS[type(expr)], b)
            case And() | Or():
                return self._logical(expr, active)
            case Not():
                return self._wrapped("(not {})", self.expr(expr.a, active))
            case Select():
                return self._select(expr, active)
            case Cast():
                return self._cast(self.expr(expr.value, active), expr.value.dtype, expr.type)
            case Reinterpret():
                return self._reinterpret(self._whole(expr, active), expr.value.dtype, expr.type)
            case Load():
                return self.load(expr, active)
            case Fma():
                name = self.constant(
                    ("fma", expr.dtype.scalar), arithmetic.fma_function(expr.dtype)
                )
                return self._apply(name, (expr.a, expr.b, expr.c), active)
        return self._either(expr, active)

    def _either(self, expr: Expr, active: str | None) -> Text:
        match expr:
            case Call():
                return self._call(expr, active)
            case Let():
                value = self.expr(expr.value, active)
                self.bound[expr.var] = value if value.text.isidentifier() else self.keep(value)
                return self.expr(expr.body, active)
            case Lanes():
                return self._part(expr)
        raise InterpreterError(
            f"interpreter: '{type(expr).__name__}' cannot be executed; "
            "expected an expression of a function.",
            code="interpreter-expression",
        )

    def _whole(self, expr: Reinterpret, active: str | None) -> Text:
        """What bits are taken of. Of several elements to a lane, a mask of lanes says nothing."""
        return self.expr(expr.value, active if expr.value.dtype.lanes == expr.dtype.lanes else None)

    def _part(self, expr: Lanes) -> Text:
        value = self.expr(expr.value)
        if expr.count > 1:
            return self._wrapped(f"{{}}[{expr.first}:{expr.first + expr.count}]", value)
        lane = self._wrapped(f"{{}}[{expr.first}]", value)
        if expr.dtype.is_float:
            return lane
        return Text(f"int({lane})", *integer_range(expr.dtype), lane.depth + 1)

    def _var(self, var: Var) -> Text:
        if var not in self.bound:
            raise InterpreterError(
                f"interpreter: variable '{var.name}' is used where nothing binds it.",
                code="interpreter-variable",
            )
        return self.bound[var]

    def _number(self, expr: Const) -> Text:
        if expr.type.is_float:
            return Text(self.constant(expr, expr.type.numpy.type(expr.value)))
        value = int(expr.value)
        text = str(bool(value)) if expr.type.is_bool else str(value) if value >= 0 else f"({value})"
        return Text(text, value, value)

    def _wrapped(self, pattern: str, *parts: Text) -> Text:
        depth = 1 + max(part.depth for part in parts)
        return Text(pattern.format(*parts), depth=depth)

    def _join(self, a: Text, symbol: str, b: Text) -> Text:
        return self._wrapped(f"({{}} {symbol} {{}})", a, b)

    def _apply(self, function: str, arguments: Sequence[Expr], active: str | None) -> Text:
        parts = [self.expr(argument, active) for argument in arguments]
        return self._wrapped(f"{function}({', '.join(['{}'] * len(parts))})", *parts)

    def _arithmetic(self, expr: Binary, active: str | None) -> Text:
        a, b = self.expr(expr.a, active), self.expr(expr.b, active)
        joined = self._join(a, SYMBOLS[type(expr)], b)
        if expr.dtype.is_float:
            return joined
        return self._in_range(replace(joined, low=0, high=0), *_bounds(expr, a, b), expr.dtype)

    def _in_range(self, text: Text, low: int, high: int, dtype: DType) -> Text:
        """An integer of exact bounds low .. high, wrapped around where they exceed the type."""
        least, most = integer_range(dtype)
        if least <= low and high <= most:
            return replace(text, low=low, high=high)
        span = most - least
        body = f"(({text} - {least}) & {span}) + {least}" if least else f"{text} & {span}"
        return Text(f"({body})", least, most, text.depth + 3)

    def _shift(self, expr: ShiftLeft | ShiftRight, active: str | None) -> Text:
        a, count = self.expr(expr.a, active), self.expr(expr.b, active)
        low, high = integer_range(expr.dtype)
        if isinstance(expr, ShiftLeft):
            text = self._wrapped(f"ar.shift_left({{}}, {{}}, {low}, {high})", a, count)
            return replace(text, low=low, high=high)
        text = self._wrapped(f"ar.shift_right({{}}, {{}}, {expr.dtype.bits})", a, count)
        return replace(text, low=min(a.low, 0), high=max(a.high, 0))

    def _extremum(self, expr: Min | Max, active: str | None) -> Text:
        least = isinstance(expr, Min)
        if expr.dtype.is_float:
            return self._apply("ar.smaller" if least else "ar.larger", (expr.a, expr.b), active)
        pick = min if least else max
        a, b = self.expr(expr.a, active), self.expr(expr.b, active)
        text = self._wrapped(f"{pick.__name__}({{}}, {{}})", a, b)
        return replace(text, low=pick(a.low, b.low), high=pick(a.high, b.high))

    def _logical(self, expr: And | Or, active: str | None) -> Text:
        a = self.expr(expr.a, active)
        b, lines = self.branch(expr.b, active)
        word = "and" if isinstance(expr, And) else "or"
        if not lines:
            return self._join(a, word, b)
        kept = self.keep(a)
        self.emit(f"if {'' if word == 'and' else 'not '}{kept}:")
        self.lines += lines
        self.emit(f" {kept} = {b}")
        return kept

    def _select(self, expr: Select, active: str | None) -> Text:
        condition = self.expr(expr.condition, active)
        a, a_lines = self.branch(expr.on_true, active)
        b, b_lines = self.branch(expr.on_false, active)
        low, high = min(a.low, b.low), max(a.high, b.high)
        if not a_lines and not b_lines:
            return replace(
                self._wrapped("({1} if {0} else {2})", condition, a, b), low=low, high=high
            )
        name = self.fresh("t")
        self.emit(f"if {condition}:")
        self.lines += a_lines
        self.emit(f" {name} = {a}")
        self.emit("else:")
        self.lines += b_lines
        self.emit(f" {name} = {b}")
        return Text(name, low, high)

    def _cast(self, value: Text, source: DType, target: DType) -> Text:
        if target.is_bool:
            return self._wrapped("({} != 0)", value)
        if source.is_storage or target.is_storage:
            kinds = ", ".join(self._type(kind) for kind in (source, target))
            text = self._wrapped(f"ar.convert_number({{}}, {kinds})", value)
            if target.is_float:
                return text
            low, high = integer_range(target)
            return replace(self._wrapped("int({})", text), low=low, high=high)
        if target.is_float:
            made = self.constant(target.scalar, target.numpy.type)
            if source.is_integer and source.bits > 32:
                exact = self.constant(source.scalar, source.numpy.type)
                return self._wrapped(f"{made}({exact}({{}}))", value)
            return self._wrapped(f"{made}({{}})", value)
        low, high = integer_range(target)
        if source.is_float:
            text = self._wrapped(f"ar.float_to_integer({{}}, {low}, {high})", value)
            return replace(text, low=low, high=high)
        if source.is_bool:
            return replace(self._wrapped("int({})", value), low=0, high=1)
        return self._in_range(value, value.low, value.high, target)

    def _reinterpret(self, value: Text, source: DType, target: DType) -> Text:
        made = value
        if source.lanes == 1 and not source.is_float:
            made = self._wrapped(self._type(source) + "({})", value)
        text = self._wrapped(f"{{}}.view({self._type(target)})", made)
        if source.lanes > 1:
            text = self._wrapped("{}[0]", text)
        if target.is_float:
            return text
        low, high = integer_range(target)
        return replace(self._wrapped("int({})", text), low=low, high=high)

    def _type(self, dtype: DType) -> str:
        return self.constant(dtype.scalar, dtype.numpy.type)

    def _call(self, expr: Call, active: str | None) -> Text:
        name = self.constant(("call", expr.intrinsic.name), expr.intrinsic.meaning)
        text = self._apply(name, expr.arguments, active)
        if expr.dtype.is_integer and expr.dtype.lanes == 1:
            low, high = integer_range(expr.dtype)
            return replace(self._wrapped("int({})", text), low=low, high=high)
        if expr.dtype.lanes == 1:
            return self._wrapped(self._type(expr.dtype) + "({})", text)
        return self._wrapped(f"{{}}.astype({self._type(expr.dtype)})", text)

    def place(self, access: Load | Store, active: str | None = None) -> LoadPlace:
        """Where an access goes; `active` masks its lanes."""
        value = access if isinstance(access, Load) else access.value
        mask = None if access.mask is None else self.expr(access.mask, active).text
        if active is not None and value.dtype.lanes > 1:
            mask = active if mask is None else f"({mask} & {active})"
        if mask is None and not self.memory.checked and _is_row(access.indices):
            last = access.indices[-1]
            assert isinstance(last, Ramp)
            starts = (*access.indices[:-1], last.base)
            return LoadPlace(tuple(self.expr(i, active).text for i in starts), last.lanes)
        indices = [self.expr(index, active) for index in access.indices]
        inside = all(
            item.dtype.lanes == 1 and index.low >= 0 and index.high < extent
            for item, index, extent in zip(
                access.indices, indices, access.buffer.shape, strict=True
            )
        )
        return LoadPlace(tuple(index.text for index in indices), 0, mask, inside)

    def load(self, load: Load, active: str | None = None, peek: bool = False) -> Text:
        """The text of a Load; with `peek`, of the pair (value, whether it is initialised)."""
        place = self.place(load, active)
        low, high = (0, 0) if load.buffer.type.is_float else integer_range(load.buffer.type)
        other = self._zero(load.dtype) if load.other is None else self.expr(load.other, active).text
        text = self.memory.load(load, place, other, peek)
        if load.dtype.lanes == 1 and active is not None:
            name = self.fresh("t")
            self.emit(f"{name} = {text} if {active}.any() else {self._zero(load.dtype)}")
            text = name
        return Text(text, low, high, 3)

    def _zero(self, dtype: DType) -> str:
        return self._number(Const(0.0 if dtype.is_float else 0, dtype.scalar)).text

    # vectors

    def _vector(self, expr: Expr, active: str | None) -> Text:
        match expr:
            case Var():
                return self._var(expr)
            case Const():
                full = np.full(expr.type.lanes, expr.value, dtype=expr.type.numpy)
                return Text(self.constant(expr, full))
            case FloorDiv() | FloorMod():
                divided = f"ar.divide_vectors({{}}, {{}}, {active}, {isinstance(expr, FloorMod)})"
                return self._wrapped(divided, self.expr(expr.a, active), self.expr(expr.b, active))
            case Min() | Max():
                name = "np.minimum" if isinstance(expr, Min) else "np.maximum"
                return self._apply(name, (expr.a, expr.b), active)
            case ShiftLeft() | ShiftRight():
                name = "np.left_shift" if isinstance(expr, ShiftLeft) else "np.right_shift"
                return self._apply(name, (expr.a, expr.b), active)
            case Add() | Sub() | Mul() | Div() | BitAnd() | BitOr() | BitXor() | Compare():
                a, b = self.expr(expr.a, active), self.expr(expr.b, active)
                return self._join(a, SYMBOLS[type(expr)], b)
            case And() | Or():
                return self._logical_lanes(expr, active)
            case Not():
                return self._wrapped("(~{})", self.expr(expr.a, active))
            case Select():
                return self._select_lanes(expr, active)
            case Cast():
                kind = self.constant(("numpy", expr.type.scalar), expr.type.numpy)
                value = self.expr(expr.value, active)
                return self._wrapped(f"ar.convert_array({{}}, {kind})", value)
            case Reinterpret():
                return self._wrapped(
                    f"{{}}.view({self._type(expr.type)})", self._whole(expr, active)
                )
            case Load():
                return self.load(expr, active)
            case Fma():
                return self._apply("ar.fma_vector", (expr.a, expr.b, expr.c), active)
            case Ramp():
                steps = np.arange(expr.lanes, dtype=expr.dtype.numpy) * expr.stride
                name = self.constant(("ramp", expr.dtype, expr.stride), steps)
                return self._join(self.expr(expr.base, active), "+", Text(name))
            case Broadcast():
                filled = f"np.full({expr.lanes}, {{}}, {self._type(expr.dtype)})"
                return self._wrapped(filled, self.expr(expr.value, active))
            case Vector():
                listed = f"np.array(({'{}, ' * len(expr.values)}), {self._type(expr.dtype)})"
                return self._wrapped(listed, *(self.expr(v, active) for v in expr.values))
            case Shuffle(a, b, order):
                return self._wrapped(f"{{}}[{[*order]}]", self._apply("np.append", (a, b), None))
        return self._either(expr, active)

    def _narrowed(self, mask: str, active: str | None) -> str:
        return mask if active is None else self.keep(Text(f"{mask} & {active}")).text

    def _logical_lanes(self, expr: And | Or, active: str | None) -> Text:
        a = self.keep(self.expr(expr.a, active))
        both = isinstance(expr, And)
        if _reads(expr.b):
            needed = a.text if both else self.keep(Text(f"~{a}")).text
            active = self._narrowed(needed, active)
        return self._join(a, "&" if both else "|", self.expr(expr.b, active))

    def _select_lanes(self, expr: Select, active: str | None) -> Text:
        if expr.condition.dtype.lanes == 1:
            return self._select(expr, active)
        condition = self.keep(self.expr(expr.condition, active))
        inside = outside = active
        if _reads(expr.on_true):
            inside = self._narrowed(condition.text, active)
        if _reads(expr.on_false):
            outside = self._narrowed(self.keep(Text(f"~{condition}")).text, active)
        a, b = self.expr(expr.on_true, inside), self.expr(expr.on_false, outside)
        return self._wrapped("np.where({}, {}, {})", condition, a, b)


def _is_row(indices: Sequence[Expr]) -> bool:
    """Whether an access goes to neighbours: its last index is a Ramp of stride 1, the others are
    scalars.
    """
    if not indices or not isinstance(indices[-1], Ramp) or indices[-1].stride != 1:
        return False
    return all(index.dtype.lanes == 1 for index in indices[:-1])


def _reads(expr: Expr) -> bool:
    """Whether evaluating `expr` may fail: it loads, or divides integers."""
    return any(isinstance(node, Load | FloorDiv | FloorMod) for node in walk(expr))


def _bounds(expr: Binary, a: Text, b: Text) -> tuple[int, int]:
    """The bounds of the exact result of an integer operation."""
    match expr:
        case Add():
            return a.low + b.low, a.high + b.high
        case Sub():
            return a.low - b.high, a.high - b.low
        case Mul():
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return min(corners), max(corners)
        case BitAnd() | BitOr() | BitXor():
            return _bit_bounds(isinstance(expr, BitAnd), a, b)
        case FloorDiv() if b.low > 0:
            corners = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
            return min(corners), max(corners)
        case FloorDiv():
            most = max(abs(a.low), abs(a.high))
            return -most, most
    return min(b.low + 1, 0), max(b.high - 1, 0)


def _bit_bounds(both: bool, a: Text, b: Text) -> tuple[int, int]:
    """The bounds of an operation on bits; both: it keeps those that both operands have."""
    width = max(n.bit_length() for n in (a.low, a.high, b.low, b.high))
    if both and (a.low >= 0 or b.low >= 0):
        return 0, min(item.high for item in (a, b) if item.low >= 0)
    return (-(1 << width) if min(a.low, b.low) < 0 else 0), (1 << width) - 1
