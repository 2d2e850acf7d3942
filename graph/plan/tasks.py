"""Every function that a compile of a model would price, so that one tuning run can measure them
all; and those that it would take.
"""

from __future__ import annotations

from collections import Counter

from ...driver.resolve_target import resolve_target
from ...schedule.source import ScheduleSource
from ...tir.func import PrimFunc
from ...tir.target import Target
from ...tir.text.html import html_table
from ..importers.onnx.importer import Source, import_onnx
from ..importers.onnx.symbols import Shapes
from ..ir.ir import Graph
from ..options import check_tolerance
from ..passes.pipeline import optimise
from .choose import choose
from .fusion import fuse
from .plan import plan_model
from .pricing import PricedKernel, Pricer


class Tasks(list[tuple[PrimFunc, int]]):
    """Functions with the number of their places in a model: a list that shows a line for each,
    where its functions would take pages.
    """

    def __str__(self) -> str:
        return "\n".join(f"{count:4} x {func.signature}" for func, count in self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(str(count), func.signature) for func, count in self]
        return html_table(("places", "function"), rows)


def tasks(
    model: Source | Graph,
    target: Target | str | None = None,
    *,
    shapes: Shapes | None = None,
    tolerance: float | None = None,
) -> Tasks:
    """The functions of all alternatives, each once, with the number of places in the model that it
    could serve.

    model: a path, bytes, a ModelProto or a Graph; shapes: sizes that it leaves open. target: this
    machine's CPU by default. tolerance: as `compile` has it.
    Raises: ModelError, TargetError.
    """
    check_tolerance(tolerance, strict=False)
    graph, _ = optimise(_imported(model, shapes), check=False)
    counts: dict[str, int] = {}
    kernels: dict[str, PricedKernel] = {}
    pricer = Pricer(resolve_target(target), tolerance=tolerance)
    for decision in choose(graph, fuse(graph).groups, pricer):
        used = {p.kernel.key: p.kernel for one in decision.alternatives for p in one.parts}
        for key, kernel in used.items():
            kernels[key] = kernel
            counts[key] = counts.get(key, 0) + 1
    return Tasks((kernel.func, counts[key]) for key, kernel in kernels.items())


def taken(
    model: Source | Graph,
    target: Target | str | None = None,
    *,
    shapes: Shapes | None = None,
    tolerance: float | None = None,
    schedules: ScheduleSource | None = None,
) -> list[tuple[PrimFunc, int]]:
    """The functions that `compile` would build, each with the number of its launches; nothing is
    built.

    schedules: whose times decide between alternatives. All else is as `tasks` has it.
    Raises: ModelError, TargetError.
    """
    check_tolerance(tolerance, strict=False)
    planned = plan_model(
        _imported(model, shapes),
        resolve_target(target),
        schedules,
        check=False,
        tolerance=tolerance,
    )
    program = planned.lowered.program
    places = Counter(launch.function for launch in program.launches)
    return [(func, places[func.name]) for func in program.functions]


def _imported(model: Source | Graph, shapes: Shapes | None) -> Graph:
    return model if isinstance(model, Graph) else import_onnx(model, shapes=shapes)
