"""What a block must be so that a step may change or move it. Nothing here rewrites.

The theorem: storage that lives below a loop is not used outside of it (`check_unstaged`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.expr import Var
from ...tir.func import PrimFunc
from ...tir.initialise import outer_condition
from ...tir.stmt import Block, For, Role
from ...tir.text.printer import print_expr
from ...tir.visit import accesses, statements
from ..errors import Kind, refuse
from ..nest import is_reduction, loops_around, reads, target_of, targets_of, write_indices
from .recurrence import check_no_recurrence


def check_compute(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block computes a whole tensor: it is neither a copy nor an initialisation that a step
    made, nor a part of a block.
    """
    check_role(func, block, primitive)
    check_whole(func, block, primitive)


def check_role(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block computes a tensor, or a part of one."""
    if block.role is Role.COMPUTE:
        return
    verb = "copies" if block.role is Role.COPY else "initialises"
    raise refuse(
        func,
        f"{primitive}: block '{block.name}' {verb} '{block.family}'; expected a block that "
        "computes a tensor.",
        code="block-role",
        kind=Kind.LIMIT,
        hints=(f"call {primitive} before the step that made it.",),
    )


def check_whole(func: PrimFunc, block: Block, primitive: str) -> None:
    """No other block computes a part of the same tensor."""
    family = [b.name for b in func.blocks if b.role is block.role and b.family == block.family]
    if len(family) > 1:
        raise refuse(
            func,
            f"{primitive}: block '{block.name}' computes a part of its tensor only; its parts are "
            f"{', '.join(map(repr, family))}.",
            code="block-part",
            kind=Kind.LIMIT,
            hints=(
                "decompose_padding and loop_partition come after the steps that take a whole "
                "block.",
            ),
        )


def check_init_inside(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block holds its initialisation: where it goes, the initialisation goes along."""
    if block.init is not None or not is_reduction(block):
        return
    raise refuse(
        func,
        f"{primitive}: the initialisation of block '{block.name}' has been placed already.",
        code="init-placed",
        kind=Kind.LIMIT,
        hints=(f"call {primitive} before decompose_reduction.",),
    )


def check_unstaged(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block uses no staged buffer: one lives below the loop that it was staged at."""
    for access in accesses(block):
        if access.buffer.origin is not None:
            raise refuse(
                func,
                f"{primitive}: block '{block.name}' uses staged '{access.buffer.name}', which "
                "exists below one loop only.",
                code="block-staged",
                kind=Kind.LIMIT,
                hints=(f"call {primitive} before stage.",),
            )


def check_holds(func: PrimFunc, loop: For, block: Block, primitive: str) -> None:
    """The block stands inside the loop."""
    if not any(node is block for node in statements(loop)):
        around = ", ".join(f"'{x.var.name}'" for x in loops_around(func, block)) or "none"
        raise refuse(
            func,
            f"{primitive}: block '{block.name}' is not inside loop '{loop.var.name}'.",
            code="block-outside",
            kind=Kind.ARGUMENT,
            hints=(f"its loops are {around}.",),
        )


def check_single(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block computes one tensor."""
    targets = targets_of(block)
    if len(targets) == 1:
        return
    names = ", ".join(f"'{(target.origin or target).name}'" for target in targets)
    raise refuse(
        func,
        f"{primitive}: block '{block.name}' computes {names} together; expected a block of one "
        "tensor.",
        code="several-tensors",
        kind=Kind.LIMIT,
        hints=("stage, compute_at and reverse_compute_at take blocks of several tensors.",),
    )


def check_pointwise(func: PrimFunc, block: Block, primitive: str) -> None:
    """The block computes one element by one expression: no reduction, one store at distinct
    iteration variables.
    """
    check_no_recurrence(func, block, primitive)
    check_single(func, block, primitive)
    target = target_of(block)
    stored = write_indices(block, target)
    plain = len(stored) == 1 and all(isinstance(i, Var) for i in stored[0])
    if plain and len(set(stored[0])) == len(stored[0]) and not reads(block, target):
        return
    raise refuse(
        func,
        f"{primitive}: block '{block.name}' is not one expression per element (it reduces, or "
        "stores to other indices).",
        code="not-pointwise",
        kind=Kind.ARGUMENT,
        hints=("compute_at keeps the block and moves it below a loop of its consumer.",),
    )


def check_predicate(
    func: PrimFunc, block: Block, inside: Sequence[For], primitive: str, where: str
) -> None:
    """Where the block runs can be said without those of the loops `inside` that its kept axes do
    not run over: `initialise.mirrored` needs it.
    """
    if outer_condition(block, inside) is None:
        raise refuse(
            func,
            f"{primitive}: block '{block.name}' runs where {print_expr(block.predicate)}, which "
            f"cannot be told apart outside of its loops below loop '{where}'.",
            code="predicate-open",
            kind=Kind.LIMIT,
            hints=("choose a loop further in.",),
        )
