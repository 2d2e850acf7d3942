"""Twenty functions of odd sizes, drawn when the questions of the rules were fixed: what a tuner
meets that no rule was made for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te

from . import functions

ODD_SHAPES: dict[str, Callable[[], PrimFunc]] = {
    "product 13x1001x777": partial(functions.product, 13, 1001, 777),
    "product 301x19x650": partial(functions.product, 301, 19, 650),
    "product 1x3001x2003": partial(functions.product, 1, 3001, 2003),
    "product 411x517x61": partial(functions.product, 411, 517, 61),
    "product 83x59x1700, weights by columns": partial(functions.product, 83, 59, 1700, turned=True),
    "6 products 47x39x71": partial(functions.batched, 6, 47, 39, 71),
    "sum of 7001x5 over 1": partial(functions.reduced, (7001, 5), (1,), te.sum),
    "sum of 71x45x29 over 0, 1": partial(functions.reduced, (71, 45, 29), (0, 1), te.sum),
    "largest of 41x151x53 over 1": partial(functions.reduced, (41, 151, 53), (1,), te.max),
    "sum of 777777": partial(functions.reduced, (777_777,), (0,), te.sum),
    "37x53x91 in the order 2, 0, 1": partial(functions.transposed, (37, 53, 91), (2, 0, 1)),
    "1501x707 transposed": partial(functions.transposed, (1501, 707), (1, 0)),
    "softmax 219x1333": partial(functions.softmax, 219, 1333),
    "normalisation 75x901": partial(functions.normalised, 75, 901),
    "convolution 3x3/2 21>37@57": partial(functions.convolution, 57, 21, 37, 3, 2),
    "convolution 5x5 11>23@45": partial(functions.convolution, 45, 11, 23, 5),
    "convolution 1x1 77>131@23": partial(functions.convolution, 23, 77, 131, 1),
    "depthwise 5x5/2 57@41": partial(functions.depthwise, 41, 57, 5, 2),
    "largest of 3x3/2 67@55": partial(functions.pooled, 55, 67, 3, 2),
    "chain of 5, 613x911": partial(functions.chain, 613, 911),
}
