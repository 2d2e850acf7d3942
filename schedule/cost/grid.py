"""What one kernel costs on a GPU: seconds from the Target alone, to choose between alternatives.

A kernel takes as long as the slower of its arithmetic and its traffic, each tensor once, at the
rates of the target's board; and what it costs to start it. Products for which there is an
instruction of a warp run at what tensor cores reach with it, where the schedule uses it and not
where it could; all other arithmetic has the rate of float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...tir.func import PrimFunc
from ...tir.instructions.warp_products import WARP_PRODUCTS, WarpProduct
from ...tir.stmt import Block, ForKind, Role
from ...tir.target.target import GpuTarget, Target
from ...tir.visit import blocks
from ...tir.work.work import block_operations, points_of
from ..nest import loops_around
from .nest import nests

KERNEL_SECONDS = 2.5e-6  # from one kernel of a graph to the next that waits for it


@dataclass(frozen=True, slots=True)
class WarpProducts:
    """Operations of tensor cores, an addition and a multiplication for each product of two
    elements.
    """

    unit: WarpProduct
    operations: int

    def seconds(self, target: GpuTarget) -> float:
        """The time that tensor cores take at best."""
        return self.operations / (target.warp_gflops(self.unit.element) * 1e9)


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """Seconds that a kernel takes at least for its arithmetic without tensor cores, for that on
    them, and for its traffic.
    """

    compute: float
    tensor: float
    memory: float

    @property
    def seconds(self) -> float:
        """The slower of arithmetic and traffic."""
        return max(self.compute + self.tensor, self.memory)

    @property
    def name(self) -> str:
        """The limit that is nearest: "compute", "tensor core" or "memory"."""
        if self.memory > self.compute + self.tensor:
            return "memory"
        return "tensor core" if self.tensor > self.compute else "compute"


@dataclass(frozen=True, slots=True)
class KernelPass:
    """One kernel of a function on a GPU. operations: of floating point, without those of tensor
    cores, which are in `products`; moved: bytes that are read and written.
    """

    operations: int
    moved: int
    products: tuple[WarpProducts, ...] = ()

    def seconds(self, target: Target) -> float:
        """From its start until the next one may start."""
        return KERNEL_SECONDS + self.limits(GpuTarget.of(target)).seconds

    def limits(self, target: GpuTarget) -> KernelLimits:
        """What it takes at least."""
        return KernelLimits(
            compute=self.operations / (target.gflops * 1e9),
            tensor=sum(one.seconds(target) for one in self.products),
            memory=self.moved / (target.gb_per_s * 1e9),
        )


def kernel_pass(done: Sequence[tuple[Block, WarpProduct | None]], moved: int) -> KernelPass:
    """The kernel that computes blocks, each with an instruction of a warp or without one."""
    plain = sum(block_operations(block) for block, unit in done if unit is None)
    products = tuple(
        WarpProducts(unit, 2 * points_of(block)) for block, unit in done if unit is not None
    )
    return KernelPass(plain, moved, products)


def nest_kernels(func: PrimFunc) -> list[KernelPass]:
    """A kernel for each statement at the root of a function that is scheduled for a GPU."""
    found = []
    for root, traffic in nests(func):
        computed = [block for block in blocks(root) if block.role is Role.COMPUTE]
        done = [(block, _unit_of(func, block)) for block in computed]
        found.append(kernel_pass(done, traffic.moved + traffic.constant))
    return found


def _unit_of(func: PrimFunc, block: Block) -> WarpProduct | None:
    """The instruction of a warp that the nest of a block uses; None where it uses none."""
    around = loops_around(func, block)
    names = [loop.intrinsic for loop in around if loop.kind is ForKind.TENSORIZED]
    return next((WARP_PRODUCTS[name] for name in names if name in WARP_PRODUCTS), None)
