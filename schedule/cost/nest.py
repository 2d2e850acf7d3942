"""The passes of a scheduled nest, from its loops as they are: what is unrolled, vectorised and
parallel counts as such.

Around a block, unrolled loops and the vector loop make a tile, the others repeat it. A tile takes
as long as the busiest of the arithmetic units, the load units and the latency of an accumulator; a
load is repeated only for the unrolled loops that move it, and what lies in registers costs none.
Where an unrolled loop chooses among several values, each copy computes one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ...tir.buffer import Buffer
from ...tir.expr import EQ, Expr, Var
from ...tir.func import PrimFunc, split_allocations
from ...tir.instructions.tensor_intrinsics import tensor_intrinsic
from ...tir.stmt import Block, For, ForKind, IterKind, Role, Stmt, Tail
from ...tir.target.target import CpuTarget
from ...tir.visit import blocks, free_vars, loads, statements
from ...tir.work.work import block_work
from ..canonical import origin_of
from ..nest import is_reduction, loops_around, targets_of
from .passes import FORWARDING, LATENCY, Sweep, arithmetic_cycles, values_of

LOADS_PER_CYCLE = 2
_IN_VECTORS = (ForKind.VECTORIZED, ForKind.TENSORIZED)


@dataclass(frozen=True, slots=True)
class NestTraffic:
    """Bytes of tensors that a nest reads and writes, and of constants that it reads."""

    moved: int
    constant: int


def nest_passes(func: PrimFunc, target: CpuTarget) -> list[Sweep]:
    """A pass for each statement at the root of a function that is scheduled for a CPU."""
    return [_sweep(func, root, traffic, target) for root, traffic in nests(func)]


def nests(func: PrimFunc) -> Iterator[tuple[Stmt, NestTraffic]]:
    """The statements at the root of a scheduled function, and what they move; those that depend on
    constants alone run once and cost nothing.
    """
    fixed = set(func.constants)
    for root in split_allocations(func.body)[1]:
        inside = blocks(root)
        if not inside:
            continue
        read = {load.buffer for block in inside for load in loads(block.body)}
        written = {target for block in inside for target in targets_of(block)}
        if read and read - written <= fixed:
            fixed |= written
            continue
        yield root, _traffic(func, inside, fixed)


def _sweep(func: PrimFunc, root: Stmt, traffic: NestTraffic, target: CpuTarget) -> Sweep:
    parallel = [
        x.extent for x in statements(root) if isinstance(x, For) and x.kind is ForKind.PARALLEL
    ]
    cycles = sum(_block_cycles(func, block, target) for block in blocks(root))
    threads = min(target.threads, math.prod(parallel)) if parallel else 1
    return Sweep(cycles, threads, traffic.moved, traffic.constant)


def _traffic(func: PrimFunc, inside: tuple[Block, ...], fixed: Collection[Buffer]) -> NestTraffic:
    computed = (block for block in inside if block.role is Role.COMPUTE)
    written = {origin_of(target) for block in computed for target in targets_of(block)}
    outside = _read_outside(func, inside)
    moved: dict[Buffer, int] = {}
    constant: dict[Buffer, int] = {}
    for block in inside:
        work = block_work(block)
        for buffer, count in work.read:
            tensor = origin_of(buffer)
            if tensor in fixed or buffer in fixed:
                constant[tensor] = max(count, constant.get(tensor, 0))
            elif tensor not in written:
                moved[tensor] = max(count, moved.get(tensor, 0))
        for buffer, count in work.written_to:
            if origin_of(buffer) in outside:
                moved[origin_of(buffer)] = count
    return NestTraffic(sum(moved.values()), sum(constant.values()))


def _read_outside(func: PrimFunc, inside: tuple[Block, ...]) -> set[Buffer]:
    """Tensors that somebody else than the blocks `inside` reads: outputs, and what other nests
    need.
    """
    others = [block for block in func.blocks if not any(block is one for one in inside)]
    needed = {origin_of(load.buffer) for block in others for load in loads(block.body)}
    return needed | set(func.outputs)


def _block_cycles(func: PrimFunc, block: Block, target: CpuTarget) -> float:
    around = _outside_of_units(loops_around(func, block))
    unrolled = [loop for loop in around if loop.kind is ForKind.UNROLLED]
    vectors = [loop for loop in around if loop.kind in _IN_VECTORS]
    repeats = math.prod(
        loop.extent for loop in around if loop not in unrolled and loop not in vectors
    )
    own = targets_of(block)
    lanes = min(target.lanes(buffer.type) for buffer in own)
    width = math.prod(-(-loop.extent // lanes) for loop in vectors)
    copies = math.prod(_copies(loop, target) for loop in unrolled) * width
    read = 0.0
    for load in dict.fromkeys(loads(block.body)):
        if load.buffer.scope == "register" or load.buffer in own:
            continue
        moving = _loop_vars(block, *load.indices)
        read += math.prod(loop.extent for loop in unrolled if loop.var in moving)
    stored = sum(1 for buffer in own if buffer.scope != "register")
    writes = 0 if is_reduction(block) else copies * stored
    copied = {loop.var for loop in unrolled}

    def decided(condition: Expr) -> bool:
        return isinstance(condition, EQ) and bool(_loop_vars(block, condition) & copied)

    units = [loop.intrinsic for loop in around if loop.kind is ForKind.TENSORIZED]
    if units:
        arithmetic = tensor_intrinsic(units[-1]).slots / target.fma_per_cycle
    else:
        arithmetic = sum(arithmetic_cycles(value, target, decided) for value in values_of(block))
    busy = [copies * arithmetic, read / LOADS_PER_CYCLE, writes]
    if is_reduction(block):
        busy.append(LATENCY)
    if _next_step_waits(block, around):
        busy.append(LATENCY + FORWARDING)
    return repeats * float(max(busy))


def _copies(loop: For, target: CpuTarget) -> float:
    """Copies of the body of an unrolled loop; the short one at the end takes half the time where
    the units are half as wide as a register.
    """
    short = loop.tail is Tail.PARTITION and target.fma_per_cycle == 1
    return loop.extent - 0.5 if short else loop.extent


def _next_step_waits(block: Block, around: Sequence[For]) -> bool:
    """Whether the next run of a tile is the next step of a recurrence."""
    tile = (ForKind.UNROLLED, ForKind.VECTORIZED)
    outside = [loop for loop in around if loop.kind not in tile and loop.extent > 1]
    ordered = [it.var for it in block.iters if it.kind is IterKind.ORDERED]
    return bool(outside) and outside[-1].var in _loop_vars(block, *ordered)


def _outside_of_units(around: Sequence[For]) -> Sequence[For]:
    """The loops around a block as far in as an instruction, which takes as long as another one."""
    kinds = [loop.kind for loop in around]
    inside = kinds.index(ForKind.TENSORIZED) + 1 if ForKind.TENSORIZED in kinds else len(kinds)
    return around[:inside]


def _loop_vars(block: Block, *indices: Expr) -> set[Var]:
    """The loops that move an index, through the bindings of the block."""
    bindings = {
        axis.var: binding for axis, binding in zip(block.iters, block.bindings, strict=True)
    }
    found: set[Var] = set()
    for index in indices:
        for var in free_vars(index):
            found |= free_vars(bindings[var]) if var in bindings else {var}
    return found
