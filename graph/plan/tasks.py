"""Every function that a compile of a model would price, so that one tuning run can measure them
all; and those that it would take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ...driver.resolve_target import resolve_target
from ...schedule.rules.default import rule_for
from ...schedule.source import ScheduleSource
from ...tir.func import PrimFunc
from ...tir.target.target import Target
from ...tir.text.html import html_table
from ..given_model import imported_graph
from ..importers.onnx.importer import Source
from ..importers.symbols import Shapes
from ..importers.traced_model import traced_model
from ..ir.ir import Graph
from ..options import (
    OptionError,
    check_calibration,
    check_constants,
    check_precision,
    check_tolerance,
    given_passes,
)
from ..passes.passes import chosen_passes
from ..passes.pipeline import GraphPass, run_by
from ..precision.halves import Precision
from ..precision.levels.byte_model import ByteRequest, byte_model
from .choose import choose
from .flatten import flatten
from .fusion import fuse
from .layer_prices import LayerPrices
from .plan import allowed_by, optimised, plan_model
from .pricing import Pricer

if TYPE_CHECKING:
    from ..precision.calibration.calibration import Calibration


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
    untuned: functions whose rule multiplies by an instruction with a liberty, to which the
    precision consents and a log of schedules for all models cannot.
    """

    tasks: tuple[ModelTask, ...]
    alternatives: tuple[tuple[tuple[str, ...], ...], ...]
    untuned: tuple[ModelTask, ...] = ()

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
    precision: Precision = "float32",
    calibration: Calibration | None = None,
) -> Tasks:
    """The functions of all alternatives, each once, with the number of places in the model that it
    could serve.

    model: a path, bytes, a ModelProto, a Graph, a module of torch, or a function of JAX. target:
    this machine's CPU by default. args, shapes, constants, tolerance, passes, precision,
    calibration: as `compile` has them, but for precision="auto", which is decided by measuring.
    Raises: ModelError, TargetError.
    """
    known = cast("Source | Graph", traced_model(model, args, None, shapes))
    found = model_tasks(
        known,
        target,
        shapes=shapes,
        constants=constants,
        tolerance=tolerance,
        passes=passes,
        precision=precision,
        calibration=calibration,
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
    precision: Precision = "float32",
    calibration: Calibration | None = None,
) -> ModelTasks:
    """The same functions with the nodes of the model, and which of them are alternatives.

    Raises: ModelError, TargetError.
    """
    check_constants(constants)
    check_tolerance(tolerance, strict=False)
    machine = resolve_target(target)
    pipeline = run_by(chosen_passes(given_passes(passes)), machine)
    imported, others = _narrowed(
        imported_graph(model, shapes, constants), machine, precision, calibration, tolerance
    )
    pricer = Pricer(machine, tolerance=tolerance, allow=allowed_by(others))
    graph = flatten(optimised(imported, pipeline, pricer, others, check=False)[0]).graph
    found: dict[str, ModelTask] = {}
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
    free = {key for key, one in found.items() if _takes_liberty(one.func, pricer)}
    tasks, untuned = (
        tuple(one for key, one in found.items() if (key in free) is is_free)
        for is_free in (False, True)
    )
    return ModelTasks(tasks, tuple(ways), untuned)


def _narrowed(
    imported: Graph,
    target: Target,
    precision: Precision,
    calibration: Calibration | None,
    tolerance: float | None,
) -> tuple[Graph, Precision]:
    """The graph that `compile` plans for a precision without an accuracy, and the precision of its
    products that multiply no bytes. Raises: ModelError.
    """
    if precision == "auto":
        raise OptionError(
            "tasks: precision='auto' is decided in each compile, by measuring the engine that it "
            "makes; expected the types of products.",
            code="tasks-auto",
            hints=(
                "compile it once with its accuracy=...; engine.explain().precision says what each "
                'product has, and precision={"fc1": "int8", ...} names that.',
            ),
        )
    check_precision(precision, strict=False)
    check_calibration(precision, calibration, None)
    if calibration is None:
        return imported, precision
    request = ByteRequest.of(precision, calibration, target, is_checked=False)
    model = byte_model(imported, target, request, LayerPrices(target, tolerance))
    return model.with_levels(model.layers), request.others


def _takes_liberty(func: PrimFunc, pricer: Pricer) -> bool:
    """Whether the schedule of a function is another one where the precision consents to it."""
    if not pricer.allow:
        return False
    rules = (rule_for(func, pricer.target, allow=allow) for allow in ((), pricer.allow))
    return len({rule.name for rule in rules}) > 1


def taken(
    model: Source | Graph,
    target: Target | str | None = None,
    *,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    tolerance: float | None = None,
    schedules: ScheduleSource | None = None,
    precision: Precision = "float32",
    calibration: Calibration | None = None,
) -> list[tuple[PrimFunc, int]]:
    """The functions that `compile` would build, each with the number of its launches; nothing is
    built.

    schedules: whose times decide between alternatives. All else is as `tasks` has it.
    Raises: ModelError, TargetError.
    """
    check_constants(constants)
    check_tolerance(tolerance, strict=False)
    machine = resolve_target(target)
    imported, others = _narrowed(
        imported_graph(model, shapes, constants), machine, precision, calibration, tolerance
    )
    planned = plan_model(
        imported, machine, schedules, check=False, tolerance=tolerance, precision=others
    )
    program = planned.lowered.program
    places = Counter(launch.function for launch in program.launches)
    return [(func, places[func.name]) for func in program.functions]
