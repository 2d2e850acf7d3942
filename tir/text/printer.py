"""The text of a program: short, valid-looking Python. `parser` reads it back; tests compare it.

Names are hints, so the printer makes them unique: the first `i` keeps its name, the next becomes
i_1.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Sequence

from ..buffer import Buffer, Load
from ..checked import Checked
from ..dim import Dim, Extent
from ..dtype import BOOL, FLOAT32, INT64
from ..expr import (
    EQ,
    LE,
    LT,
    NE,
    TRUE,
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
    Call,
    Cast,
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
from ..lowered import Broadcast, Exchange, Fma, Lanes, Ramp, Reinterpret, Shuffle, Vector
from ..node import show_nodes
from ..reduce import Reduce
from ..stmt import (
    Alloc,
    Barrier,
    Block,
    Commit,
    Extern,
    For,
    ForKind,
    If,
    IterVar,
    LetStmt,
    Parameter,
    Prefetch,
    Role,
    Seq,
    Stmt,
    Store,
    WarpSum,
)

# operator -> (symbol, precedence): as in Python
OPERATORS: dict[type[Expr], tuple[str, int]] = {
    Or: ("or", 1),
    And: ("and", 2),
    EQ: ("==", 4),
    NE: ("!=", 4),
    LT: ("<", 4),
    LE: ("<=", 4),
    BitOr: ("|", 5),
    BitXor: ("^", 6),
    BitAnd: ("&", 7),
    ShiftLeft: ("<<", 8),
    ShiftRight: (">>", 8),
    Add: ("+", 9),
    Sub: ("-", 9),
    Mul: ("*", 10),
    Div: ("/", 10),
    FloorDiv: ("//", 10),
    FloorMod: ("%", 10),
}

LOOP_WORDS = {
    ForKind.SERIAL: "range",
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorized",
    ForKind.UNROLLED: "unrolled",
    ForKind.BOUND: "bound",
    ForKind.BLOCKIZED: "blockized",
    ForKind.TENSORIZED: "tensorized",
}


def identifier(name: str) -> str:
    """A Python identifier that is as close to `name` as can be: names of models hold any
    character.
    """
    plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    if plain[0].isdigit() or keyword.iskeyword(plain):
        plain = f"_{plain}"
    return plain


class Names:
    """Unique names for variables and buffers, given at first use; a name is free again where its
    scope ends.
    """

    def __init__(self) -> None:
        self._given: dict[Var | Buffer, str] = {}
        self._used: set[str] = set()

    def __getitem__(self, item: Var | Buffer) -> str:
        if item not in self._given:
            hint = identifier(item.name)
            name = hint
            count = 0
            while name in self._used:
                count += 1
                name = f"{hint}_{count}"
            self._given[item] = name
            self._used.add(name)
        return self._given[item]

    def release(self, *items: Var | Buffer) -> None:
        """End the scope of `items`."""
        for item in items:
            self._used.discard(self._given.pop(item, ""))


def print_expr(expr: Expr, names: Names | None = None) -> str:
    """The text of an expression."""
    return _expr(expr, names or Names(), 0)


def _number(expr: Const) -> str:
    if expr.type in (INT64, BOOL):
        return str(expr.value)
    # str of a NumPy number has as many digits as its own type needs
    text = str(expr.type.numpy.type(expr.value))
    if expr.type.is_float and text.lstrip("-").isdigit():
        text += ".0"  # those of ml_dtypes do without; -0 would be an integer
    if text in ("inf", "-inf", "nan"):
        text = f'float("{text}")'
    return text if expr.type == FLOAT32 else f"{expr.type}({text})"


def _expr(expr: Expr, names: Names, outer: int) -> str:
    symbol = OPERATORS.get(type(expr))
    if symbol is not None:
        text, precedence = symbol
        a, b = expr.a, expr.b  # type: ignore[attr-defined]
        left = precedence + (precedence == 4)  # Python chains comparisons
        body = f"{_expr(a, names, left)} {text} {_expr(b, names, precedence + 1)}"
        return f"({body})" if precedence < outer else body
    match expr:
        case Var():
            return names[expr]
        case Const():
            text = _number(expr)
            return f"({text})" if text.startswith("-") and outer > 0 else text
        case Load():
            return _load(expr, names)
        case Checked():
            what = json.dumps(expr.what)
            extent = _extent(expr.extent, names)
            return f"checked({_expr(expr.value, names, 0)}, {extent}, {what})"
        case Not():
            body = f"not {_expr(expr.a, names, 4)}"
            return f"({body})" if outer > 3 else body
        case Reduce():
            axes = ", ".join(
                f"{names[v]}={n}" for v, n in zip(expr.axes, expr.extents, strict=True)
            )
            values = ", ".join(_expr(value, names, 0) for value in expr.values)
            where = "" if expr.where == TRUE else f", where={_expr(expr.where, names, 0)}"
            return f"reduce_{expr.reducer.name}({values}, {axes}{where})"
    return _call(expr, names)


def _call(expr: Expr, names: Names) -> str:
    def args(*items: Expr) -> str:
        return ", ".join(_expr(item, names, 0) for item in items)

    match expr:
        case Min() | Max():
            return f"{'min' if isinstance(expr, Min) else 'max'}({args(expr.a, expr.b)})"
        case Select():
            return f"select({args(expr.condition, expr.on_true, expr.on_false)})"
        case Cast():
            return f'cast({args(expr.value)}, "{expr.type}")'
        case Reinterpret():
            return f'reinterpret({args(expr.value)}, "{expr.type}")'
        case Call():
            return f"{expr.intrinsic.name}({args(*expr.arguments)})"
        case Let():
            return f"let({names[expr.var]}, {args(expr.value, expr.body)})"
        case Ramp():
            return f"ramp({args(expr.base)}, {expr.stride}, {expr.lanes})"
        case Broadcast():
            return f"broadcast({args(expr.value)}, {expr.lanes})"
        case Lanes():
            return f"lanes({args(expr.value)}, {expr.first}, {expr.count})"
        case Vector():
            return f"vector({args(*expr.values)})"
        case Shuffle():
            return f"shuffle({args(expr.a, expr.b)}, {', '.join(map(str, expr.order))})"
        case Exchange():
            return f"exchange({args(expr.value, expr.step)})"
        case Fma():
            return f"fma({args(expr.a, expr.b, expr.c)})"
    raise TypeError(f"printer: no text for {type(expr).__name__}")


def _load(load: Load, names: Names) -> str:
    element = _element(load.buffer, load.indices, names)
    if load.mask is None:
        return element
    other = "" if load.other is None else f", {_expr(load.other, names, 0)}"
    return f"masked({element}, {_expr(load.mask, names, 0)}{other})"


def _element(buffer: Buffer, indices: Sequence[Expr], names: Names) -> str:
    return f"{names[buffer]}[{', '.join(_expr(i, names, 0) for i in indices) or '()'}]"


def type_text(buffer: Buffer, names: Names) -> str:
    """The type and shape of a buffer: float32[64, 48], or float32[n, 48]."""
    return f"{buffer.type}[{', '.join(_extent(e, names) for e in buffer.extents) or '()'}]"


def _extent(extent: Extent, names: Names) -> str:
    return names[extent] if isinstance(extent, Dim) else str(extent)


def print_header(
    name: str, dims: Sequence[Dim], parameters: Sequence[Parameter]
) -> tuple[str, Names]:
    """The `def` line of a function, and the names that its body goes on with."""
    names = Names()
    listed = [f"{names[dim]}: dim({dim.low}, {dim.high})" for dim in dims]
    listed += [f"{names[p.buffer]}: {_parameter(p, names)}" for p in parameters]
    return f"def {name}({', '.join(listed)}):", names


def _parameter(parameter: Parameter, names: Names) -> str:
    text, check = type_text(parameter.buffer, names), parameter.check
    if check is not None:
        return f"check({text}, {json.dumps(check.extent)}, {json.dumps(check.what)})"
    return text if parameter.role == "input" else f"{parameter.role}({text})"


def print_stmt(stmt: Stmt, names: Names | None = None, indent: int = 0) -> str:
    """The text of a statement, one line per action."""
    return "\n".join(
        "    " * (indent + depth) + line for depth, line in _lines(stmt, names or Names())
    )


def _deeper(stmt: Stmt, names: Names) -> list[tuple[int, str]]:
    return [(depth + 1, line) for depth, line in _lines(stmt, names)]


def _lines(stmt: Stmt, names: Names) -> list[tuple[int, str]]:
    match stmt:
        case For():
            tail = "" if stmt.tail is None else f', tail="{stmt.tail.value}"'
            hints = "".join(f", {key}={value}" for key, value in stmt.annotations)
            hints += f', intrinsic="{stmt.intrinsic}"' if stmt.intrinsic else ""
            hints += f', axis="{stmt.axis}"' if stmt.axis else ""
            head = f"for {names[stmt.var]} in {LOOP_WORDS[stmt.kind]}({stmt.extent}{tail}{hints}):"
            lines = [(0, head), *_deeper(stmt.body, names)]
            names.release(stmt.var)
            return lines
        case Seq():
            return _sequence(stmt, names)
        case Store():
            element = _element(stmt.buffer, stmt.indices, names)
            if stmt.mask is not None:
                element = f"masked({element}, {_expr(stmt.mask, names, 0)})"
            return [(0, f"{element} = {_expr(stmt.value, names, 0)}")]
        case Block():
            return _block(stmt, names)
        case If():
            lines = [(0, f"if {_expr(stmt.condition, names, 0)}:"), *_deeper(stmt.then, names)]
            return (
                lines
                if stmt.orelse is None
                else [*lines, (0, "else:"), *_deeper(stmt.orelse, names)]
            )
        case LetStmt():
            head = f"{names[stmt.var]}: {stmt.var.type} = {_expr(stmt.value, names, 0)}"
            return [(0, head), *_lines(stmt.body, names)]
        case Alloc():
            buffer = stmt.buffer
            how = f", origin={names[buffer.origin]}" if buffer.origin is not None else ""
            if buffer.aligned:
                axes = (f"{x.axis}: ({x.factor}, {x.offset})" for x in buffer.aligned)
                how += f", align={{{', '.join(axes)}}}"
            how += ", swizzle=True" if buffer.swizzled else ""
            head = f'{names[buffer]} = alloc({type_text(buffer, names)}, "{buffer.scope}"{how})'
            return [(0, head), *_lines(stmt.body, names)]
        case Barrier():
            return [(0, "barrier()")]
        case Extern():
            return [(0, _extern(stmt, names))]
        case Prefetch():
            how = f'"{"write" if stmt.write else "read"}", {stmt.level}'
            return [(0, f"prefetch({_element(stmt.buffer, stmt.indices, names)}, {how})")]
        case Commit():
            listed = ", ".join(names[buffer] for buffer in stmt.buffers)
            return [(0, f"commit({listed}, {stmt.ahead})")]
        case WarpSum():
            return [(0, _warp_sum(stmt, names))]
    raise TypeError(f"printer: no text for {type(stmt).__name__}")


def _warp_sum(stmt: WarpSum, names: Names) -> str:
    sums = ", ".join(_element(store.buffer, store.indices, names) for store in stmt.sums)
    a, b = (
        f"{fragment.how.value}({', '.join(_expr(load, names, 0) for load in fragment.loads)})"
        for fragment in (stmt.a, stmt.b)
    )
    return f'warp_sum("{stmt.intrinsic}", ({sums}), {a}, {b})'


def _extern(stmt: Extern, names: Names) -> str:
    inputs, outputs = (
        f"({', '.join(names[b] for b in buffers)}{',' * (len(buffers) == 1)})"
        for buffers in (stmt.inputs, stmt.outputs)
    )
    function = stmt.function
    return f'extern("{function.symbol}", "{function.digest}", {inputs}, {outputs})'


def _sequence(stmt: Seq, names: Names) -> list[tuple[int, str]]:
    """Statements in order. A name that one of them binds, and not all that follow see, ends at
    `del`.
    """
    lines: list[tuple[int, str]] = []
    for child in stmt.body:
        lines += _lines(child, names)
        if isinstance(child, Alloc | LetStmt) and child is not stmt.body[-1]:
            bound = child.buffer if isinstance(child, Alloc) else child.var
            lines.append((0, f"del {names[bound]}"))
            names.release(bound)
    return lines or [(0, "pass")]


def _block(block: Block, names: Names) -> list[tuple[int, str]]:
    values = [_expr(binding, names, 0) for binding in block.bindings]
    predicate = None if block.predicate == TRUE else _expr(block.predicate, names, 0)
    iters = [
        f"{names[it.var]}={it.kind.value}({_extent(it.domain, names)}, {value})"
        for it, value in zip(block.iters, values, strict=True)
    ]
    marks = [f'{block.role.value}="{block.family}"'] if block.role is not Role.COMPUTE else []
    if block.role is Role.COMPUTE and block.family != block.name:
        marks = [f'family="{block.family}"']
    marks += ["padded=True"] if block.padded else []
    marks += ["recomputed=True"] if block.recomputed else []
    name = repr(block.name).replace("'", '"')
    lines = [(0, f"with block({', '.join([name, *iters, *marks])}):")]
    if predicate is not None:
        lines.append((1, f"where({predicate})"))
    if block.counts != TRUE:
        lines.append((1, f"counts({_expr(block.counts, names, 0)})"))
    if block.init is not None:
        lines += [(1, "with init():"), *((d + 2, line) for d, line in _lines(block.init, names))]
    lines += _deeper(block.body, names)
    names.release(*(iteration.var for iteration in block.iters))
    return lines


def _buffer_text(buffer: Buffer) -> str:
    return f"{buffer.name}: {type_text(buffer, Names())}"


def _axis_text(axis: IterVar) -> str:
    return f"{axis.var.name}={axis.kind.value}({_extent(axis.domain, Names())})"


show_nodes(Expr, print_expr)
show_nodes(Stmt, print_stmt)
show_nodes(Buffer, _buffer_text)
show_nodes(IterVar, _axis_text)
