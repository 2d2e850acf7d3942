"""What one kernel costs on a GPU: seconds from the Target alone, to choose between alternatives.

A kernel takes as long as the slower of its arithmetic, at the rate of the architecture's largest
board, and its traffic, each tensor once, at the bandwidth of that board's memory; and what it costs
to start it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...tir.func import PrimFunc
from ...tir.gpu import GPUS
from ...tir.stmt import Role
from ...tir.target import Target
from ...tir.visit import blocks
from ...tir.work.work import block_operations
from .nest import nests

KERNEL_SECONDS = 2.5e-6  # from one kernel of a graph to the next that waits for it


@dataclass(frozen=True, slots=True)
class KernelPass:
    """One kernel of a function on a GPU. operations: of floating point; moved:
    bytes that are read and written.
    """

    operations: int
    moved: int

    def seconds(self, target: Target) -> float:
        """From its start until the next one may start."""
        rates = GPUS[target.isa]
        arithmetic = self.operations / (rates.gflops * 1e9)
        return KERNEL_SECONDS + max(arithmetic, self.moved / (rates.gb_per_s * 1e9))


def nest_kernels(func: PrimFunc) -> list[KernelPass]:
    """A kernel for each statement at the root of a function that is scheduled for a GPU."""
    found = []
    for root, traffic in nests(func):
        computed = (block for block in blocks(root) if block.role is Role.COMPUTE)
        operations = sum(map(block_operations, computed))
        found.append(KernelPass(operations, traffic.moved + traffic.constant))
    return found
