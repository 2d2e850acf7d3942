"""Scalar expressions as text, in the words of a dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...tir.analysis.bounds import bounds
from ...tir.buffer import Buffer, Load
from ...tir.dtype import INT64, DType, TypeKind, dtype
from ...tir.errors import InternalError
from ...tir.expr import (
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
    index,
    mul,
)
from ...tir.lowered import Fma, Reinterpret
from ...tir.node import Node
from ...tir.stmt import Store
from ...tir.visit import walk
from ..isa.isa import Isa
from ..isa.selection import may_lose_zero, negated, operation, power_of_two
from ..lanes import access
from .dialect import Dialect
from .lines import Lines
from .literals import literal

Writer = Callable[[Expr], str]
# precedence of C's operators, as far as they are used
TERNARY, OR, AND, BITS, EQUAL, LESS, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(1, 12)
_OPERATORS: dict[type[Expr], tuple[str, int]] = {
    Add: ("+", SUM),
    Sub: ("-", SUM),
    Mul: ("*", PRODUCT),
    Div: ("/", PRODUCT),
    EQ: ("==", EQUAL),
    NE: ("!=", EQUAL),
    LT: ("<", LESS),
    LE: ("<=", LESS),
}
_BITS: dict[type[Expr], str] = {BitAnd: "&", BitOr: "|", BitXor: "^"}

LONGEST_OPERANDS = 64  # characters of an operation's operands; longer ones get a name
_HINTS = {
    "add": "sum",
    "sub": "difference",
    "mul": "product",
    "div": "quotient",
    "fma": "sum",
    "blend": "chosen",
    "Load": "loaded",
}


def hint(expr: Expr) -> str:
    """What to call the value of an expression that has no name of its own."""
    return _HINTS.get(operation(expr)[0], "t")


class Scalars:
    """Writes scalar expressions; what needs a statement first puts it among `lines`."""

    def __init__(self, lines: Lines, tables: Isa, dialect: Dialect) -> None:
        self.lines = lines
        self.isa = tables
        self.dialect = dialect
        self._index: dict[Expr, bool] = {}
        self._data: set[Node] = set()  # variables that may hold any int64

    def kind(self, dtype: DType) -> str:
        """The type of one element."""
        return self.dialect.type_of(dtype)

    def kind_of(self, expr: Expr) -> str:
        """The type of a variable that holds the value of an expression."""
        return self.kind(expr.dtype)

    def scalar(self, expr: Expr, level: int = TERNARY) -> str:
        """The text of a scalar expression, in parentheses where it binds less than `level`."""
        text, own = self._scalar(expr)
        if len(text) > LONGEST_OPERANDS and isinstance(expr, Add | Sub | Mul | Div | Fma | Call):
            return self.lines.keep(self.kind_of(expr), hint(expr), text)
        return f"({text})" if own < level else text

    def _scalar(self, expr: Expr) -> tuple[str, int]:
        match expr:
            case Var():
                return self.lines.names[expr], ATOM
            case Const():
                text = literal(expr, self.dialect)
                return text, UNARY if text.startswith("-") else ATOM
            case Load():
                return self.element(expr)
            case Add() | Sub() | Mul() if expr.dtype.is_integer and not self._is_index(expr):
                return self._wrapping(expr)
            case Add(Mul(a, Const() as factor), b) if expr.dtype == INT64 and factor.value < 0:
                return self._operator(Sub(b, mul(a, index(-int(factor.value)))))  # a * -2 + b
            case LT(a, Const(0)) | LE(Const(0), a) if a.dtype.kind is TypeKind.UINT:
                return ("0" if isinstance(expr, LT) else "1"), ATOM  # compilers warn of the others
            case Add() | Sub() | Mul() | Div() | Compare():
                turned = negated(expr)
                if turned is not None and self.isa.has("neg", expr.dtype):
                    return self.isa.apply("neg", expr.dtype, self.scalar(turned)), ATOM
                if isinstance(expr, Sub) and may_lose_zero(expr):
                    operands = f"{self.scalar(expr.a)}, {self.scalar(expr.b)}"
                    return f"tw_minus_f{expr.dtype.bits}({operands})", ATOM
                return self._operator(expr)
            case FloorDiv() | FloorMod():
                return self._floor(expr)
            case BitAnd() | BitOr() | BitXor():  # their precedences in C surprise: all in ()
                left, right = self.scalar(expr.a, UNARY), self.scalar(expr.b, UNARY)
                return f"{left} {_BITS[type(expr)]} {right}", BITS
            case ShiftLeft() | ShiftRight():
                return self._shift(expr)
            case Min() | Max() if expr.dtype.is_integer:
                symbol = "<" if isinstance(expr, Min) else ">"
                left, right = self.atom(expr.a), self.atom(expr.b)
                return f"({left} {symbol} {right} ? {left} : {right})", ATOM
            case And() | Or():
                return self._logical(expr)
            case Not():
                return f"!{self.scalar(expr.a, UNARY)}", UNARY
            case Select():
                return self.select(expr, self.scalar, self.kind(expr.dtype))
            case Cast():
                return self._cast(expr)
            case Reinterpret():
                return self._reinterpret(expr)
            case Let():
                return self._scalar(self.bound(expr))
            case Fma() | Call() | Min() | Max():
                return self._table(expr), ATOM
        raise self.unknown(expr)

    def unknown(self, expr: Expr) -> InternalError:
        """The error for an expression that no table knows."""
        return InternalError(
            f"{self.dialect.name}: no C text for {type(expr).__name__} of {expr.dtype}; "
            "expected a pass before to have replaced it.",
            code="c-expression",
        )

    def bound(self, let: Let) -> Expr:
        """The body of a Let, its variable declared where the body uses it."""
        if any(node is let.var for node in walk(let.body)):
            self.bind(let.var, let.value)
        return let.body

    def bind(self, var: Var, value: Expr) -> None:
        """Declare a Let's variable; its scope ends with the C block."""
        is_data = var.type == INT64 and not self._is_index(value)
        if is_data and None in bounds(value, self.lines.ranges):
            self._data.add(var)
        kind = "int" if var.type.is_bool else self.kind(var.type)
        self.lines.declare(kind, var, self.scalar(value))

    def atom(self, expr: Expr) -> str:
        """Text that may stand twice: a name or a number; anything else is named first."""
        if isinstance(expr, Var | Const) or (isinstance(expr, Load) and not expr.buffer.shape):
            return self.scalar(expr, ATOM)
        return self.lines.keep(self.kind_of(expr), hint(expr), self.scalar(expr))

    def _is_index(self, expr: Expr) -> bool:
        """Whether an integer is index arithmetic, proved not to overflow: int64, of constants and
        variables alone, none of which holds data that may be any number.
        """
        known = self._index.get(expr)
        if known is None:
            known = expr.dtype == INT64 and not any(
                isinstance(node, Load | Cast | Reinterpret | Call | ShiftLeft) or node in self._data
                for node in walk(expr)
            )
            self._index[expr] = known
        return known

    def _operator(self, expr: Binary | Compare) -> tuple[str, int]:
        symbol, own = _OPERATORS[type(expr)]
        left = SHIFT if isinstance(expr, Compare) else own  # a < b == c wants parentheses
        return (
            f"{self.scalar(expr.a, left)} {symbol} {self.scalar(expr.b, max(left, own + 1))}",
            own,
        )

    def _wrapping(self, expr: Add | Sub | Mul) -> tuple[str, int]:
        """Data wraps around, which C promises for unsigned integers alone."""
        return f"({self.kind(expr.dtype)})({self._unsigned(expr, SUM)})", UNARY

    def _unsigned(self, expr: Expr, level: int) -> str:
        """The text of an integer as an unsigned one of 32 or 64 bits."""
        bits = 64 if expr.dtype.bits == 64 else 32
        if isinstance(expr, Const):
            return f"{int(expr.value) % (1 << bits)}u"
        if not isinstance(expr, Add | Sub | Mul):
            return f"({self.kind(dtype(f'uint{bits}'))}){self.scalar(expr, UNARY)}"
        symbol, own = _OPERATORS[type(expr)]
        text = f"{self._unsigned(expr.a, own)} {symbol} {self._unsigned(expr.b, own + 1)}"
        return f"({text})" if own < level else text

    def _shift(self, expr: ShiftLeft | ShiftRight) -> tuple[str, int]:
        """A shift. C defines neither a count beyond the width, nor bits that leave a signed number
        on the left.
        """
        kind, left = self.kind(expr.dtype), isinstance(expr, ShiftLeft)
        low, high = bounds(expr.b, self.lines.ranges)
        if low is None or high is None or low < 0 or high >= expr.dtype.bits:
            signed = "tw_shift_signed" if expr.dtype.kind is TypeKind.INT else "tw_shift_right"
            name = "tw_shift_left" if left else signed
            return f"({kind}){self._function(name, (expr.a, expr.b))}", UNARY
        count = self.scalar(expr.b, UNARY)
        if left:
            return f"({kind})({self._unsigned(expr.a, UNARY)} << {count})", UNARY
        return f"{self.scalar(expr.a, UNARY)} >> {count}", SHIFT

    def _floor(self, expr: FloorDiv | FloorMod) -> tuple[str, int]:
        quotient = isinstance(expr, FloorDiv)
        shift = power_of_two(expr.b)
        if shift is not None:
            inner = self.scalar(expr.a, UNARY)
            return (
                f"({inner} >> {shift})" if quotient else f"({inner} & {(1 << shift) - 1})"
            ), ATOM
        low, _ = bounds(expr.a, self.lines.ranges)
        divisor, _ = bounds(expr.b, self.lines.ranges)
        if low is not None and low >= 0 and divisor is not None and divisor > 0:
            symbol = "/" if quotient else "%"
            return f"{self.scalar(expr.a, PRODUCT)} {symbol} {self.scalar(expr.b, UNARY)}", PRODUCT
        if expr.dtype.kind is TypeKind.UINT and expr.dtype.bits == 64:
            return self._function("tw_div" if quotient else "tw_mod", (expr.a, expr.b)), ATOM
        text = self._function("tw_floordiv" if quotient else "tw_floormod", (expr.a, expr.b))
        return (text, ATOM) if expr.dtype == INT64 else (f"({self.kind(expr.dtype)}){text}", UNARY)

    def _function(self, name: str, arguments: Sequence[Expr]) -> str:
        return f"{name}({', '.join(self.scalar(argument) for argument in arguments)})"

    def _table(self, expr: Expr) -> str:
        name, dtype = operation(expr)
        if not self.isa.has(name, dtype):
            raise self.unknown(expr)
        template = self.isa.operations[name, dtype]
        operands = [item for item in expr.children() if isinstance(item, Expr)]
        texts = [
            self.atom(operand) if template.count(f"{{{position}}}") > 1 else self.scalar(operand)
            for position, operand in enumerate(operands)
        ]
        return template.format(*texts)

    def _logical(self, expr: And | Or) -> tuple[str, int]:
        symbol, own = ("&&", AND) if isinstance(expr, And) else ("||", OR)
        mixed = isinstance(expr.a, And | Or) and type(expr.a) is not type(expr)
        a = self.scalar(expr.a, EQUAL if mixed else own)
        with self.lines.apart() as first:
            b = self.scalar(expr.b, EQUAL)
        if not first:
            return f"{a} {symbol} {b}", own
        name = self.lines.names.fresh("t")
        self.lines.add(f"int {name} = {a};")
        self.lines.add(f"if ({name if symbol == '&&' else '!' + name}) {{")
        self.lines.listed += first
        self.lines.add(f"    {name} = {b};")
        self.lines.add("}")
        return name, ATOM

    def select(self, expr: Select, write: Writer, kind: str) -> tuple[str, int]:
        """`condition ? a : b`; where a branch needs statements first, an if around them."""
        condition = self.scalar(expr.condition, OR)
        with self.lines.apart() as first:
            a = write(expr.on_true)
        with self.lines.apart() as second:
            b = write(expr.on_false)
        if not first and not second:
            return f"({condition} ? {a} : {b})", ATOM
        name = self.lines.names.fresh("t")
        self.lines.add(f"{kind} {name};")
        for head, lines, value in ((f"if ({condition}) {{", first, a), ("} else {", second, b)):
            self.lines.add(head)
            self.lines.listed += lines
            self.lines.add(f"    {name} = {value};")
        self.lines.add("}")
        return name, ATOM

    def _cast(self, expr: Cast) -> tuple[str, int]:
        source, result = expr.value.dtype, expr.type
        if result.is_bool:
            return f"{self.scalar(expr.value, EQUAL + 1)} != 0", EQUAL
        if source == result:
            return self._scalar(expr.value)
        if source.is_storage or result.is_storage:
            return self._table(expr), ATOM
        return f"({self.kind(result)}){self.scalar(expr.value, UNARY)}", UNARY

    def _reinterpret(self, expr: Reinterpret) -> tuple[str, int]:
        """The same bits as another type; those of storage types are integers in C already."""
        written = self.dialect
        for functions, kind in (
            (written.float_of, expr.type),
            (written.bits_of, expr.value.dtype),
        ):
            if kind.is_float and not kind.is_storage:
                return f"{functions[kind.bits]}({self.scalar(expr.value)})", ATOM
        return f"({self.kind(expr.type)}){self.scalar(expr.value, UNARY)}", UNARY

    def element(self, load: Load) -> tuple[str, int]:
        """An element in memory, or a register."""
        if not load.buffer.shape and load.buffer.scope == "register":
            return self.lines.names[load.buffer], ATOM
        text = self.place(load.buffer, load.indices)
        return (f"{text} != 0", EQUAL) if load.buffer.type.is_bool else (text, ATOM)

    def store(self, store: Store) -> str:
        """`place = value`, for an element in memory or a register."""
        value = self.scalar(store.value)
        if not store.buffer.shape and store.buffer.scope == "register":
            return f"{self.lines.names[store.buffer]} = {value}"
        return f"{self.place(store.buffer, store.indices)} = {value}"

    def place(self, buffer: Buffer, indices: Sequence[Expr]) -> str:
        """`name[offset]` of an element."""
        offset = access(buffer, indices, self.lines.ranges).offset
        return f"{self.lines.names[buffer]}[{self.scalar(offset)}]"
