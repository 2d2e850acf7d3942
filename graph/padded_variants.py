"""Variants that pad runs of fewer rows: each is proved inert, run beside poisoned rows, and timed:
it serves the sizes alone at which it is no slower than the engine for all sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..driver.backends.table import backend_of
from ..driver.check.padding import check_padding
from ..runtime.engine.engine import Engine
from ..runtime.engine.parts import EngineParts, Padding, Variant
from ..runtime.engine.variants import padded_rows, with_variants
from ..runtime.machine.timing import calibrate, in_turn, sample
from ..runtime.model.interface import Interface
from ..schedule.verdict import PROVED
from ..tir.dim import Dim
from ..tir.program.inert_padding import PaddingObstacle, padding_obstacle
from ..tir.program.program import Program
from .buckets import BucketPlan, refuse_padding

_ROUNDS = 9


def check_open(parts: EngineParts, dim: Dim) -> None:
    """Refuse buckets along a size that matters to more than the number of rows, before anything is
    built. Raises: OptionError.
    """
    obstacle = padding_obstacle(*_program_dim(parts, dim))
    if obstacle is not None:
        raise refuse_padding(Interface(parts.artifact).dims, dim, obstacle)


def padded_variant(
    engine: Engine, plan: BucketPlan, variant: Variant, below: int, *, check: bool
) -> tuple[Variant, str]:
    """A variant that serves runs of fewer rows, too, and how many it takes.

    below: the next smaller size that is padded to, or 0: from there on it may serve. check: whether
    it is run beside poisoned rows.
    Raises: OptionError where its padding is not inert.
    """
    _prove(engine.parts, plan.dim, variant)
    size = dict(variant.sizes)[plan.dim.name]
    least = max(below + 1, plan.dim.low, 1)
    widest = replace(variant, padding=Padding(plan.dim.name, least))
    target = engine.parts.artifact.target
    why = backend_of(target).why_not_run(target)
    if why is not None:
        return replace(variant, padding=Padding(plan.dim.name, size)), (
            f"bucket '{plan.dim.name}' {size}: serves no fewer rows: not timed here, {why}"
        )
    rows = padded_rows(engine.parts, widest)
    assert rows is not None  # the proof has seen to that
    if check:
        check_padding(Engine(variant.parts), rows)
    found, note = least_served(engine, widest, plan)
    return replace(variant, padding=Padding(plan.dim.name, found)), note


def least_served(engine: Engine, widest: Variant, plan: BucketPlan) -> tuple[int, str]:
    """From how many rows on a padded run of the variant takes no longer than a run of the engine,
    which takes the longer the more rows there are; and a line about it.
    """
    alone = Engine(replace(engine.parts, variants=()))
    padding = Engine(with_variants(replace(engine.parts, variants=()), [widest]))
    assert widest.padding is not None
    low, high = widest.padding.least, dict(widest.sizes)[plan.dim.name]
    seconds: dict[int, tuple[float, float]] = {}
    while low < high:
        size = (low + high) // 2
        seconds[size] = beside(padding, alone, {**dict(plan.others), plan.dim.name: size})
        low, high = (low, size) if seconds[size][0] <= seconds[size][1] else (size + 1, high)
    size = dict(widest.sizes)[plan.dim.name]
    timed = "; ".join(
        f"at {one} padded {mine * 1e6:.1f} us, open {other * 1e6:.1f} us"
        for one, (mine, other) in sorted(seconds.items())
    )
    served = f"serves {low} to {size}" if low < size else "serves no fewer rows"
    return low, f"bucket '{plan.dim.name}' {size}: {served}{f' ({timed})' if timed else ''}"


def beside(padding: Engine, alone: Engine, sizes: Mapping[str, int]) -> tuple[float, float]:
    """The least seconds of runs of both at some sizes, in turns: what runs beside them on the
    machine only ever adds.
    """
    given = alone.random_inputs(sizes=sizes)
    calls: dict[str, Callable[[], object]] = {
        "padded": padding.context().bind(given).run,
        "open": alone.context().bind(given).run,
    }
    counts = {name: calibrate(call) for name, call in calls.items()}
    found: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(_ROUNDS):
        for name in in_turn(list(calls), turn):
            found[name].append(sample(calls[name], counts[name]))
    return min(found["padded"]), min(found["open"])


def _prove(parts: EngineParts, dim: Dim, variant: Variant) -> None:
    """Raises: OptionError where the padding of a variant is not inert, or nobody knows."""
    opened, own = _program_dim(parts, dim)
    assert variant.parts.plain is not None
    sizes = dict(variant.sizes)
    values = {one: sizes[one.name] for one in opened.dims}
    closed = variant.parts.plain.model().program
    obstacle = padding_obstacle(opened, own, closed, values)
    for kernel in variant.parts.report.kernels:
        if obstacle is None and not kernel.proof.startswith((PROVED, "interpreted")):
            obstacle = PaddingObstacle(f"kernel '{kernel.name}'", f"is not proved: {kernel.proof}")
    if obstacle is not None:
        raise refuse_padding(Interface(parts.artifact).dims, dim, obstacle)


def _program_dim(parts: EngineParts, dim: Dim) -> tuple[Program, Dim]:
    """The program before schedules, and its own dim of that name."""
    assert parts.plain is not None
    program = parts.plain.model().program
    return program, next(one for one in program.dims if one.name == dim.name)
