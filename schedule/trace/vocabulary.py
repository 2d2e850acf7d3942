"""Names that other systems give to what a schedule does here: each is answered with ours.

One table per vocabulary: the name -> what to write instead, or why there is no such thing. The
names are looked up where an attribute of a schedule is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...tir.buffer import Buffer
from ...tir.errors import misspelt
from ..errors import ScheduleError

TVM: Mapping[str, str] = {
    "cache_inplace": "sch.stage(block, buffer, loop, scope)",
    "compute_root": "every block stands at the root until compute_at moves it",
    "get_block": "blocks are named by their tensors: sch.loops('C')",
    "get_child_blocks": "sch.blocks()",
    "get_consumers": "sch.func shows who reads a tensor; sch.blocks() lists all",
    "get_loops": "sch.loops(block)",
    "get_output_blocks": "sch.blocks()",
    "get_producers": "sch.func shows who writes a tensor; sch.blocks() lists all",
    "get_sblock": "blocks are named by their tensors: sch.loops('C')",
    "mod": "sch.func",
    "normalize": "sch.show() prints the steps so far",
    "pipeline": (
        "sch.prefetch(buffer, at, spread=(...)): on a CPU the next iteration's data is asked for, "
        "since no copy runs beside the arithmetic"
    ),
    "pragma": "sch.annotate(loop, key, value)",
    "sample_compute_location": "sch.sample_categorical(candidates)",
    "set_axis_separator": "an array has one block of memory: sch.transform_layout(buffer, map)",
    "state": "sch.func",
    "tile": "sch.split(i, (None, a)) and sch.split(j, (None, b)), then sch.reorder",
    "transform_block_layout": (
        "sch.join_axes(block, groups) counts axes as one, sch.split_axis(block, axis, factor) one "
        "as two digits"
    ),
    "unannotate": "sch.undo() takes back the last step",
    "double_buffer": "sch.prefetch(buffer, at, spread=(...)) asks for the next part of a tensor",
}
HALIDE: Mapping[str, str] = {
    "align_bounds": "sch.split(loop, factors, tail='partition') and sch.pad(buffer, multiples)",
    "align_storage": "sch.storage_align(buffer, axis, factor, offset)",
    "bound": "extents are known: sch.extent(loop)",
    "fold_storage": "storage is folded by itself; sch.rolling_buffer(block, loop) keeps a window",
    "gpu_blocks": "sch.bind(loop, 'blockIdx.x')",
    "gpu_threads": "sch.bind(loop, 'threadIdx.x')",
    "gpu_tile": "sch.split, sch.reorder and sch.bind",
    "hoist_storage": "storage is placed by itself; sch.set_scope(buffer, scope) moves it closer",
    "reorder_storage": "sch.transform_layout(buffer, lambda i, j: (j, i))",
    "sliding_window": "sch.rolling_buffer(block, loop)",
    "specialize": "sch.loop_partition(loop, points): variants of a loop",
    "store_at": "storage is placed by itself; sch.set_scope(buffer, scope) moves it closer",
    "store_in": "sch.set_scope(buffer, scope)",
    "store_root": "storage is placed by itself; sch.set_scope(buffer, 'global') shares it",
    "update": "sch.decompose_reduction(block, loop) parts a reduction from its initialisation",
}
EXO: Mapping[str, str] = {
    "add_loop": "sch.add_unit_loop(block)",
    "autofission": "sch.fission(loop, block)",
    "bind_expr": "sch.cache_read(block, buffer)",
    "cut_loop": "sch.loop_partition(loop, points)",
    "divide_dim": "sch.transform_layout(buffer, lambda i: (i // 8, i % 8))",
    "divide_loop": "sch.split(loop, (None, factor), tail='partition')",
    "expand_dim": "sch.reindex(block, buffer)",
    "lift_alloc": "storage is placed by itself; sch.set_scope(buffer, scope) moves it closer",
    "mult_loops": "sch.fuse(i, j)",
    "parallelize_loop": "sch.parallel(loop)",
    "reorder_loops": "sch.reorder(j, i)",
    "set_memory": "sch.set_scope(buffer, scope)",
    "stage_mem": "sch.stage(block, buffer, loop, scope)",
    "stage_window": "sch.stage(block, buffer, loop, scope)",
    "unroll_loop": "sch.unroll(loop)",
    "join_loops": "sch.merge(first, second)",
    "fuse_loops": "sch.merge(first, second) for loops that follow each other",
}
LOOPY: Mapping[str, str] = {
    "add_prefetch": "sch.stage(block, buffer, loop, scope); sch.prefetch asks for cache lines",
    "join_inames": "sch.fuse(i, j)",
    "prioritize_loops": "sch.reorder(i, j)",
    "rename_iname": "handles stand for loops; names are for display",
    "split_iname": "sch.split(loop, (None, factor))",
    "split_reduction_inward": "sch.rfactor(block, loop)",
    "split_reduction_outward": "sch.rfactor(block, loop)",
    "tag_inames": "sch.parallel, sch.vectorize, sch.unroll, or sch.bind(loop, axis)",
}
VOCABULARIES: tuple[Mapping[str, str], ...] = (TVM, HALIDE, EXO, LOOPY)


class UnknownStepError(ScheduleError, AttributeError):
    """A schedule has no such step."""


class SubscriptError(ScheduleError, TypeError):
    """A schedule is not indexed: its steps are methods."""


def unknown_step(name: str, known: Iterable[str]) -> UnknownStepError:
    """The error for an attribute that a schedule does not have; `known` are those that it has."""
    ours = next((table[name] for table in VOCABULARIES if name in table), None)
    if ours is not None:
        return UnknownStepError(
            f"schedule: no step '{name}'.",
            code="unknown-step",
            hints=(f"in tilewright: {ours}.",),
        )
    foreign = {other: answer for table in VOCABULARIES for other, answer in table.items()}
    message, hints = misspelt(
        "schedule: no step", name, known, foreign, "help(tilewright.Schedule)"
    )
    return UnknownStepError(message, code="unknown-step", hints=hints)


def subscript(key: object) -> SubscriptError:
    """The error for `sch[key]`."""
    name = key.name if isinstance(key, Buffer) else str(key)
    return SubscriptError(
        f"schedule: [{name}] does not index a schedule.",
        code="schedule-subscript",
        hints=(
            "in tilewright: steps are methods, and loops have handles: "
            f"i, *_ = sch.loops('{name}'); sch.split(i, (None, 8)).",
        ),
    )
