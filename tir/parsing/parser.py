"""The text of a program read back: `parse(str(func))` is `func` up to the identity of its
variables.

The text is Python's syntax, and Python's own parser reads it; nothing is evaluated. Two things are
said by the text alone: a statement `v: float32 = ...` or `t = alloc(...)` holds until the end of
its suite, or until `del v`; and `masked(A[i], m) = value`, a store of the lanes that `m` leaves on,
is the only line that is not Python. One thing is not in the text: the C function behind an
`extern(...)`, which has a reference in Python; a caller who has it gives it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..buffer import Alignment, Buffer, array, current_scope
from ..dim import Dim, Extent
from ..dtype import DType
from ..expr import TRUE, Expr, Var
from ..extern import ExternFunction
from ..func import PrimFunc
from ..index_check import IndexCheck
from ..steps import StepFunction, step_named
from ..stmt import (
    ANNOTATIONS,
    NOTHING,
    Alloc,
    Barrier,
    Block,
    Commit,
    Extern,
    For,
    Fragment,
    Held,
    If,
    IterKind,
    IterVar,
    LetStmt,
    Parameter,
    Prefetch,
    Role,
    Seq,
    Stmt,
    Store,
    Tail,
    WarpSum,
    iter_var,
)
from ..text.printer import LOOP_WORDS
from .expressions import ExprParser, ParseError

__all__ = ["ParseError", "parse", "parse_expr", "parse_stmt"]

Names = Mapping[str, Var | Buffer]
KINDS = {word: kind for kind, word in LOOP_WORDS.items()}
HELD = {how.value: how for how in Held}
TAILS = {tail.value: tail for tail in Tail}
ITERS = {kind.value: kind for kind in IterKind}
ROLES = {role.value: role for role in (Role.INIT, Role.COPY)}
_MASKED_STORE = re.compile(r"^(\s*masked\(.*?\)) = ", re.MULTILINE)


def parse(text: str, externs: Sequence[ExternFunction] = ()) -> PrimFunc:
    """The function that `text` describes.

    externs: the C functions that it may call, such as `PrimFunc.externs` of the one that was
    printed. Raises: ParseError with the line that cannot be read.
    """
    parser = _Parser(text, {}, externs)
    tree = parser.tree()
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise parser.error(
            tree.body[0] if tree.body else tree,
            "expected one function, 'def name(...):'.",
            code="parse-function",
        )
    return parser.function(tree.body[0])


def parse_stmt(text: str, names: Names) -> Stmt:
    """The statement that `text` describes; `names` gives the variables and buffers around it.

    Raises: ParseError with the line that cannot be read.
    """
    parser = _Parser(text, names)
    return parser.suite(parser.tree().body)


def parse_expr(text: str, names: Names) -> Expr:
    """The expression that `text` describes; `names` gives its variables and buffers.

    Raises: ParseError with the line that cannot be read.
    """
    parser = _Parser(text, names)
    match parser.tree().body:
        case [ast.Expr(value=value)]:
            return parser.expr(value)
    raise parser.error(ast.Module([], []), "expected one expression.", code="parse-single")


class _Parser(ExprParser):
    def __init__(self, text: str, names: Names, externs: Sequence[ExternFunction] = ()) -> None:
        self.externs = {(one.symbol, one.digest): one for one in externs}
        self.text = textwrap.dedent(text).strip("\n")
        super().__init__(self.text, dict(names))
        self.folded: dict[str, Buffer] = {}

    def tree(self) -> ast.Module:
        try:
            return ast.parse(_MASKED_STORE.sub(r"\1[...] = ", self.text))
        except (SyntaxError, ValueError, RecursionError) as error:
            node = ast.Pass(lineno=getattr(error, "lineno", None) or 1)
            reason = getattr(error, "msg", "it nests too deeply")
            raise self.error(
                node, f"the text is not Python: {reason}.", code="parse-syntax"
            ) from None

    def function(self, node: ast.FunctionDef) -> PrimFunc:
        listed = node.args.args
        dims = {argument.arg: dim for argument in listed if (dim := self.dim(argument)) is not None}
        self.names |= dims
        listed = [argument for argument in listed if argument.arg not in dims]
        parameters = tuple(self.parameter(argument) for argument in listed)
        for parameter, argument in zip(parameters, listed, strict=True):
            self.names[argument.arg] = parameter.buffer
        told = {dim for p in parameters if p.role != "output" for dim in p.buffer.dims}
        sizes = tuple(dim for dim in dims.values() if dim not in told)
        facts, body = [], node.body
        while body and (fact := self.fact(body[0])) is not None:
            facts.append(fact)
            body = body[1:]
        return PrimFunc(node.name, parameters, self.suite(body), sizes, tuple(facts))

    def fact(self, node: ast.stmt) -> Expr | None:
        """The form that `assume(form >= 0)` states; None for another statement."""
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id="assume"), args=[stated])):
                match stated:
                    case ast.Compare(left=form, ops=[ast.GtE()], comparators=[ast.Constant(0)]):
                        return self.expr(form)
        return None

    def dim(self, node: ast.arg) -> Dim | None:
        """The dim that `n: dim(1, 64)` declares; None for another parameter."""
        match node.annotation:
            case ast.Call(func=ast.Name(id="dim"), args=[low, high]):
                return Dim(node.arg, low=self.integer(low), high=self.integer(high))
        return None

    def extent(self, node: ast.expr) -> Extent:
        """A number, or the name of a dim."""
        found = self.names.get(node.id) if isinstance(node, ast.Name) else None
        return found if isinstance(found, Dim) else self.integer(node)

    def check_extent(self, node: ast.expr) -> int | str:
        """What a check compares with: a number, or the name of a size that a call decides."""
        match node:
            case ast.Constant(str()):
                return self.string(node)
        return self.integer(node)

    def parameter(self, node: ast.arg) -> Parameter:
        role, kind, check = "input", node.annotation, None
        match kind:
            case ast.Call(func=ast.Name(id="check"), args=[type_, extent, what]):
                role, kind = "output", type_
                check = IndexCheck(self.string(what), self.check_extent(extent))
            case ast.Call(func=ast.Name(id=word), args=[type_]):
                role, kind = word, type_
        return Parameter(array(node.arg, *self.array_type(kind, node)), role, check)

    def array_type(self, node: ast.expr | None, line: ast.AST) -> tuple[DType, tuple[Extent, ...]]:
        """The type and shape that `float32[64, 48]` stands for."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            raise self.error(
                line, "expected a type and shape such as float32[64, 48].", code="parse-array-type"
            )
        extents = tuple(self.extent(extent) for extent in self.sequence(node.slice))
        return self.dtype(node, node.value.id), extents

    # statements

    def suite(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """The statements of one indentation; those that bind a name hold what follows."""
        found: list[Stmt] = []
        position = 0
        while position < len(nodes):
            node, rest = nodes[position], nodes[position + 1 :]
            name = _scoped_name(node)
            if name is None:
                found.append(self.stmt(node))
                position += 1
                continue
            length = next((n for n, item in enumerate(rest) if _deletes(item, name)), len(rest))
            found.append(self.scoped(node, name, rest[:length]))
            position += length + 2
        return found[0] if len(found) == 1 else Seq(tuple(found))

    def scoped(self, node: ast.stmt, name: str, rest: Sequence[ast.stmt]) -> Stmt:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            value = self.expr(node.value)
            var = Var(name, self.dtype(node, ast.unparse(node.annotation)))
            return LetStmt(var, value, self.inside({name: var}, rest))
        assert isinstance(node, ast.Assign)
        buffer = self.allocation(node.value, name)
        return Alloc(buffer, self.inside({name: buffer}, rest))

    def inside(self, names: Names, nodes: Sequence[ast.stmt]) -> Stmt:
        """A suite in which more names are bound."""
        outer = self.names
        self.names = {**outer, **names}
        body = self.suite(nodes)
        self.names = outer
        return body

    def allocation(self, node: ast.expr, name: str) -> Buffer:
        match node:
            case ast.Call(func=ast.Name(id="alloc"), args=[kind, scope]):
                made = array(name, *self.array_type(kind, node))
                options = {word.arg: word.value for word in node.keywords}
                origin = self.origin(options.pop("origin", None), made)
                aligned = self.alignments(options.pop("align", None))
                swizzled = options.pop("swizzle", None) is not None
                if not options and aligned is not None:
                    where = current_scope(self.string(scope))
                    made = replace(made, aligned=aligned, swizzled=swizzled)
                    return replace(made, scope=where, origin=origin)
        raise self.error(
            node,
            f"'{name}' is bound to '{ast.unparse(node)}'; "
            'expected alloc(type[shape], "scope"), with origin=tensor and '
            "align={axis: (factor, offset)} where there are such.",
            code="parse-alloc",
        )

    def alignments(self, node: ast.expr | None) -> tuple[Alignment, ...] | None:
        """What `align` says of the axes; None where it says something else."""
        match node:
            case None:
                return ()
            case ast.Dict(keys=axes, values=pairs):
                found = []
                for axis, pair in zip(axes, pairs, strict=True):
                    if axis is None or not isinstance(pair, ast.Tuple) or len(pair.elts) != 2:
                        return None
                    found.append(Alignment(*map(self.integer, (axis, *pair.elts))))
                return tuple(found)
        return None

    def origin(self, node: ast.expr | None, staged: Buffer) -> Buffer | None:
        """The tensor that a buffer stages; one whose storage was folded away is known by name."""
        if not isinstance(node, ast.Name) or node.id in self.names:
            return None if node is None else self.buffer(node)
        return self.folded.setdefault(node.id, replace(staged, name=node.id))

    def stmt(self, node: ast.stmt) -> Stmt:
        match node:
            case ast.For(target=ast.Name()):
                return self.loop(node)
            case ast.Assign(targets=[ast.Subscript() as target]):
                return self.store(target, node.value)
            case ast.With(
                items=[ast.withitem(context_expr=ast.Call() as call, optional_vars=None)]
            ):
                return self.block(node, call)
            case ast.If():
                orelse = self.suite(node.orelse) if node.orelse else None
                return If(self.expr(node.test), self.suite(node.body), orelse)
            case ast.Pass():
                return NOTHING
            case ast.Expr(value=ast.Call(func=ast.Name(id="barrier"), args=[], keywords=[])):
                return Barrier()
            case ast.Expr(value=ast.Call(func=ast.Name(id="commit"), args=[*buffers, ahead])):
                return Commit(tuple(map(self.buffer, buffers)), self.integer(ahead))
            case ast.Expr(value=ast.Call(func=ast.Name(id="prefetch"), args=[element, how, level])):
                load = self.load(element)
                write = self.string(how) == "write"
                return Prefetch(load.buffer, load.indices, write, self.integer(level))
            case ast.Expr(
                value=ast.Call(func=ast.Name(id="warp_sum"), args=[name, ast.Tuple(elts=sums), *of])
            ) if len(of) == 2:
                held = (Store(x.buffer, x.indices, x) for x in map(self.load, sums))
                return WarpSum(self.string(name), tuple(held), *map(self.fragment, of))
            case ast.Expr(
                value=ast.Call(
                    func=ast.Name(id="extern"),
                    args=[symbol, digest, ast.Tuple(elts=read), ast.Tuple(elts=written)],
                )
            ):
                function = self.called(node, self.string(symbol), self.string(digest))
                return Extern(
                    function, tuple(map(self.buffer, read)), tuple(map(self.buffer, written))
                )
        raise self.error(
            node,
            f"'{ast.unparse(node).splitlines()[0]}' is no statement of the language.",
            code="parse-statement",
        )

    def fragment(self, node: ast.expr) -> Fragment:
        match node:
            case ast.Call(func=ast.Name(id=how), args=elements) if how in HELD:
                return Fragment(HELD[how], tuple(map(self.load, elements)))
        raise self.error(
            node,
            f"'{ast.unparse(node)}' stands for a factor; expected one of {', '.join(HELD)}, of "
            "elements of a buffer.",
            code="parse-fragment",
        )

    def called(self, node: ast.stmt, symbol: str, digest: str) -> ExternFunction | StepFunction:
        step = step_named(symbol)
        if step is not None:
            return step
        if (symbol, digest) in self.externs:
            return self.externs[symbol, digest]
        given = ", ".join(f"'{one}' ({text})" for one, text in self.externs) or "none"
        raise self.error(
            node,
            f"the text calls the C function '{symbol}' ({digest}), which it does not hold; "
            f"given are {given}.",
            code="parse-extern",
            hints=("parse(text, externs=func.externs), with the function that was printed.",),
        )

    def store(self, target: ast.Subscript, value: ast.expr) -> Store:
        mask: Expr | None = None
        element: ast.expr = target
        match target.value:
            case ast.Call(func=ast.Name(id="masked"), args=[place, condition]):
                element, mask = place, self.expr(condition)
        load = self.load(element)
        return Store(load.buffer, load.indices, self.expr(value), mask)

    def loop(self, node: ast.For) -> For:
        match node.iter:
            case ast.Call(func=ast.Name(id=word), args=[extent]) if word in KINDS:
                options = {item.arg: item.value for item in node.iter.keywords}
                tail = self.string(options.pop("tail")) if "tail" in options else None
                name = self.string(options.pop("intrinsic")) if "intrinsic" in options else ""
                axis = self.string(options.pop("axis")) if "axis" in options else ""
                hints = tuple((key, options.pop(key)) for key in ANNOTATIONS if key in options)
                if not options and (tail is None or tail in TAILS):
                    assert isinstance(node.target, ast.Name)
                    var = Var(node.target.id)
                    count = self.integer(extent)
                    body = self.inside({var.name: var}, node.body)
                    values = tuple((key, self.integer(value)) for key, value in hints)
                    cut = TAILS.get(tail or "")
                    return For(var, count, KINDS[word], body, cut, values, name, axis)
        raise self.error(
            node,
            f"a loop runs over '{ast.unparse(node.iter)}'; expected "
            f"{', '.join(f'{word}(n)' for word in KINDS)}, with tail= one of {', '.join(TAILS)}.",
            code="parse-loop",
        )

    def block(self, node: ast.With, call: ast.Call) -> Block:
        match call:
            case ast.Call(func=ast.Name(id="block"), args=[title]):
                name = self.string(title)
            case _:
                raise self.error(
                    node,
                    f"'with {ast.unparse(call)}' stands here; "
                    'expected with block("name", v=spatial(extent, value), ...).',
                    code="parse-block",
                )
        iters: list[IterVar] = []
        bindings: list[Expr] = []
        role, family, marks = Role.COMPUTE, name, {"padded": False, "recomputed": False}
        for word in call.keywords:
            match word.value:
                case ast.Call(func=ast.Name(id=kind), args=[extent, value]) if kind in ITERS:
                    iters.append(iter_var(Var(str(word.arg)), self.extent(extent), ITERS[kind]))
                    bindings.append(self.expr(value))
                case ast.Constant(value=True) if word.arg in marks:
                    marks[word.arg] = True
                case ast.Constant(value=str()) if word.arg in ("family", *ROLES):
                    role = ROLES.get(word.arg, Role.COMPUTE)
                    family = self.string(word.value)
                case _:
                    raise self.error(
                        node,
                        f"block '{name}' has {word.arg}={ast.unparse(word.value)}; "
                        "expected v=spatial(extent, value), v=reduce(extent, value), family, init "
                        'or copy="name", padded=True or recomputed=True.',
                        code="parse-iteration",
                    )
        outer = self.names
        self.names = {**outer, **{iteration.var.name: iteration.var for iteration in iters}}
        predicate, counts, init, rest = self.block_head(node.body)
        body = self.suite(rest)
        self.names = outer
        return Block(
            name,
            tuple(iters),
            tuple(bindings),
            body,
            init,
            predicate,
            role,
            family,
            **marks,
            counts=counts,
        )

    def block_head(
        self, nodes: Sequence[ast.stmt]
    ) -> tuple[Expr, Expr, Stmt | None, Sequence[ast.stmt]]:
        """The predicate, the points that count, the init and the other statements of a block."""
        predicate: Expr = TRUE
        counts: Expr = TRUE
        init: Stmt | None = None
        match nodes:
            case [ast.Expr(value=ast.Call(func=ast.Name(id="where"), args=[condition])), *_]:
                predicate, nodes = self.expr(condition), nodes[1:]
        match nodes:
            case [ast.Expr(value=ast.Call(func=ast.Name(id="counts"), args=[condition])), *_]:
                counts, nodes = self.expr(condition), nodes[1:]
        match nodes:
            case [
                ast.With(
                    items=[ast.withitem(context_expr=ast.Call(func=ast.Name(id="init")))]
                ) as head,
                *_,
            ]:
                init, nodes = self.suite(head.body), nodes[1:]
        return predicate, counts, init, nodes


def _scoped_name(node: ast.stmt) -> str | None:
    """The name that a statement binds for those that follow it."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return None


def _deletes(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.Delete(targets=[ast.Name(id=deleted)]):
            return deleted == name
    return False
