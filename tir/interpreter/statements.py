"""Statements as Python text: `python_program` writes the function that the interpreter executes.

The text defines `run(arrays, watch)`: arrays are the flat arrays of the parameters in order; watch
is None, or the `Watch` of a checked run. Storage of an Alloc is made once, its meaning (fresh on
every entry) is kept by the checks and by the number that a reduction's init compares. Python allows
twenty nested loops, so every tenth opens an inner function.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..analysis.threads import joined_by
from ..buffer import Buffer, Load
from ..expr import TRUE
from ..func import PrimFunc
from ..initialise import begin_empty
from ..reference.arithmetic import poisoned
from ..stmt import (
    SHARED_OUT,
    Alloc,
    Barrier,
    Block,
    Commit,
    Extern,
    For,
    ForKind,
    If,
    IterKind,
    LetStmt,
    Prefetch,
    Role,
    Seq,
    Stmt,
    Store,
)
from ..text.printer import Names, print_expr, print_stmt
from ..visit import statements
from .checks import Cells, Points, Site
from .expressions import ExprWriter, Text
from .externs import plain, watched
from .memory import CheckedMemory, Memory

LOOPS_PER_FUNCTION = 10
AT_ONCE = (*SHARED_OUT, ForKind.VECTORIZED)


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """A function as Python text.

    constants: the values that the text names. sites: the statements that a checked run names in its
    messages.
    slots: the number of loops, each of which keeps its value in one slot of a Watch.
    """

    source: str
    constants: dict[str, object]
    sites: tuple[Site, ...]
    slots: int


def python_program(
    func: PrimFunc, *, checked: bool = False, barriers: bool = False, whole: bool = True
) -> PythonProgram:
    """The Python text of a function of any stage.

    Raises: InterpreterError for names that nothing binds.
    """
    return _FuncWriter(begin_empty(func), checked, barriers).program(whole)


def restart(
    states: dict[object, tuple[int, set[object]]], element: object, generation: int, point: object
) -> bool:
    """Whether a recomputed reduction begins anew: on new storage, or when a point comes back."""
    state = states.get(element)
    if state is None or state[0] != generation or point in state[1]:
        states[element] = generation, {point}
        return True
    state[1].add(point)
    return False


class _FuncWriter(ExprWriter):
    def __init__(self, func: PrimFunc, checked: bool, barriers: bool) -> None:
        self.cells = CheckedMemory()
        super().__init__(self.cells if checked else Memory())
        self.func = func
        self.checked = checked
        self.barriers = barriers
        self.prologue: list[str] = []
        self.names = Names()
        self.loops: list[tuple[str, int]] = []
        self.slots = 0
        self.nesting = 0
        self.level = 0
        self.sites: list[Site] = []
        self.stored = {node.buffer for node in statements(func.body) if isinstance(node, Store)}
        self.families: dict[tuple[str, str], str] = {}
        self.generations: dict[Buffer, str] = {}
        self.constants |= {"restart": restart, "Cells": Cells, "Points": Points}
        self.constants |= {"poisoned": poisoned, "fresh": itertools.count(1).__next__}

    def program(self, whole: bool) -> PythonProgram:
        for number, parameter in enumerate(self.func.parameters):
            self.declare(parameter.buffer, f"arrays[{number}]", parameter.role == "output")
        self.stmt(self.func.body)
        for parameter in self.func.parameters:
            if self.checked and whole and parameter.role == "output":
                self.emit(f"{self.memory.names[parameter.buffer]}.close()")
        head = ["def run(arrays, watch):", " new = 0"]
        if self.checked:
            head.append(" at = watch.values")
        text = "\n".join([*head, *self.prologue, *self.lines])
        return PythonProgram(text, self.constants, tuple(self.sites), self.slots)

    def declare(self, buffer: Buffer, storage: str, unwritten: bool) -> str:
        """Bring a buffer into scope; its array, or its Cells, is made before everything else."""
        name = self.fresh("b")
        self.names[buffer]
        self.memory.names[buffer] = name
        if self.checked:
            if not unwritten and buffer not in self.stored:
                self.cells.unwritten[buffer] = storage = self.plain(storage)
            described = self.constant(("buffer", buffer), buffer)
            ready = "set()" if unwritten else "None"
            storage = f"Cells({described}, {storage}, watch, {ready}, {self.level})"
        self.prologue.append(f" {name} = {storage}")
        return name

    def plain(self, storage: str) -> str:
        """The name of a flat array, made before everything else."""
        name = self.fresh("a")
        self.prologue.append(f" {name} = {storage}")
        return name

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case For():
                self.loop(stmt)
            case Seq():
                for child in stmt.body:
                    self.stmt(child)
            case Store():
                self.store(stmt)
            case Block():
                self.block(stmt)
            case If():
                self.condition(stmt)
            case LetStmt():
                self.visit_site(stmt, lambda: f"{stmt.var.name} = {print_expr(stmt.value)}")
                self.bound[stmt.var] = self.keep(self.expr(stmt.value))
                self.names[stmt.var]
                self.stmt(stmt.body)
            case Alloc():
                self.alloc(stmt)
            case Barrier():
                if self.checked and self.level == 0:  # the end of a loop of threads is one
                    self.emit("watch.barrier()")
            case Extern():
                self.extern(stmt)
            case Prefetch() | Commit():
                pass
            case _:
                raise TypeError(f"interpreter: no meaning for {type(stmt).__name__}")

    def body(self, write: Callable[[], None]) -> None:
        """An indented body; `pass` when it is empty."""
        self.indent += 1
        before = len(self.lines)
        write()
        if len(self.lines) == before:
            self.emit("pass")
        self.indent -= 1

    def loop(self, loop: For) -> None:
        if self.nesting == LOOPS_PER_FUNCTION:
            inner, outer, self.nesting = self.fresh("f"), self.nesting, 0
            self.emit(f"def {inner}():")
            self.body(partial(self.loop, loop))
            self.emit(f"{inner}()")
            self.nesting = outer
            return
        name, hint = self.fresh("v"), self.names[loop.var]
        slot, self.slots = self.slots, self.slots + 1
        self.bound[loop.var] = Text(name, 0, max(0, loop.extent - 1))
        outer_level = self.level
        level = self.open_level(loop, hint)
        self.emit(f"for {name} in range({loop.extent}):")
        self.loops.append((hint, slot))
        self.nesting += 1

        def write() -> None:
            if self.checked:
                self.emit(f"at[{slot}] = {name}")
            if level is not None:
                self.emit(f"watch.step({level}, {name}, {loop.extent})")
            self.stmt(loop.body)

        self.body(write)
        self.nesting -= 1
        self.loops.pop()
        self.names.release(loop.var)
        if level is not None:
            self.emit(f"watch.leave({level})")
        self.level = outer_level

    def open_level(self, loop: For, hint: str) -> int | None:
        """Enter a loop that may run its iterations at once: the number of its level in a checked
        run.
        """
        if not self.checked or loop.kind not in AT_ONCE or joined_by(loop) is not None:
            return None
        at_root = self.barriers and self.level == 0
        level = 1 if at_root and loop.kind not in SHARED_OUT else self.level
        self.level = level + 1
        self.emit(f"watch.enter({level}, {hint!r})")
        return level

    def condition(self, stmt: If) -> None:
        self.visit_site(stmt, lambda: f"if {print_expr(stmt.condition)}:")
        self.emit(f"if {self.expr(stmt.condition)}:")
        self.body(lambda: self.stmt(stmt.then))
        if stmt.orelse is not None:
            orelse = stmt.orelse
            self.emit("else:")
            self.body(lambda: self.stmt(orelse))

    def visit_site(self, stmt: Stmt, text: Callable[[], str] | None = None) -> None:
        """Make `stmt` the statement that messages name."""
        if self.checked:
            self.memory.site = len(self.sites)
            self.sites.append(Site(text or (lambda: print_stmt(stmt)), tuple(self.loops)))

    def store(self, store: Store) -> None:
        self.computed(store, named=False)()

    def computed(self, store: Store, *, named: bool) -> Callable[[], None]:
        """Compute what a store writes, as a value of its own name; what is returned writes it."""
        self.visit_site(store)
        place = self.place(store)
        copies = self.checked and isinstance(store.value, Load)
        if isinstance(store.value, Load) and copies:
            value = self.load(store.value, peek=True)
        else:
            value = self.expr(store.value)
        kept = self.keep(value) if named else value
        return lambda: self.emit(self.memory.store(store, place, kept.text, copies))

    def extern(self, stmt: Extern) -> None:
        self.visit_site(stmt)
        names = (self.memory.array(buffer) for buffer in (*stmt.inputs, *stmt.outputs))
        call = self.constant(("extern", stmt), partial(watched if self.checked else plain, stmt))
        self.emit(f"{call}({self.memory.site}, {', '.join(names)})")

    def alloc(self, alloc: Alloc) -> None:
        buffer = alloc.buffer
        lanes = (buffer.type.lanes,) if buffer.type.lanes > 1 else ()
        shape = (buffer.size, *lanes)
        kind = self.constant(("dtype", buffer.type.scalar), buffer.type.scalar)
        name = self.declare(buffer, f"poisoned({shape}, {kind})", True)
        if self.checked:
            self.emit(f"{name}.fresh()")
        generation = self.generations[buffer] = self.fresh("g")
        self.emit(f"{generation} = fresh()")
        self.stmt(alloc.body)
        del self.memory.names[buffer], self.generations[buffer]

    def block(self, block: Block) -> None:
        for iteration, binding in zip(block.iters, block.bindings, strict=True):
            value = self.expr(binding)
            if not value.text.isidentifier():
                name = self.fresh("v")
                self.emit(f"{name} = {value}")
                value = Text(name, value.low, value.high)
            self.bound[iteration.var] = value
            self.names[iteration.var]
        if block.predicate == TRUE:
            self.run_block(block)
        else:
            self.visit_site(block, lambda: f"where({print_expr(block.predicate)})")
            self.emit(f"if {self.expr(block.predicate)}:")
            self.body(partial(self.run_block, block))
        self.names.release(*(iteration.var for iteration in block.iters))

    def run_block(self, block: Block) -> None:
        if self.checked:
            self.watch_block(block)
        if block.init is not None:
            self.initialise(block)
        if block.counts == TRUE:
            self.stores(block.body)
        else:
            self.visit_site(block, lambda: f"counts({print_expr(block.counts)})")
            self.emit(f"if {self.expr(block.counts)}:")
            self.body(partial(self.stores, block.body))

    def stores(self, body: Stmt) -> None:
        """The body of a block: the values of all its stores are computed before any is written."""
        if not isinstance(body, Seq):
            self.stmt(body)
            return
        made: list[tuple[int, Callable[[], None]]] = []
        for store in body.body:
            assert isinstance(store, Store)
            write = self.computed(store, named=True)
            made.append((self.memory.site, write))
        for site, write in made:
            self.memory.site = site
            write()

    def watch_block(self, block: Block) -> None:
        own = block.body if isinstance(block.body, Extern) else block
        stored = next((node for node in statements(own) if isinstance(node, Extern | Store)), block)
        self.visit_site(stored)
        once = block.role is Role.COMPUTE and not block.recomputed
        points = self.family("points", block, "Points(watch)")
        names = tuple(self.names[iteration.var] for iteration in block.iters)
        point = self.point(block, None)
        common = f"{self.memory.site}, {block.name!r}, {names}, {point}"
        bounded = all(
            self.bound[i.var].low >= 0 and self.bound[i.var].high < i.extent for i in block.iters
        )
        if not block.padded and not bounded:
            extents = tuple(iteration.extent for iteration in block.iters)
            self.emit(f"{points}.inside({common}, {extents})")
        if once:
            self.emit(f"{points}.once({common})")

    def initialise(self, block: Block) -> None:
        """Run a block's init before the first executed update of its element."""
        assert block.init is not None
        found = [self.generation(n.buffer) for n in statements(block.init) if isinstance(n, Store)]
        generation = found[0] if len(found) == 1 else f"({', '.join(found)})"
        element = self.point(block, IterKind.SPATIAL)
        if block.recomputed:
            states = self.family("states", block, "{}")
            point = self.point(block, IterKind.REDUCE)
            self.emit(f"if restart({states}, {element}, {generation}, {point}):")
        else:
            states = self.family("begun", block, "{}")
            self.emit(f"if {states}.get({element}) != {generation}:")
            self.emit(f" {states}[{element}] = {generation}")
        init = block.init
        self.body(lambda: self.stores(init))

    def generation(self, buffer: Buffer) -> str:
        """The number of the storage that a buffer's elements belong to: that of the tensor behind
        it.
        """
        found = self.generations.get(buffer, "new")
        while buffer.origin is not None:
            buffer = buffer.origin
            if buffer in self.memory.names:
                found = self.generations.get(buffer, "new")
        return found

    def family(self, what: str, block: Block, made: str) -> str:
        """The name of a state that all blocks of one family share for a whole run."""
        key = what, block.family or block.name
        if key not in self.families:
            self.families[key] = self.fresh("d")
            self.prologue.append(f" {self.families[key]} = {made}")
        return self.families[key]

    def point(self, block: Block, kind: IterKind | None) -> str:
        """The values of a block's iteration variables as a Python tuple."""
        values = [self.bound[i.var].text for i in block.iters if kind in (None, i.kind)]
        return f"({', '.join(values)},)" if values else "()"
