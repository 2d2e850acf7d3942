"""The text of expressions read back: the inverse of the printer, on Python's own syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from ..buffer import Buffer, Load
from ..dtype import BOOL, FLOAT32, INT64, NAMES, DType
from ..dtype import dtype as as_dtype
from ..errors import IRError, known_names
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
    Number,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
    const,
)
from ..instructions.tensor_intrinsics import TENSOR_INTRINSICS
from ..intrinsics import ALL, THREEFRY, by_name
from ..lowered import Broadcast, Exchange, Fma, Lanes, Ramp, Reinterpret, Shuffle, Vector

BINARY: dict[type[ast.operator], type[Binary]] = {
    ast.Add: Add,
    ast.Sub: Sub,
    ast.Mult: Mul,
    ast.Div: Div,
    ast.FloorDiv: FloorDiv,
    ast.Mod: FloorMod,
    ast.BitAnd: BitAnd,
    ast.BitOr: BitOr,
    ast.BitXor: BitXor,
    ast.LShift: ShiftLeft,
    ast.RShift: ShiftRight,
}
COMPARE: dict[type[ast.cmpop], type[Compare]] = {
    ast.Eq: EQ,
    ast.NotEq: NE,
    ast.Lt: LT,
    ast.LtE: LE,
}
ARGUMENTS = {
    "min": 2,
    "max": 2,
    "select": 3,
    "cast": 2,
    "reinterpret": 2,
    "let": 3,
    "ramp": 3,
    "broadcast": 2,
    "lanes": 3,
    "exchange": 2,
    "fma": 3,
    **{
        intrinsic.name: intrinsic.arity
        for intrinsic in (*ALL, *THREEFRY, *TENSOR_INTRINSICS.values())
    },
}


class ParseError(IRError):
    """A text is not a program of the language."""


class ExprParser:
    """Reads expressions. names: the variables and buffers in scope, by their names in the text."""

    def __init__(self, text: str, names: dict[str, Var | Buffer]) -> None:
        self.text_lines = text.split("\n")
        self.names = names

    def error(
        self, node: ast.AST, message: str, *, code: str, hints: Sequence[str] = ()
    ) -> ParseError:
        """An error that shows the line of `node`."""
        line = int(getattr(node, "lineno", 1))
        return ParseError(
            f"parser: {message}",
            code=code,
            where=f"in line {line}:\n    {self.text_lines[line - 1].strip()}",
            hints=hints,
        )

    def buffer(self, node: ast.expr) -> Buffer:
        """The buffer that a name stands for."""
        found = self.names.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(found, Buffer):
            return found
        buffers = [name for name, item in self.names.items() if isinstance(item, Buffer)]
        raise self._unknown(node, "buffer", buffers)

    def variable(self, node: ast.expr) -> Var:
        """The variable that a name stands for."""
        found = self.names.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(found, Var):
            return found
        variables = [name for name, item in self.names.items() if isinstance(item, Var)]
        raise self._unknown(node, "variable", variables)

    def _unknown(self, node: ast.expr, kind: str, names: Iterable[str]) -> ParseError:
        wanted = ast.unparse(node)
        return self.error(
            node,
            f"no {kind} '{wanted}' is in scope; expected one of {known_names(wanted, names)}.",
            code="parse-name",
        )

    def integer(self, node: ast.expr) -> int:
        """A plain integer."""
        value = self._literal(node)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise self.error(
            node, f"expected an integer, got '{ast.unparse(node)}'.", code="parse-integer"
        )

    def string(self, node: ast.expr) -> str:
        """A plain string."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        raise self.error(
            node, f"expected a text in \"\", got '{ast.unparse(node)}'.", code="parse-string"
        )

    def dtype(self, node: ast.AST, name: str) -> DType:
        """The type called `name`."""
        try:
            return as_dtype(name)
        except IRError:
            raise self.error(
                node,
                f"no type '{name}'; expected one of {known_names(name, NAMES)}.",
                code="parse-type",
            ) from None

    def sequence(self, node: ast.expr) -> list[ast.expr]:
        """The items of `()`, of `a` or of `a, b`."""
        return node.elts if isinstance(node, ast.Tuple) else [node]

    def expr(self, node: ast.expr) -> Expr:
        """The expression that a syntax tree stands for."""
        match node:
            case ast.Name():
                return self.variable(node)
            case ast.Constant() | ast.UnaryOp(op=ast.USub()):
                return self._number(node)
            case ast.UnaryOp(op=ast.Not()):
                return Not(self.expr(node.operand))
            case ast.BinOp() if type(node.op) in BINARY:
                return BINARY[type(node.op)](self.expr(node.left), self.expr(node.right))
            case ast.BoolOp():
                return self._connective(node)
            case ast.Compare(ops=[op], comparators=[other]) if type(op) in COMPARE:
                return COMPARE[type(op)](self.expr(node.left), self.expr(other))
            case ast.Subscript():
                return self.load(node)
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self._call(node, name)
        raise self._no_expression(node)

    def _no_expression(self, node: ast.expr) -> ParseError:
        return self.error(
            node,
            f"'{ast.unparse(node)}' is no expression of the language.",
            code="parse-expression",
        )

    def _connective(self, node: ast.BoolOp) -> Expr:
        result = self.expr(node.values[0])
        for value in node.values[1:]:
            other = self.expr(value)
            result = And(result, other) if isinstance(node.op, ast.And) else Or(result, other)
        return result

    def load(self, node: ast.expr) -> Load:
        """The Load that `A[i, j]` stands for."""
        if not isinstance(node, ast.Subscript):
            raise self.error(
                node, f"expected an element, got '{ast.unparse(node)}'.", code="parse-element"
            )
        indices = tuple(self.expr(index) for index in self.sequence(node.slice))
        return Load(self.buffer(node.value), indices)

    def _literal(self, node: ast.expr) -> Number | None:
        """The number that a literal stands for; None for anything else."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Call(
                func=ast.Name(id="float"), args=[ast.Constant(value="inf" | "-inf" | "nan" as text)]
            ):
                return float(str(text))
        return None

    def _number(self, node: ast.expr) -> Const:
        value = self._literal(node)
        if value is None:
            raise self._no_expression(node)
        if isinstance(value, bool):
            return Const(value, BOOL)
        return const(value, INT64 if isinstance(value, int) else FLOAT32)

    def _call(self, node: ast.Call, name: str) -> Expr:
        if name == "float":
            return self._number(node)
        if name == "masked" and len(node.args) in (2, 3):
            element = self.load(node.args[0])
            other = self.expr(node.args[2]) if len(node.args) == 3 else None
            return Load(element.buffer, element.indices, self.expr(node.args[1]), other)
        if name == "vector":
            return Vector(tuple(self.expr(arg) for arg in node.args))
        if name == "shuffle" and len(node.args) > 2:
            a, b, *order = node.args
            return Shuffle(self.expr(a), self.expr(b), tuple(map(self.integer, order)))
        if name not in ARGUMENTS:
            return self._typed_number(node, name)
        if len(node.args) != ARGUMENTS[name]:
            raise self.error(
                node,
                f"'{name}' takes {ARGUMENTS[name]} arguments, got {len(node.args)}.",
                code="parse-arguments",
            )
        return self._apply(name, node.args)

    def _typed_number(self, node: ast.Call, name: str) -> Expr:
        value = self._literal(node.args[0]) if len(node.args) == 1 else None
        if value is None:
            raise self._no_expression(node)
        return const(value, self.dtype(node, name))

    def _apply(self, name: str, args: list[ast.expr]) -> Expr:
        match name:
            case "min" | "max":
                return (Min if name == "min" else Max)(self.expr(args[0]), self.expr(args[1]))
            case "select":
                return Select(self.expr(args[0]), self.expr(args[1]), self.expr(args[2]))
            case "cast":
                return Cast(self.expr(args[0]), self.dtype(args[1], self.string(args[1])))
            case "reinterpret":
                return Reinterpret(self.expr(args[0]), self.dtype(args[1], self.string(args[1])))
            case "let":
                return self._let(args[0], args[1], args[2])
            case "ramp":
                return Ramp(self.expr(args[0]), self.integer(args[1]), self.integer(args[2]))
            case "broadcast":
                return Broadcast(self.expr(args[0]), self.integer(args[1]))
            case "lanes":
                return Lanes(self.expr(args[0]), self.integer(args[1]), self.integer(args[2]))
            case "exchange":
                return Exchange(self.expr(args[0]), self.expr(args[1]))
            case "fma":
                return Fma(self.expr(args[0]), self.expr(args[1]), self.expr(args[2]))
        intrinsic = TENSOR_INTRINSICS.get(name) or by_name(name)
        return Call(intrinsic, tuple(self.expr(arg) for arg in args))

    def _let(self, name: ast.expr, value: ast.expr, body: ast.expr) -> Expr:
        if not isinstance(name, ast.Name):
            raise self._no_expression(name)
        bound = self.expr(value)
        var = Var(name.id, bound.dtype)
        outer = self.names
        self.names = {**outer, name.id: var}
        result = Let(var, bound, self.expr(body))
        self.names = outer
        return result
