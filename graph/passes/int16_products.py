"""Products of integers where a model has data of 16 bits and weights of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.ir import Graph
from .integer_products import with_integer_products


def has_int16(graph: Graph) -> bool:
    """Whether a graph has integers of 16 bits."""
    return any(type_.dtype == "int16" for type_ in graph.types.values())


@dataclass(frozen=True, slots=True)
class Int16Products:
    """Replace a product of numbers that int16 and bytes stand for by one of integers, in int32.

    (a - p) * r  times  (b - q) * s   ->   float(sum a * (b - q)  -  p * sum (b - q)) * (r * s)

    Exact where no result leaves int32, which the weights show: 2**15 and the size of p times the
    sum of the sizes of b - q is below 2**31 for each output, as it is for 768 weights of 85 on
    average and a p of 0; others stay floats. p is one number that is known. What joins is what
    joins products of bytes (`IntegerProducts`).
    needs: pairs of int16 in an instruction, without which floats are faster.
    """

    keeps_rounding: ClassVar[bool] = False
    concerns = staticmethod(has_int16)
    needs: ClassVar[tuple[str, ...]] = ("avx512+vnni", "avx2")

    def __call__(self, graph: Graph) -> Graph:
        return with_integer_products(graph, words=True)
