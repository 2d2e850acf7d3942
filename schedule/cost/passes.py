"""What one pass over memory costs: the figures that the analytical model rests on, and its formula
for a CPU; that for a GPU is in grid.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...tir.buffer import Load
from ...tir.expr import Add, Call, Const, Div, Expr, Max, Min, Mul, Select, Sub
from ...tir.lowered import Fma
from ...tir.node import Node
from ...tir.stmt import Block, IterKind
from ...tir.target.target import CpuTarget, Target
from ...tir.visit import free_vars, stores, transform

LATENCY = 4.0  # cycles until the result of an addition can be used
FORWARDING = 5.0  # until what was stored can be loaded again
BARRIER_SECONDS = 3e-7
L2_BYTES_PER_CYCLE = 48  # of one core
L3_BYTES_PER_CYCLE = 24
DIVISION_CYCLES = 8.0
CALL_CYCLES = {
    "exp": 12.0,
    "exp2": 10.0,
    "log": 16.0,
    "tanh": 16.0,
    "erf": 16.0,
    "gelu": 22.0,
    "sin": 18.0,
    "cos": 18.0,
    "atan": 22.0,
    "fmod": 90.0,
    "round_quotient": 2.5,
    "expm1": 13.0,
    "log1p": 22.0,
    "pow": 40.0,
    "sqrt": 8.0,
}


class Pass(Protocol):
    """One pass over memory."""

    def seconds(self, target: Target) -> float:
        """The time that it takes, until the next one may begin."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep over memory by all threads of a CPU.

    cycles: of arithmetic, on one thread; threads: how many share it out.
    moved: bytes of tensors that are read and written; constant: bytes of constants that are read.
    """

    cycles: float
    threads: int
    moved: int
    constant: int

    def seconds(self, target: Target) -> float:
        """The slower of arithmetic and traffic, and a barrier behind it."""
        target = CpuTarget.of(target)
        clock = target.clock_ghz * 1e9
        memory = target.dram_gb_per_s * 1e9
        if self.moved <= target.l2_bytes * self.threads:
            bandwidth = L2_BYTES_PER_CYCLE * clock * self.threads
        elif self.moved <= target.l3_bytes:
            bandwidth = L3_BYTES_PER_CYCLE * clock * self.threads
        else:
            bandwidth = memory
        traffic = self.moved / bandwidth + self.constant / memory
        return max(self.cycles / self.threads / clock, traffic) + BARRIER_SECONDS


def values_of(block: Block) -> list[Expr]:
    """The values that a block stores. Padding inside of a sum goes: the tiles at a border are
    variants of their own, without a choice, unless it lies along the vectors.
    """
    values = [store.value for store in stores(block.body)]
    if all(it.kind is not IterKind.REDUCE for it in block.iters):
        return values
    last = {it.var for it in [it for it in block.iters if it.kind is IterKind.SPATIAL][-1:]}

    def inside(node: Node) -> Node:
        match node:
            case Select(condition, Load() as data, Const()) if not free_vars(condition) & last:
                return data
        return node

    return [transform(value, inside) for value in values]


def arithmetic_cycles(
    value: Node, target: CpuTarget, decided: Callable[[Expr], bool] = lambda condition: False
) -> float:
    """Cycles to compute one value, or one vector of it, from what is in registers.

    Equal parts are computed once. Index arithmetic is free; a*b+c is one instruction where the
    target has it. decided: whether a condition of a Select is known where code is made, so that of
    several values each copy of the code computes one; what these have in common, copies share.
    """
    return _cycles([value], target, decided)


def _cycles(values: list[Node], target: CpuTarget, decided: Callable[[Expr], bool]) -> float:
    cycles, seen, waiting = 0.0, set[Node](), list(values)
    while waiting:
        node = waiting.pop()
        if node in seen or isinstance(node, Load):
            continue
        seen.add(node)
        choices = _choices(node, decided)
        if len(choices) > 1:
            cycles += _cycles(choices, target, decided) / len(choices)
            continue
        own, operands = _instruction(node, target)
        is_index = isinstance(node, Expr) and not node.dtype.is_float
        cycles += 0.0 if is_index else own
        waiting += operands
    return cycles


def _choices(node: Node, decided: Callable[[Expr], bool]) -> list[Node]:
    """The values among which decided conditions choose, the node itself where none does."""
    found: list[Node] = []
    while isinstance(node, Select) and decided(node.condition):
        found.append(node.on_true)
        node = node.on_false
    return [*found, node]


def _instruction(node: Node, target: CpuTarget) -> tuple[float, tuple[Node, ...]]:
    """The cycles of a node itself, and what it is computed from."""
    match node:
        case Add(a, Mul(b, c)) | Add(Mul(b, c), a) if target.has_fma:
            return 1 / target.fma_per_cycle, (a, b, c)
        case Call(intrinsic):
            return CALL_CYCLES.get(intrinsic.name, 1 / target.fma_per_cycle), node.children()
        case Div():
            return DIVISION_CYCLES, node.children()
        case Add() | Sub() | Mul() | Min() | Max() | Fma() | Select():
            return 1 / target.fma_per_cycle, node.children()
    return 0.0, node.children()
