"""What functions of models cost, and kernels of every rule, to nine digits: a change that is not
about prices changes none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tilewright.graph.plan.tasks import tasks
from tilewright.graph.samples.samples import light_model, tiny_model
from tilewright.schedule.estimate import estimate
from tilewright.schedule.rules.default import rule_for
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ..driver.kernels import KERNELS

TARGETS = ("c:avx2", "c:avx512+vnni", "cuda:sm_90a")


def functions(target: Target) -> Iterator[tuple[str, PrimFunc]]:
    """Functions with the names of who has them."""
    for sample in (tiny_model(), light_model("shufflenet")):
        yield from ((sample.name, func) for func, _ in tasks(sample.model, target))
    made = {name: make() for name, make in KERNELS.items()}
    if target.has_grid:
        del made["scatter"], made["suppression"]  # no kernel of a GPU is one
    yield from made.items()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TARGETS)
def test_prices_stay_what_they_are(name: str, golden: Callable[[str, str], None]) -> None:
    target = Target.parse(name)
    lines = [
        f"{whose} {func.name}: {rule_for(func, target).name} {1e6 * estimate(func, target):.9g} us"
        for whose, func in functions(target)
    ]
    golden(f"prices/{name.replace(':', '_').replace('+', '_')}.txt", "\n".join(lines))
