"""Every function that a compile of a model would price, so that one tuning run can measure them
all; and those that it would take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ...driver.resolve_target import resolve_target
from ...schedule.source import ScheduleSource
from ...tir.func import PrimFunc
from ...tir.target.target import Target
from ...tir.text.html import html_table
from ..given_model import imported_graph
from ..importers.onnx.importer import Source
from ..importers.symbols import Shapes
from ..importers.traced_model import traced_model
from ..ir.ir import Graph
from ..options import check_constants, check_tolerance, given_passes
from ..passes.passes import chosen_passes
from ..passes.pipeline import GraphPass, optimise, run_by
from .choose import choose
from .flatten import flatten
from .fusion import fuse
from .plan import plan_model
from .pricing import Pricer


@dataclass(frozen=True, slots=True)
class ModelTask:
    """A function that a compile of a model would price.

    key: of its workload. places: how many it could serve in the model; nodes: the names of the
    model's nodes that it computes in the first one.
    """

    key: str
    func: PrimFunc
    places: int
    nodes: str


@dataclass(frozen=True, slots=True)
class ModelTasks:
    """The functions of all alternatives, each once.

    alternatives: for each group of nodes, the ways to compute it, each the keys of its functions.
    """

    tasks: tuple[ModelTask, ...]
    alternatives: tuple[tuple[tuple[str, ...], ...], ...]

    def latency(self, seconds: Mapping[str, float]) -> float | None:
        """The sum of the kernels of the fastest alternatives, given the seconds of functions by
        their keys; None where no alternative of some group is known whole.
        """
        total = 0.0
        for ways in self.alternatives:
            known = [way for way in ways if all(key in seconds for key in way)]
            if not known:
                return None
            total += min(sum(seconds[key] for key in way) for way in known)
        return total


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
    model: object,
    target: Target | str | None = None,
    *,
    args: Sequence[object] | None = None,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    tolerance: float | None = None,
    passes: Iterable[GraphPass] | None = None,
) -> Tasks:
    """The functions of all alternatives, each once, with the number of places in the model that it
    could serve.

    model: a path, bytes, a ModelProto, a Graph, a module of torch, or a function of JAX. target:
    this machine's CPU by default. args, shapes, constants, tolerance, passes: as `compile` has
    them.
    Raises: ModelError, TargetError.
    """
    known = cast("Source | Graph", traced_model(model, args, None, shapes))
    found = model_tasks(
        known, target, shapes=shapes, constants=constants, tolerance=tolerance, passes=passes
    )
    return Tasks((task.func, task.places) for task in found.tasks)


def model_tasks(
    model: Source | Graph,
    target: Target | str | None = None,
    *,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    tolerance: float | None = None,
    passes: Iterable[GraphPass] | None = None,
) -> ModelTasks:
    """The same functions with the nodes of the model, and which of them are alternatives.

    Raises: ModelError, TargetError.
    """
    check_constants(constants)
    check_tolerance(tolerance, strict=False)
    machine = resolve_target(target)
    pipeline = run_by(chosen_passes(given_passes(passes)), machine)
    optimised, _ = optimise(imported_graph(model, shapes, constants), pipeline, check=False)
    graph = flatten(optimised).graph
    found: dict[str, ModelTask] = {}
    pricer = Pricer(machine, tolerance=tolerance)
    decisions = choose(graph, fuse(graph).groups, pricer)
    for decision in decisions:
        used = {part.kernel.key: part for one in decision.alternatives for part in one.parts}
        for key, part in used.items():
            places, nodes = 1, part.group.label
            if key in found:
                places, nodes = found[key].places + 1, found[key].nodes
            found[key] = ModelTask(key, part.kernel.func, places, nodes)
    ways = (
        tuple(tuple(part.kernel.key for part in one.parts) for one in decision.alternatives)
        for decision in decisions
    )
    return ModelTasks(tuple(found.values()), tuple(ways))


def taken(
    model: Source | Graph,
    target: Target | str | None = None,
    *,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    tolerance: float | None = None,
    schedules: ScheduleSource | None = None,
) -> list[tuple[PrimFunc, int]]:
    """The functions that `compile` would build, each with the number of its launches; nothing is
    built.

    schedules: whose times decide between alternatives. All else is as `tasks` has it.
    Raises: ModelError, TargetError.
    """
    check_constants(constants)
    check_tolerance(tolerance, strict=False)
    planned = plan_model(
        imported_graph(model, shapes, constants),
        resolve_target(target),
        schedules,
        check=False,
        tolerance=tolerance,
    )
    program = planned.lowered.program
    places = Counter(launch.function for launch in program.launches)
    return [(func, places[func.name]) for func in program.functions]
