"""What a fused kernel costs: seconds that a schedule source knows, else the analytical estimate.

Each becomes a function once. What cannot be scheduled has no price: it is taken only where
there is nothing else, and is scheduled in a plainer way then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ...driver.check.ways import REFUSALS
from ...schedule.estimate import estimate
from ...schedule.source import ScheduleSource
from ...tir.analysis.specialise import specialise
from ...tir.func import PrimFunc
from ...tir.sizes import AnySize, size_of
from ...tir.target.target import Target
from ...tir.text.canonical import workload_key
from ..kernels.express import express
from ..kernels.fused_kernel import FusedKernel
from .kept_prices import KeptPrices


@dataclass(frozen=True, slots=True)
class Price:
    """Seconds of one kernel. measured: what the source knows, None where it knows nothing.
    refused: why the schedule that is priced cannot be made; "" where it can.
    """

    estimated: float
    measured: float | None = None
    refused: str = ""

    @property
    def seconds(self) -> float:
        """What a choice goes by."""
        return self.estimated if self.measured is None else self.measured

    def __str__(self) -> str:
        if self.refused:
            return f"refused: {self.refused}"
        known = "" if self.measured is None else f", measured {self.measured * 1e6:.1f} us"
        return f"estimated {self.estimated * 1e6:.1f} us{known}"


@dataclass(frozen=True, slots=True)
class PricedKernel:
    """The function of a fused kernel, its workload key, its price, and what its dims are."""

    func: PrimFunc
    key: str
    price: Price
    sizes: tuple[AnySize, ...] = ()


class Pricer:
    """Functions and prices of fused kernels on one target; equal ones are built and priced once.

    strict: only algorithms that add up what the operators say, in their order. tolerance: the
    largest expected error of an algorithm that rounds more than those, as a share of its largest
    result; None: no such algorithm. allow: instructions with a liberty that rules may use. kept:
    estimates of earlier builds for the same target, `strict` and `allow`.
    """

    def __init__(
        self,
        target: Target,
        source: ScheduleSource | None = None,
        *,
        strict: bool = False,
        tolerance: float | None = None,
        allow: tuple[str, ...] = (),
        kept: KeptPrices | None = None,
    ) -> None:
        self.target = target
        self.source = source
        self.strict = strict
        self.tolerance = tolerance
        self.allow = allow
        self._kept = kept
        self._kernels: dict[FusedKernel, PricedKernel] = {}
        self._by_key: dict[str, PricedKernel] = {}

    def kernel(self, fused: FusedKernel) -> PricedKernel:
        """The price of a fused kernel; those with the same workload share one."""
        if fused not in self._kernels:
            func = express(fused)
            key = workload_key(func)
            if key not in self._by_key:
                self._by_key[key] = PricedKernel(func, key, self._price(func, key))
            sizes = tuple(map(size_of, func.dims))
            self._kernels[fused] = replace(self._by_key[key], sizes=sizes)
        return self._kernels[fused]

    def _price(self, func: PrimFunc, key: str) -> Price:
        measured = self.source.seconds(func, self.target) if self.source is not None else None
        known = None if self._kept is None else self._kept.get(key)
        if known is not None:
            return Price(known, measured)
        usual = specialise(func, {dim: dim.usual for dim in func.dims})
        try:
            seconds = estimate(usual, self.target, strict=self.strict, allow=self.allow)
        except REFUSALS as error:
            return Price(math.inf, measured, f"{error.message} [{error.code}]")
        if self._kept is not None:
            self._kept.put(key, seconds)
        return Price(seconds, measured)
