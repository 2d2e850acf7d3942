"""A LOWERED function as C text: one static function with the loops, one entry with the ABI of
generated code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ...tir.analysis.narrow import narrowed
from ...tir.buffer import Buffer
from ...tir.dim import Dim, Extent
from ...tir.errors import TargetError
from ...tir.expr import Const, Var
from ...tir.func import PrimFunc
from ...tir.stmt import (
    Alloc,
    Barrier,
    Extern,
    For,
    ForKind,
    If,
    LetStmt,
    Parameter,
    Prefetch,
    Seq,
    Stmt,
    Store,
)
from ...tir.target.target import Target
from ...tir.visit import statements, stores
from ..isa.isa import isa
from ..text.lines import Lines, wrapped
from ..text.marked import MarkedText, joined
from ..text.names import mangle
from ..text.statements import Statements
from .dialect import C
from .externs import with_externs
from .frame import prelude
from .stops import Alone, alone, stopped
from .sums import unsigned_sums
from .vectors import Vectors
from .workspace import Workspace, is_local, plan_workspace

_LOCALITY = {1: 3, 2: 2, 3: 1}  # cache level -> what __builtin_prefetch calls it


def emit(func: PrimFunc, target: Target, symbol: str) -> str:
    """The C source of one function: `symbol` is its entry.

    Requires: stage LOWERED, for this target. Raises: InternalError where a pass left what C has no
    text for.
    """
    body = emit_function(func, target, symbol)
    return f"{prelude(target, body)}\n{with_externs(body, func)}"


def emit_function(
    func: PrimFunc, target: Target, symbol: str, *, static: bool = False
) -> MarkedText:
    """The definitions of one function, to stand below the text of `frame.prelude`.

    static: the entry is called by another one in the same source.
    """
    return _FunctionWriter(func, target, symbol).text(static)


@dataclass(frozen=True, slots=True)
class _Argument:
    """A parameter of the static function: its declaration, and what the entry passes."""

    declaration: str
    value: str


class _FunctionWriter(Statements[Vectors]):
    def __init__(self, func: PrimFunc, target: Target, symbol: str) -> None:
        self.func = func
        self.symbol = symbol
        self.isa = isa(target)
        super().__init__(C, Vectors(Lines(), self.isa, unsigned_sums(func)))
        for function in func.externs:
            self.lines.names.reserve(function.symbol)
        self.workspace: Workspace = plan_workspace(func)

    def text(self, static: bool) -> MarkedText:
        """The static function and the entry."""
        arguments = self._arguments()
        self._root(self.func.body)
        name = f"{self.symbol}_body"
        declared = wrapped([a.declaration for a in arguments] or ["void"], "    ")
        head = f"static __attribute__((noinline)) void\n{name}({declared})"
        passed = ", ".join(a.value for a in arguments)
        slices = self._workspace_pointers()
        uses = _words(" ".join([passed, *slices]))
        unused = [n for n in ("args", "team", "thread", "threads") if n not in uses]
        entry = [
            f"{'static ' if static else ''}void {self.symbol}(void *const *args, const struct "
            "tw_team *team, "
            "int thread, int threads)",
            "{",
            *([f"    {', '.join(f'(void){n}' for n in unused)};"] if unused else []),
            *slices,
            f"    {name}({wrapped([a.value for a in arguments], '        ')});",
            "}",
        ]
        used = frozenset(_words(self._body()))
        ignored = [n for n in (_words(a.declaration)[-1] for a in arguments) if n not in used]
        first = [f"    {', '.join(f'(void){n}' for n in ignored)};"] if ignored else []
        return joined([self._title(), head, "{", *first, self._body(), "}", "", *entry, ""])

    def _body(self) -> MarkedText:
        return joined([*self.lines.top, *self.lines.listed])

    def _title(self) -> str:
        listed = [
            f"{p.role} {self.lines.names[p.buffer]}: "
            f"{p.buffer.type}[{', '.join(map(self._extent, p.buffer.extents))}]"
            for p in self.func.parameters
        ]
        listed += [f"size {self.lines.names[d]}: {d.low} to {d.high}" for d in self.func.dims]
        return f"/* {mangle(self.func.name)}({wrapped(listed, '   ')}) */"

    def _extent(self, extent: Extent) -> str:
        return self.lines.names[extent] if isinstance(extent, Dim) else str(extent)

    def _arguments(self) -> list[_Argument]:
        """The arguments. Where threads wait for each other, what one writes another may read: then
        only what nobody writes, and what a thread owns, is `restrict`.
        """
        written = {store.buffer for store in stores(self.func.body)}
        statements = _root_statements(self.func.body)
        waits = any(isinstance(s, Barrier) for s in statements)
        arguments = [
            self._pointer(p, position, p.buffer in written, waits)
            for position, p in enumerate(self.func.parameters)
        ]
        for position, dim in enumerate(self.func.dims, len(arguments)):
            name = self.lines.names.declare(dim)
            arguments.append(_Argument(f"int64_t {name}", f"(int64_t)(intptr_t)args[{position}]"))
        if self.workspace.shared:
            pointer = "char *" if waits else "char *restrict "
            arguments.append(_Argument(f"{pointer}workspace", "workspace"))
        if self.workspace.own:
            arguments.append(_Argument("char *restrict own", "own"))
        if waits:
            arguments.append(_Argument("const struct tw_team *team", "team"))
        if statements:
            arguments.append(_Argument("int thread", "thread"))
        if any(_is_parallel(s) for s in statements):
            arguments.append(_Argument("int threads", "threads"))
        return arguments

    def _pointer(
        self, parameter: Parameter, position: int, written: bool, waits: bool
    ) -> _Argument:
        kind = self.pointer(parameter.buffer, written=written)
        name = self.lines.names.declare(parameter.buffer)
        alone = "" if written and waits else "restrict "
        return _Argument(f"{kind}{alone}{name}", f"({kind})args[{position}]")

    def _workspace_pointers(self) -> list[str]:
        if not self.workspace.shared and not self.workspace.own:
            return []
        position = len(self.func.parameters) + len(self.func.dims)
        lines = [f"    char *const workspace = (char *)args[{position}];"]
        if self.workspace.own:
            offset = f"{self.workspace.shared_bytes} + (size_t)thread * {self.workspace.own_bytes}"
            lines.append(f"    char *const own = workspace + {offset};")
        return lines

    # -- the root: what each thread does

    def _root(self, stmt: Stmt) -> None:
        while isinstance(stmt, Alloc):
            stmt = self.allocations(stmt)
        alone: list[Stmt] = []  # neighbours that thread 0 runs
        for part in stmt.body if isinstance(stmt, Seq) else (stmt,):
            if not isinstance(part, Barrier | Alloc | Seq) and not _is_parallel(part):
                alone.append(part)
                continue
            self._thread_zero(alone)
            alone = []
            if isinstance(part, Barrier):
                self.lines.add(self.dialect.barrier)
            elif isinstance(part, For):
                with self.lines.marked(part):
                    self._shared_loop(part)
                self._fence()
            else:
                self._root(part)
        self._thread_zero(alone)

    def _thread_zero(self, statements: Sequence[Stmt]) -> None:
        if statements:
            with self.lines.block("if (thread == 0) {"):
                for statement in statements:
                    self.stmt(statement)
                self._fence()

    def _fence(self) -> None:
        """Behind stores that went past the caches: they are done before what comes next."""
        if self.expressions.streamed:
            self.lines.add(self.isa.fence)
        self.expressions.streamed = False

    def _shared_loop(self, loop: For) -> None:
        """Each thread runs one contiguous share of a parallel loop."""
        count, loop = self._iterations(loop)
        last = self.lines.names.fresh(f"{loop.var.name}_end")
        start, end = (f"{count} * {n} / threads" for n in ("thread", "(thread + 1)"))
        self.lines.add(f"const int64_t {last} = {end};")
        with self.counting(loop, start, last, self._comment(loop)), self._streaming(loop):
            self.stmt(loop.body)

    def _iterations(self, loop: For) -> tuple[str, For]:
        """How many iterations a loop has, as an int64 in C, and the loop with its body for them."""
        count, kept = stopped(loop, self.lines.ranges)
        if isinstance(count, Const):
            return f"(int64_t){count.value}", kept
        if isinstance(count, Var):
            return self.expressions.scalar(count), kept
        text = self.expressions.scalar(count)
        return self.lines.keep("int64_t", f"{loop.var.name}_count", text), kept

    # -- statements

    def stmt(self, stmt: Stmt) -> None:
        """Append the lines of a statement."""
        while isinstance(
            stmt, Alloc | LetStmt
        ):  # a chain of them may be longer than Python's stack
            stmt = self.allocations(stmt) if isinstance(stmt, Alloc) else self._let(stmt)
        with self.lines.marked(stmt):
            self._statement(stmt)

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Seq():
                for child in stmt.body:
                    self.stmt(child)
            case For():
                self._loop(stmt)
            case If():
                self.branch(stmt, self.stmt)
            case Store():
                self.lines.add(f"{self.expressions.store(stmt)};")
            case Prefetch():
                self._prefetch(stmt)
            case Extern():
                names = (self.lines.names[b] for b in (*stmt.inputs, *stmt.outputs))
                self.lines.add(f"{stmt.function.symbol}({', '.join(names)});")
            case _:
                raise TypeError(f"c: no statement for {type(stmt).__name__}")

    def _let(self, stmt: LetStmt) -> Stmt:
        with self.lines.marked(stmt):
            self.expressions.bind(stmt.var, stmt.value)
        return stmt.body

    def _loop(self, loop: For) -> None:
        if loop.kind is ForKind.BOUND:
            raise TargetError(
                f"c: loop '{loop.var.name}' of '{self.func.name}' is bound to {loop.axis}; "
                "expected a schedule for a CPU, which has no grid.",
                code="c-grid",
                hints=("tw.build(..., target='cuda:sm_90a'), or sch.parallel(loop).",),
            )
        one = alone(loop, self.lines.ranges)
        if one is not None:
            self._single(loop, one)
            return
        count, loop = self._iterations(loop)
        end = count.removeprefix("(int64_t)")
        with self.counting(loop, "0", end, self._comment(loop)), self._streaming(loop):
            self.stmt(loop.body)

    def _single(self, loop: For, one: Alone) -> None:
        """The one iteration of a loop in which it may do something."""
        self.lines.declare("int64_t", loop.var, self.expressions.scalar(one.value))
        around = self.lines.ranges
        self.lines.ranges = narrowed({**around, loop.var: (0, loop.extent - 1)}, one.known)
        head = f"if ({self.expressions.scalar(one.test)}) {{"
        with self.lines.block(f"{head}{self._comment(loop, 'last of')}"), self._streaming(loop):
            self.stmt(one.body)
        self.lines.ranges = around

    @contextmanager
    def _streaming(self, loop: For) -> Iterator[None]:
        """Below a loop marked "stream", vectors that go to parameters go past the caches."""
        before = self.expressions.streams
        if "stream" in dict(loop.annotations):
            self.expressions.streams = frozenset(p.buffer for p in self.func.parameters)
        yield
        self.expressions.streams = before

    def _comment(self, loop: For, kind: str = "") -> str:
        """Which loop this is, and which tensors it computes."""
        own = {node.buffer for node in statements(loop.body) if isinstance(node, Alloc)}
        made = {
            _tensor(s.buffer) for s in stores(loop.body) if s.buffer.origin or s.buffer not in own
        }
        listed = sorted({mangle(buffer.name) for buffer in made})
        return (
            f" /* {kind or loop.kind.value} {mangle(loop.var.name)}: {', '.join(listed)} */"
            if listed
            else ""
        )

    def _prefetch(self, stmt: Prefetch) -> None:
        place = self.expressions.place(stmt.buffer, stmt.indices)
        self.lines.add(f"__builtin_prefetch(&{place}, {int(stmt.write)}, {_LOCALITY[stmt.level]});")

    # -- allocations

    def variable_type(self, buffer: Buffer) -> str | None:
        if buffer.shape or not is_local(buffer):
            return None
        vector = buffer.type.lanes > 1
        return (
            self.expressions.held_type(buffer.type)
            if vector
            else self.expressions.element_type(buffer)
        )

    def initial(self, buffer: Buffer) -> str:
        return " = {0}" if buffer.type.lanes > 1 else " = 0"

    def declare_array(self, buffer: Buffer) -> None:
        """A pointer into the workspace, or a small array."""
        kind = self.expressions.element_type(buffer)
        name = self.lines.names.declare(buffer)
        if is_local(buffer):
            self.lines.add(f"{kind} {name}[{max(1, buffer.room)}];")
            return
        base, places = (
            ("workspace", self.workspace.shared)
            if buffer in self.workspace.shared
            else ("own", self.workspace.own)
        )
        self.lines.add(f"{kind} *const {name} = ({kind} *)({base} + {places[buffer]});")


def _is_parallel(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind is ForKind.PARALLEL


def _root_statements(stmt: Stmt) -> list[Stmt]:
    """The statements at the root, looking into allocations."""
    found: list[Stmt] = []
    stack = [stmt]
    while stack:
        top = stack.pop()
        if isinstance(top, Alloc):
            stack.append(top.body)
        elif isinstance(top, Seq):
            stack += reversed(top.body)
        else:
            found.append(top)
    return found


def _tensor(buffer: Buffer) -> Buffer:
    """The tensor whose elements a buffer holds."""
    while buffer.origin is not None:
        buffer = buffer.origin
    return buffer


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)
