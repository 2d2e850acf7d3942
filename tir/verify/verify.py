"""Is a function what its stage promises? The specification of each stage is data; a failure is a
defect of ours.

Beyond the nodes that a stage admits, a function of every stage satisfies:
- variables are bound before they are used, once; buffers are parameters or allocated around their
  use, once;
- an access has one integer index per dimension; a Store's value has the type of what it is stored
  in;
- operands have one type; conditions, predicates and masks are truth values, one per lane;
- a block has as many bindings as iteration variables, and its body stores, each time to another
  buffer, or is an Extern; where it reads other elements of these it has an ordered variable;
  Barriers and Externs stand at the root.
"""

from __future__ import annotations

from enum import Enum

from ..analysis.linear import linear
from ..buffer import Buffer, Load
from ..dim import Dim
from ..errors import IRError
from ..expr import (
    TRUE,
    Expr,
    Let,
    Var,
)
from ..func import PrimFunc
from ..stmt import (
    Alloc,
    Barrier,
    Block,
    Extern,
    For,
    If,
    IterKind,
    LetStmt,
    Prefetch,
    Role,
    Seq,
    Stmt,
    Store,
    WarpSum,
)
from ..text.printer import print_expr, print_stmt
from ..visit import free_vars, loads, stores
from .loops import barrier_problem, loop_problem
from .specs import (
    CONTRACTED,
    CONTRACTED_TO_NEST,
    LOWERED,
    NEST,
    NEST_TO_LOWERED,
    SCHEDULED,
    TENSOR,
    StageSpec,
)
from .types import access_problem, extern_problem, type_problem


class Stage(Enum):
    """Where a function stands on its way from te to source text."""

    TENSOR = "tensor"
    SCHEDULED = "scheduled"
    CONTRACTED = "contracted"
    NEST = "nest"
    LOWERED = "lowered"


SPECS = {
    Stage.TENSOR: TENSOR,
    Stage.SCHEDULED: SCHEDULED,
    Stage.CONTRACTED: CONTRACTED,
    Stage.NEST: NEST,
    Stage.LOWERED: LOWERED,
}
UNDERWAY = {Stage.NEST: CONTRACTED_TO_NEST, Stage.LOWERED: NEST_TO_LOWERED}


class VerificationError(IRError):
    """A function breaks an invariant of its stage: a defect of tilewright itself."""


def verify(func: PrimFunc, stage: Stage, *, underway: bool = False) -> None:
    """Check a function against the specification of its stage. underway: passes are bringing it to
    this stage, NEST or LOWERED; it may still hold what the stage before admits.

    Raises: VerificationError, which names the invariant and the text of the node that breaks it.
    """
    _Verifier(func, stage, (UNDERWAY if underway else SPECS)[stage]).run()


class _Verifier:
    def __init__(self, func: PrimFunc, stage: Stage, spec: StageSpec) -> None:
        self.func = func
        self.stage = stage
        self.spec = spec
        self.here: Stmt = func.body
        self.around: list[For] = []
        self.bound: set[Var] = set()
        self.live: set[Var] = set()
        self.declared: set[Buffer] = set()
        self.buffers: set[Buffer] = set()
        self.blocks: set[str] = set()

    def run(self) -> None:
        order = [parameter.role for parameter in self.func.parameters]
        outputs = order.count("output")
        if not set(order) <= {"input", "constant", "prepared", "output"} or not outputs:
            raise self.error(
                f"the parameters have roles {', '.join(order)}; "
                "expected inputs and constants, then at least one output",
                code="verify-parameter",
            )
        if "output" in order[:-outputs]:
            raise self.error(
                f"the parameters have roles {', '.join(order)}; expected outputs last",
                code="verify-parameter-order",
            )
        checks = [parameter.check is not None for parameter in self.func.parameters]
        if checks != sorted(checks) or sum(checks) >= outputs:
            raise self.error(
                "a check stands among the results; expected results, then checks",
                code="verify-check-order",
            )
        told = {d for buffer in self.func.inputs for d in buffer.dims}
        for dim in self.func.dims:
            if dim not in told and dim not in self.func.sizes:
                raise self.error(
                    f"no input has the size '{dim.name}'; expected one that tells it",
                    code="verify-dim-input",
                )
            self.bind(dim)
        for fact in self.func.facts:
            form = linear(fact)
            if not all(isinstance(atom, Dim) and atom in self.live for atom, _ in form.terms):
                raise self.error(
                    f"a fact is {print_expr(fact)}; expected a linear form of the function's dims",
                    code="verify-fact",
                )
        for parameter in self.func.parameters:
            self.declare(parameter.buffer)
        self.stmt(self.func.body, True)

    def error(self, message: str, *, code: str) -> VerificationError:
        """An error that shows the statement that is being verified."""
        lines = print_stmt(self.here).splitlines()
        shown = lines[:6] + (["..."] if len(lines) > 6 else [])
        return VerificationError(
            f"verify: {message}.",
            code=code,
            where="\n    ".join([f"in {self.func.name}, stage {self.stage.value}:", *shown]),
            hints=(
                "this is a defect of tilewright; please report it with the program that led here.",
            ),
        )

    def declare(self, buffer: Buffer) -> None:
        if buffer in self.declared:
            raise self.error(f"buffer '{buffer.name}' is declared twice", code="verify-declared")
        folded = self.stage in (Stage.NEST, Stage.LOWERED)  # the origin's storage may be shared
        if not folded and buffer.origin is not None and buffer.origin not in self.buffers:
            raise self.error(
                f"buffer '{buffer.name}' stages '{buffer.origin.name}', which is not in scope",
                code="verify-origin",
            )
        for dim, size in zip(buffer.dims, buffer.shape, strict=False):
            self.extent(dim, size, f"buffer '{buffer.name}'")
        self.admit_lanes(buffer)
        self.declared.add(buffer)
        self.buffers.add(buffer)

    def extent(self, dim: Dim | None, size: int, owner: str) -> None:
        """Check an extent that a dim decides: it is of this function, and `size` its bound."""
        if dim is not None and (dim not in self.live or dim.high != size):
            raise self.error(
                f"{owner} has extent {dim.name}, of at most {size}; expected a dim of the "
                "function, and its upper bound",
                code="verify-dim",
            )

    def bind(self, var: Var) -> None:
        if var in self.bound:
            raise self.error(f"variable '{var.name}' is bound twice", code="verify-bound")
        self.bound.add(var)
        self.live.add(var)

    def admit(self, node: Stmt | Expr) -> None:
        if type(node) not in self.spec.nodes:
            whole = print_stmt(node) if isinstance(node, Stmt) else print_expr(node)
            text = whole.split("\n", 1)[0]
            raise self.error(
                f"'{text}' is a node {type(node).__name__}, "
                f"which stage {self.stage.value} does not admit",
                code="verify-node",
            )

    def admit_lanes(self, node: Buffer | Expr) -> None:
        if node.dtype.lanes > 1 and not self.spec.vectors:
            text = node.name if isinstance(node, Buffer) else print_expr(node)
            raise self.error(
                f"'{text}' is {node.dtype}; stage {self.stage.value} admits scalars only",
                code="verify-lanes",
            )

    # statements

    def stmt(self, stmt: Stmt, root: bool) -> None:
        """Verify a statement; `root` tells whether it stands outside all loops and branches."""
        outer, self.here = self.here, stmt
        self.admit(stmt)
        match stmt:
            case Seq():
                for child in stmt.body:
                    self.stmt(child, root)
            case For():
                self.loop(stmt)
            case Store() | Prefetch():
                self.access(stmt)
            case Extern() if (problem := extern_problem(stmt, self.buffers, root)) is not None:
                raise self.error(problem, code="verify-extern")
            case Block():
                self.block(stmt, root)
            case If():
                self.condition(stmt.condition)
                self.stmt(stmt.then, False)
                if stmt.orelse is not None:
                    self.stmt(stmt.orelse, False)
            case LetStmt():
                self.expr(stmt.value)
                self.let(stmt)
                self.stmt(stmt.body, root)
                self.live.discard(stmt.var)
            case Alloc():
                self.declare(stmt.buffer)
                self.stmt(stmt.body, root)
                self.buffers.discard(stmt.buffer)
            case Barrier() if (found := barrier_problem(self.around, root)) is not None:
                raise self.error(found[0], code=found[1])
            case WarpSum():
                for store in stmt.sums:
                    self.access(store)
                for load in (*stmt.a.loads, *stmt.b.loads):
                    self.access(load)
        self.here = outer

    def let(self, stmt: LetStmt) -> None:
        if stmt.var.type != stmt.value.dtype:
            raise self.error(
                f"variable '{stmt.var.name}' is {stmt.var.type}, and its value {stmt.value.dtype}",
                code="verify-let",
            )
        self.bind(stmt.var)

    def loop(self, loop: For) -> None:
        if loop.kind not in self.spec.loops or (loop.tail is not None and not self.spec.tails):
            tail = "" if loop.tail is None else f" with tail {loop.tail.value}"
            raise self.error(
                f"loop '{loop.var.name}' is {loop.kind.value}{tail}, "
                f"which stage {self.stage.value} does not admit",
                code="verify-loop",
            )
        problem = loop_problem(loop, self.around)
        if problem is not None:
            raise self.error(problem[0], code=problem[1])
        self.bind(loop.var)
        self.around.append(loop)
        self.stmt(loop.body, False)
        self.around.pop()
        self.live.discard(loop.var)

    def block(self, block: Block, root: bool) -> None:
        self.block_form(block)
        for binding in block.bindings:
            self.expr(binding)
            if not binding.dtype.is_integer:
                raise self.error(
                    f"block '{block.name}' binds '{print_expr(binding)}', of type {binding.dtype}; "
                    "expected an integer",
                    code="verify-binding",
                )
        for iteration in block.iters:
            self.extent(iteration.dim, iteration.extent, f"axis '{iteration.var.name}'")
            self.bind(iteration.var)
        self.order(block)
        self.condition(block.predicate)
        self.counts(block)
        if isinstance(block.body, Extern) and not block.iters:
            self.stmt(block.body, root and block.predicate == TRUE)
            return
        for part in (block.init, block.body):
            if part is not None:
                self.stores(block, part)
        self.live -= {iteration.var for iteration in block.iters}

    def block_form(self, block: Block) -> None:
        """Check a block against the stage and its role."""
        if len(block.iters) != len(block.bindings):
            self.here = block.body  # the block itself has no text
            raise self.error(
                f"block '{block.name}' has {len(block.iters)} iteration variables "
                f"and {len(block.bindings)} bindings",
                code="verify-bindings",
            )
        spec = self.spec
        guarded = block.predicate != TRUE or block.padded or block.recomputed
        copies = block.role is not Role.COMPUTE
        problems = (
            (block.role not in spec.roles, f"role {block.role.value} is not admitted"),
            (guarded and not spec.guards, "a predicate or mark is not admitted"),
            (block.init is not None and not spec.init, "its init is not placed"),
            (
                any(it.dim is not None for it in block.iters) and not spec.dims,
                "an axis of an extent that a call decides is not admitted",
            ),
            (spec.unique_blocks and block.name in self.blocks, "another block has this name"),
            (not block.family, "it belongs to no family"),
            (copies and block.init is not None, f"role {block.role.value} has no init"),
        )
        for wrong, problem in problems:
            if wrong:
                raise self.error(f"block '{block.name}': {problem}", code="verify-block")
        self.blocks.add(block.name)

    def order(self, block: Block) -> None:
        """Check that a block which reads other elements of what it stores says in which order."""
        ordered = [it for it in block.iters if it.kind is IterKind.ORDERED]
        reduces = block.init is not None or any(it.kind is IterKind.REDUCE for it in block.iters)
        if len(ordered) > 1 or (ordered and (reduces or block.role is not Role.COMPUTE)):
            names = ", ".join(it.var.name for it in ordered)
            raise self.error(
                f"block '{block.name}' has ordered variables {names}; expected at most one, in a "
                "block that computes and does not reduce",
                code="verify-ordered",
            )
        if ordered or reduces or block.role is not Role.COMPUTE:
            return
        own = {store.buffer for store in stores(block.body)}
        at = {store.indices for store in stores(block.body)}
        other = [x for x in loads(block.body) if x.buffer in own and x.indices not in at]
        if other and self.spec.init:
            raise self.error(
                f"block '{block.name}' reads '{print_expr(other[0])}', an element of its own; "
                "expected an ordered variable",
                code="verify-own",
            )

    def counts(self, block: Block) -> None:
        """Check which points of a block count: a reduction may leave some out, by its own
        variables.
        """
        if block.counts == TRUE:
            return
        self.condition(block.counts)
        others = free_vars(block.counts) - {*self.func.dims, *(it.var for it in block.iters)}
        reduces = block.init is not None or any(it.kind is IterKind.REDUCE for it in block.iters)
        if others or not reduces or loads(block.counts):
            raise self.error(
                f"block '{block.name}' counts its points where "
                f"'{print_expr(block.counts)}' holds; expected a reduction, and a condition of its "
                "own iteration variables",
                code="verify-counts",
            )

    def stores(self, block: Block, body: Stmt) -> None:
        """Check that the body of a block stores, to different buffers, and does nothing else."""
        found = body.body if isinstance(body, Seq) else (body,)
        if not found or not all(isinstance(item, Store) for item in found):
            raise self.error(
                f"block '{block.name}' does more than store; expected stores alone",
                code="verify-body",
            )
        for item in found:
            self.stmt(item, False)
        targets = [item.buffer for item in found if isinstance(item, Store)]
        if len(set(targets)) != len(targets):
            raise self.error(
                f"block '{block.name}' stores twice to one buffer; expected stores to different "
                "buffers",
                code="verify-body-buffers",
            )

    # expressions

    def condition(self, condition: Expr) -> None:
        self.expr(condition)
        if not condition.dtype.is_bool or condition.dtype.lanes != 1:
            raise self.error(
                f"condition '{print_expr(condition)}' is {condition.dtype}; expected bool",
                code="verify-condition",
            )

    def access(self, access: Load | Store | Prefetch) -> None:
        """Verify an access and all the expressions in it."""
        if access.buffer not in self.buffers:
            raise self.error(
                f"buffer '{access.buffer.name}' is used where it is not declared",
                code="verify-buffer",
            )
        parts = list(access.indices)
        if not isinstance(access, Prefetch) and access.mask is not None:
            parts.append(access.mask)
            if not self.spec.vectors:
                raise self.error(
                    f"the access to '{access.buffer.name}' has a mask, "
                    f"which stage {self.stage.value} does not admit",
                    code="verify-mask",
                )
        if isinstance(access, Store):
            parts.append(access.value)
        elif isinstance(access, Load) and access.other is not None:
            parts.append(access.other)
        for part in parts:
            self.expr(part)
        problem = access_problem(access)
        if problem is not None:
            raise self.error(problem, code="verify-access")

    def expr(self, expr: Expr) -> None:
        """Verify an expression, operands first."""
        self.admit(expr)
        match expr:
            case Load():
                self.access(expr)
            case Let():
                self.expr(expr.value)
                self.bind(expr.var)
                self.expr(expr.body)
                self.live.discard(expr.var)
            case Var():
                if expr not in self.live:
                    raise self.error(
                        f"variable '{expr.name}' is used where nothing binds it",
                        code="verify-variable",
                    )
            case _:
                for child in expr.children():
                    if isinstance(child, Expr):
                        self.expr(child)
        if (problem := type_problem(expr)) is not None:
            raise self.error(f"in '{print_expr(expr)}' {problem}", code="verify-type")
        self.admit_lanes(expr)
