"""Products that a warp computes together, as CUDA C.

A part of a factor that consecutive products share is loaded once, into registers of its own. What
the addresses of a factor's rows share is computed once, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...tir.analysis.linear import expression, linear
from ...tir.buffer import Buffer, Load
from ...tir.dtype import FLOAT32
from ...tir.expr import Expr
from ...tir.instructions.warp_products import WARP_PRODUCTS, WarpProduct
from ...tir.stmt import Fragment, Held, WarpSum
from ..lanes import access
from ..text.lines import Lines, wrapped
from ..text.scalars import UNARY
from .scalars import CudaScalars

_BITS = {1: "(unsigned char)", 2: ""}  # what makes an element its bits, by its bytes
_REGISTERS = (4, 2)  # of a thread's part of the first factor, and of the second one


class WarpSums:
    """Writes the calls among `lines`."""

    def __init__(self, lines: Lines, expressions: CudaScalars) -> None:
        self.lines = lines
        self.expressions = expressions
        self._loaded: dict[Fragment, tuple[str, ...]] = {}
        self._starts: dict[tuple[Buffer, Expr], str] = {}

    def forget(self) -> None:
        """What was loaded may have changed, or its registers are out of scope."""
        self._loaded.clear()
        self._starts.clear()

    def add(self, stmt: WarpSum) -> None:
        """Append what a statement does."""
        product = WARP_PRODUCTS[stmt.intrinsic]
        a, b = (
            self._part(product, fragment, count)
            for fragment, count in zip((stmt.a, stmt.b), _REGISTERS, strict=True)
        )
        sums = [self._element(x.value) for x in stmt.sums]
        indent = "    " * (self.lines.depth + 1)
        self.lines.add(f"tw_{stmt.intrinsic}({wrapped((*sums, *a, *b), indent)});")

    def _element(self, load: Expr) -> str:
        return self.expressions.scalar(load, UNARY)

    def _part(self, product: WarpProduct, fragment: Fragment, count: int) -> tuple[str, ...]:
        """The names of the registers that hold a thread's part of a factor."""
        if fragment not in self._loaded:
            hint = fragment.loads[0].buffer.name
            names = tuple(self.lines.names.fresh(f"{hint}_part") for _ in range(count))
            if fragment.how is Held.ELEMENTS:
                self._by_elements(product, fragment.loads, names)
            else:
                self._by_rows(product, fragment, names)
            self._loaded[fragment] = names
        return self._loaded[fragment]

    def _by_elements(
        self, product: WarpProduct, loads: Sequence[Load], names: Sequence[str]
    ) -> None:
        packed, size = product.packed, 8 * product.element.bytes
        for number, name in enumerate(names):
            own = [self._element(load) for load in loads[number * packed : (number + 1) * packed]]
            if product.element == FLOAT32:
                value = f"tw_tf32_from_float({own[0]})"
            else:
                bits = [f"(unsigned){_BITS[product.element.bytes]}{element}" for element in own]
                value = " | ".join(
                    [bits[0], *(f"{b} << {size * n}" for n, b in enumerate(bits) if n)]
                )
            self.lines.add(f"const unsigned {name} = {value};")

    def _by_rows(self, product: WarpProduct, fragment: Fragment, names: Sequence[str]) -> None:
        """All threads of the warp load together, each the address of a row."""
        self.lines.declare_all("unsigned", names)
        kind = "_trans" if fragment.how is Held.COLUMNS else ""
        row = self._row(fragment.loads[0])
        self.lines.add(f"tw_ldmatrix_x{len(names)}{kind}({', '.join(names)}, {row});")
        for name in names if product.element == FLOAT32 else ():
            self.lines.add(f"{name} = tw_tf32_from_float(__uint_as_float({name}));")

    def _row(self, load: Load) -> str:
        """The address of an element: a number of elements behind where other rows are told from."""
        if load.buffer.swizzled:
            return f"&{self.expressions.place(load.buffer, load.indices)}"
        offset = linear(access(load.buffer, load.indices, self.lines.ranges).offset)
        start = expression(replace(offset, constant=0))
        key = load.buffer, start
        if key not in self._starts:
            text = self.expressions.scalar(start)
            kept = text if text.isidentifier() else self.lines.keep("int", "row", text)
            self._starts[key] = kept
        place = f"{self.lines.names[load.buffer]} + {self._starts[key]}"
        return f"{place} + {offset.constant}" if offset.constant else place
