"""What was decided for a model, and why not otherwise, one line for each fact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from ...runtime.model.arena import arena_tensors, live_bytes
from ...runtime.model.report import open_bytes_text
from ...tir.program.fitting import effects_of
from ...tir.program.program import Copy, Program, actions, functions_by_name
from ...tir.sizes import Size
from ..assumed_sizes import assumed, bounds_text
from ..extensions.operators import declaration_of
from ..ir.draws import drawing_nodes
from ..ir.ir import Graph, all_nodes, megabytes
from ..ir.views import is_view, storage
from ..kernels.algorithms import ALGORITHMS
from ..ops.base import OperatorRole
from ..ops.data_size import DataSize
from .choose import GroupDecision, KernelChoice
from .explain_flow import flow_lines
from .plan import Planned, rounding_more


def explain(planned: Planned) -> tuple[str, ...]:
    """The lines: passes, launches, fused groups, prices, misses, what only moves data, memory."""
    return tuple(_lines(planned))


def _lines(planned: Planned) -> Iterator[str]:
    graph, program = planned.flat.graph, planned.lowered.program
    yield from _sizes(planned.imported)
    if drawing_nodes(planned.imported):
        yield "random numbers are the same in every run; noise that is new in each is an input"
    yield from _of_others(planned)
    yield from (f"pass {report}" for report in planned.passes)
    if planned.checker is not None:
        yield str(planned.checker)
    yield from planned.notes
    views = [node for node in graph.nodes if is_view(node, graph.types)]
    fused = [
        part.group
        for decision in planned.decisions
        for part in decision.chosen.parts
        if len(part.group.nodes) > 1
    ]
    copies = [step for step in actions(program.body) if isinstance(step, Copy)]
    yield (
        f"{len(graph.nodes)} nodes: {len(program.launches)} launches of "
        f"{len(program.functions)} functions, {sum(len(group.nodes) for group in fused)} nodes "
        f"in {len(fused)} "
        f"fused groups, {len(views)} views, {len(copies)} copies"
    )
    yield from (f"fused: {group.title}: {group.label}" for group in fused)
    for decision in planned.decisions:
        if len(decision.alternatives) > 1:
            yield _choice(decision)
        if len(decision.chosen.parts) > 1:
            yield _apart(decision)
    yield from map(_rounding, rounding_more(planned))
    yield from map(str, planned.fusion.misses)
    for node in views:
        if isinstance(node.op, DataSize):
            yield f"size: {node.title}: '{node.inputs[0]}' says what it is in each run"
        else:
            yield f"view: {node.title} is '{node.inputs[0]}' under another shape"
    yield from _moves(planned)
    for copy in copies:
        if copy.target.space == "output":
            output = program.outputs[copy.target.position].name
            yield f"copy: {megabytes(copy.source.bytes)} to output '{output}'"
    yield from flow_lines(planned.flat.block, program)
    yield from str(planned.lowered.plan).splitlines()
    yield from _memory_at_sizes(program)


def _of_others(planned: Planned) -> Iterator[str]:
    """Lines of the operators of others, and of what keeps the engine out of the cache."""
    counts = Counter(
        declared
        for node in all_nodes(planned.imported)
        if (declared := declaration_of(type(node.op))) is not None
    )
    for declared, count in counts.items():
        yield f"{declared}: {count} node{'s' if count > 1 else ''}"
    unknown = {str(declared): declared.origin.unknown for declared in counts}
    unknown |= {f"pass {one.name} of {one.origin}": one.not_kept for one in planned.passes}
    for title, why in unknown.items():
        if why:
            yield f"not kept in the cache: {title}: {why}"


def _sizes(imported: Graph) -> Iterator[str]:
    """Lines of the sizes that runs decide, and of those whose bounds nobody said."""
    if imported.dims:
        yield f"a run decides the sizes {bounds_text(imported.dims)}"
    unsaid = assumed(imported.dims)
    if unsaid:
        named = ", ".join(f'"{dim.name}": (least, usual, largest)' for dim in unsaid)
        listed = ", ".join(f"'{dim.name}'" for dim in unsaid)
        yield f"the bounds of {listed} were assumed; shapes={{{named}}} says others"


def _memory_at_sizes(program: Program) -> Iterator[str]:
    """The line of what a run needs of the arena, where it decides sizes."""
    if program.dims:
        live = live_bytes(
            arena_tensors(program.body, partial(effects_of, functions_by_name(program)))
        )
        if isinstance(live, Size):
            yield open_bytes_text(live)


def _choice(decision: GroupDecision) -> str:
    others = [str(one) for one in decision.alternatives if one is not decision.chosen]
    return f"priced: {decision.group.label}: took {decision.chosen}; not {'; '.join(others)}"


def _rounding(part: KernelChoice) -> str:
    """The line of a kernel whose algorithm was taken because a tolerance allows it."""
    error = ALGORITHMS[part.group.algorithm].error(part.fused)
    return f"rounds more: {part.group.label}: expected error {error:.1e} of its largest result"


def _apart(decision: GroupDecision) -> str:
    """The line of a fusion that is possible and was not made."""
    whole = decision.alternatives[0]
    return (
        f"not fused: {decision.group.title} ({decision.group.label}): in one kernel "
        f"{whole.seconds * 1e6:.1f} us, apart {decision.chosen.seconds * 1e6:.1f} us; "
        "to fuse: tune the function of the whole group"
    )


def _moves(planned: Planned) -> Iterator[str]:
    """A line for each kernel that computes nothing: what it stores, what that costs, who wants
    it.
    """
    graph, roots = planned.flat.graph, storage(planned.flat.graph)
    names: dict[str, list[str]] = {}
    for value, root in roots.items():
        names.setdefault(root, []).append(value)
    for part in (part for decision in planned.decisions for part in decision.chosen.parts):
        stored = part.group.outputs[0]
        if graph.types[stored].elements != 0 and _only_moves(part):
            yield (
                f"moves: {part.group.nodes[-1].title}: {megabytes(graph.types[stored].bytes)}, "
                f"{part.kernel.price}; because "
                f"{_wanted(graph, planned.flat.outputs, names[stored])}"
            )


def _only_moves(part: KernelChoice) -> bool:
    return all(node.op.role is OperatorRole.MOVEMENT for node in part.group.nodes)


def _wanted(graph: Graph, outputs: tuple[str, ...], names: list[str]) -> str:
    """Who needs the elements of a value, which has several names, together in their order."""
    for name in names:
        if name in outputs:
            return f"'{name}' is an output of the model"
    users = [
        node.title
        for node in graph.nodes
        if not is_view(node, graph.types) and not set(names).isdisjoint(node.inputs)
    ]
    if not users and not set(names).isdisjoint(graph.outputs):
        return "a branch or a loop takes it"
    if not users:
        return "no pass removed it, though nobody reads it"
    others = f" and {len(users) - 1} more nodes read" if len(users) > 1 else " reads"
    return f"{users[0]}{others} it whole, in this order"
