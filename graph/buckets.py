"""Buckets: sizes that runs of fewer rows are padded to; which ones a caller asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..runtime.engine.engine import Engine
from ..runtime.engine.size_log import logged_runs
from ..tir.dim import Dim
from ..tir.target.target import GpuTarget
from .bucket_choice import choose_buckets
from .options import OptionError
from .specialise import Chosen

if TYPE_CHECKING:  # a compile that finds its engine needs no proof
    from ..tir.program.inert_padding import PaddingObstacle

Buckets = Mapping[str, Sequence[int] | int] | int  # a mapping is checked when it is read
PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class BucketPlan:
    """What a caller asked for. dim: along which runs are padded, to each of `sizes`, the smallest
    first; others: the only value of each other size, by name. note: how they were chosen.
    """

    dim: Dim
    sizes: tuple[int, ...]
    others: tuple[tuple[str, int], ...] = ()
    note: str = ""

    def chosen(self, dims: Sequence[Dim], size: int) -> Chosen:
        """The sizes of one variant, in the order of the dims."""
        values = {**dict(self.others), self.dim.name: size}
        return tuple((dim.name, values[dim.name]) for dim in dims)


def bucket_plan(engine: Engine, buckets: Buckets | None, shape_log: PathLike | None) -> BucketPlan:
    """The sizes that variants are wanted for that runs of fewer rows are padded to.

    Raises: OptionError; SizeLogError for a file that is no log of this model's sizes.
    """
    dims = engine.interface.dims
    if not dims:
        raise OptionError(
            f"compile: option buckets is {buckets!r}, and no run decides sizes of the model.",
            code="buckets-closed",
            hints=("leave it out: the engine is for these sizes alone.",),
        )
    target = engine.parts.artifact.target
    if isinstance(target, GpuTarget):
        raise OptionError(
            f"compile: option buckets is {buckets!r} for the target '{target}'; expected one of a "
            "CPU: runs of a GPU are not padded.",
            code="buckets-target",
            hints=("specialise=[{...}] makes variants for sizes that come often.",),
        )
    if isinstance(buckets, int) or shape_log is not None:
        return _from_log(engine, buckets, shape_log)
    return _said(buckets, dims)


def _said(buckets: object, dims: Sequence[Dim]) -> BucketPlan:
    """The sizes of a mapping: several of one dim, one of each other."""
    known = {dim.name: dim for dim in dims}
    if not isinstance(buckets, Mapping) or buckets.keys() != known.keys():
        raise _unknown(buckets, dims)
    others: list[tuple[str, int]] = []
    found: list[tuple[Dim, tuple[int, ...]]] = []
    for name, dim in known.items():
        sizes = buckets[name]
        if _is_one_of(sizes, dim):
            others.append((name, sizes))
        elif isinstance(sizes, Sequence) and sizes and all(_is_one_of(one, dim) for one in sizes):
            found.append((dim, tuple(sorted(set(sizes)))))
    if len(found) != 1 or len(others) != len(known) - 1:
        raise _unknown(buckets, dims)
    return BucketPlan(*found[0], tuple(others))


def refuse_padding(dims: Sequence[Dim], dim: Dim, obstacle: PaddingObstacle) -> OptionError:
    """The refusal of buckets along one of the sizes."""
    usual = ", ".join(f'"{one.name}": {one.usual}' for one in dims)
    return OptionError(
        f"compile: option buckets: padding along '{dim.name}' is not inert: {obstacle}; expected "
        "each row to be computed from its own row of the inputs alone.",
        code="buckets-not-inert",
        hints=(
            f"specialise=[{{{usual}}}] makes variants for sizes that come often, without padding.",
        ),
    )


def _from_log(engine: Engine, count: object, shape_log: PathLike | None) -> BucketPlan:
    """The `count` sizes for which the runs of a log are padded least."""
    dims = engine.interface.dims
    if (
        not isinstance(count, int)
        or isinstance(count, bool)
        or count < 1
        or shape_log is None
        or len(dims) > 1
    ):
        raise _uncounted(count, shape_log, dims)
    (dim,) = dims
    runs = {
        sizes[dim.name]: often
        for sizes, often in logged_runs(shape_log, engine.name)
        if sizes.keys() == {dim.name} and max(dim.low, 1) <= sizes[dim.name] <= dim.high
    }
    if not runs:
        raise OptionError(
            f"compile: option shape_log: '{shape_log}' has no run of '{engine.name}' with "
            f"'{dim.name}' of {dim.low} to {dim.high}.",
            code="buckets-log",
            hints=("engine.log_sizes(path) and `tilewright run --shape-log` add runs.",),
        )
    choice = choose_buckets(runs, count)
    listed = ", ".join(map(str, choice.sizes))
    note = (
        f"buckets: '{dim.name}' {listed}, chosen of {len(runs)} sizes in {sum(runs.values())} runs "
        f"of the log: of the rows computed {choice.waste:.1%} are added"
    )
    return BucketPlan(dim, choice.sizes, note=note)


def _unknown(buckets: object, dims: Sequence[Dim]) -> OptionError:
    listed = ", ".join(f"'{dim.name}' of {dim.low} to {dim.high}" for dim in dims)
    first, *others = dims
    said = [f'"{first.name}": [{first.usual}, {first.high}]']
    said += [f'"{dim.name}": {dim.usual}' for dim in others]
    return OptionError(
        f"compile: option buckets is {buckets!r}; expected sizes to pad to for one size that a run "
        f"decides, a number for each other: {listed}.",
        code="buckets-sizes",
        hints=(f"buckets={{{', '.join(said)}}}",),
    )


def _uncounted(count: object, shape_log: PathLike | None, dims: Sequence[Dim]) -> OptionError:
    listed = ", ".join(f"'{dim.name}'" for dim in dims)
    return OptionError(
        f"compile: option buckets is {count!r} with shape_log={shape_log!r}, and runs decide "
        f"{listed}; expected a count of 1 or more, a log of sizes, and one size that runs decide.",
        code="buckets-count",
        hints=(
            'buckets=4, shape_log="sizes.jsonl" chooses from a log that engine.log_sizes wrote.',
            f'buckets={{"{dims[0].name}": [...]}} says which.',
        ),
    )


def _is_one_of(size: object, dim: Dim) -> bool:
    return type(size) is int and max(dim.low, 1) <= size <= dim.high
