"""Matrix products that the 32 threads of a warp compute together. One takes the place of the nest

    for lane in bound(32, axis="threadIdx.x"):
        for half in tensorized(2, intrinsic="mma_m16n8k16_f16"):
            for pair in range(2):
                for point in range(16):
                    C[i, j] += cast(A[i, k], "float32") * cast(B[k, j], "float32")

with i = lane // 4 + 8 * half, j = 2 * (lane % 4) + pair and k = point, each beside what the loops
around say: so the nest says which elements of the result a thread holds, as the PTX ISA gives them
to it, and is what it means without an instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..dtype import BFLOAT16, FLOAT16, FLOAT32, INT32, DType, dtype
from ..expr import Expr
from ..func import PrimFunc
from ..target.target import Target
from ..te import te

ROWS, COLUMNS = 16, 8
HALVES, PAIRS = 2, 2


@dataclass(frozen=True, slots=True)
class WarpProduct:
    """An instruction that adds the product of 16 x points and points x 8 elements to 16 x 8 ones.

    element: of both factors; total: of what they are added to. liberty: how results may differ from
    those of the definition, as the verb of "it ..."; empty where they do not. asked_for: whether a
    rule uses it only where the caller allows it, since the factors lose digits.
    """

    name: str
    element: DType
    total: DType
    points: int
    liberty: str = ""
    asked_for: bool = False

    @property
    def needs(self) -> str:
        """The targets that have it, as an error names them."""
        return "a GPU, such as cuda:sm_80"

    @property
    def hint(self) -> str:
        """What to do where it is lacking."""
        return "Schedule(func, target) names the GPU that a schedule is for."

    def is_on(self, target: Target) -> bool:
        """Whether a target has it: every architecture of a GPU that there is."""
        return target.has_grid

    @property
    def packed(self) -> int:
        """Elements of a factor in a register of 32 bits."""
        return 4 // self.element.bytes

    def define(self) -> PrimFunc:
        """What is added to one element of the result."""
        return _sum_of_products(self.name, self.element, self.total, self.points)


_SUMS = "adds the products of a step at once, and may cut what float32 cannot hold"
WARP_PRODUCTS = {
    product.name: product
    for product in (
        WarpProduct("mma_m16n8k16_f16", FLOAT16, FLOAT32, 16, _SUMS),
        WarpProduct("mma_m16n8k16_bf16", BFLOAT16, FLOAT32, 16, _SUMS),
        WarpProduct(
            "mma_m16n8k8_tf32",
            FLOAT32,
            FLOAT32,
            8,
            "rounds the factors to 11 significant bits",
            asked_for=True,
        ),
        WarpProduct("mma_m16n8k32_s8", dtype("int8"), INT32, 32),
    )
}


def cut_terms(target: Target, *, strict: bool = False) -> int:
    """How many products of 16-bit floats the instructions of a target add at once, to a sum that
    they cut where float32 ends; 0 where a build takes none that does. strict: it is such a build.
    """
    steps = [
        one.points
        for one in WARP_PRODUCTS.values()
        if one.liberty and one.element.bits == 16 and one.is_on(target)
    ]
    return 0 if strict else min(steps, default=0)


@cache
def _sum_of_products(name: str, element: DType, total: DType, points: int) -> PrimFunc:
    a, b = (te.placeholder((points,), str(element), name=key) for key in "ab")
    q = te.reduce_axis(points, name="q")

    def wide(value: Expr) -> Expr:
        return value if element == total else te.cast(value, str(total))

    c = te.compute((1,), lambda _: te.sum(wide(a[q]) * wide(b[q]), axis=q), name="c")
    return te.func(a, b, c, name=name)
