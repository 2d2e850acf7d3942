"""If, Loop and Scan: nodes that hold graphs. A Scan is a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence

from .....tir.sizes import AnySize, at_most, greatest, largest, least
from ....ir.draws import drawing_nodes
from ....ir.ir import Graph, GraphNode, RegionOperator, make_graph
from ....ops.arithmetic import Min
from ....ops.movement import Identity, Reshape, Transpose
from ....regions.branch import IfElse
from ....regions.loop import ITERATION, Loop
from ....types import Constant, Splat, TensorType, array_of, inverse
from ..node import NodeReader, NotSupported, Region, node_name
from ..structures import regrouped, structures_of
from .batched_scan import batched_scan
from .collected import collecting, cut
from .data_sizes import stated_bounds
from .rule import Application, ImportRule, Result, Several, Values
from .unrolling import unrolled

_TRUE = Splat(True, "bool", ())
_BATCHED = 8  # the version of Scan that has a batch
_LARGEST_COUNT = 1 << 40  # more iterations than anybody waits for: a condition ends them


def _if(node: NodeReader) -> Result:
    """A constant condition takes its branch, whatever the other one is."""
    known = node.builder.constants.get(node.value(0))
    if known is not None and node.type(0).elements == 1:
        return Values(node.inline("then_branch" if array_of(known).item() else "else_branch"))
    then, otherwise = (node.region(name, ()) for name in ("then_branch", "else_branch"))
    made, others = structures_of(then.values), structures_of(otherwise.values)
    if made != others:
        one, other = next(pair for pair in zip(made, others, strict=False) if pair[0] != pair[1])
        raise NotSupported(
            f"it gives {one} or {other}, and its condition, input '{node.value(0)}' is not a "
            "constant"
        )
    captured = tuple(dict.fromkeys((*then.captured, *otherwise.captured)))
    op = IfElse(*(_taking(region, captured, node) for region in (then, otherwise)))
    inputs = (node.value(0), *captured)
    if all(isinstance(value, str) for value in then.values):
        return _defined(node, op, inputs, len(op.then.outputs))
    base, count = node_name(node.proto), len(op.then.outputs)
    names = [node.builder.fresh(f"{base}.tensor{n}") for n in range(count)]
    node.define(GraphNode(op, inputs, tuple(names), node.proto.name))
    return Values(regrouped(then.values, names))


def _taking(region: Region, captured: tuple[str, ...], node: NodeReader) -> Graph:
    """The graph with an input for each of these values, the same ones for both branches."""
    graph = region.graph
    own = dict(zip(region.captured, graph.inputs, strict=True))
    inputs: dict[str, TensorType] = {}
    for value in captured:
        name = own.get(value, value)
        while value not in own and (name in graph.types or name in inputs):
            name += "_"
        inputs[name] = node.builder.types[value]
    return make_graph(graph.name, inputs, graph.outputs, graph.nodes, graph.constants)


def _loop(node: NodeReader) -> Result:
    """A constant count belongs to the operator; a condition is asked where it may be false."""
    if node.reads_structures("body"):
        return unrolled(node)
    carried = tuple(node.value(n) for n in range(2, len(node.inputs)))
    types = tuple(node.builder.types[value] for value in carried)
    # where an iteration runs, its condition was true
    region = _body(node, (ITERATION, _TRUE, *types))
    body, inputs = region.graph, list[str]()
    count = _known_count(node)
    counted = node.has(0) and count is None
    condition, *made = body.outputs
    if node.has(1):
        conditional, count = _conditional(node, body, condition, count)
        counted = counted and count is None
    else:  # what the body says is not asked then
        conditional = False
    scans = len(made) - len(carried)
    if scans < 0:
        raise NotSupported(
            f"its body gives {len(made)} values behind the condition; expected {len(carried)} "
            "carried ones first"
        )
    if scans and (counted or conditional):
        return _collecting(node, region, conditional=conditional, count=count)
    if not (counted or conditional or count is not None):
        raise NotSupported("nothing ends it; expected a trip count or a condition")
    if not conditional and count is not None and _is_endless(count):
        raise NotSupported(f"it runs {count} times; expected fewer, or a condition that ends it")
    if counted:
        inputs.append(_scalar(node, 0))
    if conditional:
        inputs.append(_scalar(node, 1))
        count = None if count is not None and _is_endless(count) else count
    op = Loop(
        _giving(body, (condition, *made) if conditional else tuple(made)),
        len(carried),
        count,
        counted,
        conditional,
        collected=(False,) * scans,
    )
    return _defined(node, op, (*inputs, *carried, *region.captured), len(made))


def _body(node: NodeReader, given: Sequence[TensorType | Constant]) -> Region:
    """The graph of each iteration. given: what its inputs are."""
    region = node.region("body", given)
    if drawing_nodes(region.graph):
        raise NotSupported(
            "its iterations would all draw the same random numbers; expected what they draw as an "
            "input of the loop"
        )
    return region


def _collecting(
    node: NodeReader, region: Region, *, conditional: bool, count: AnySize | None
) -> Result:
    """A loop with scan outputs that data end: they are carried, with how many rows they have. Where
    the caller bounds these, one iteration more finds out that the bound is too low.
    """
    carried = tuple(node.value(n) for n in range(2, len(node.inputs)))
    scans = len(region.graph.outputs) - 1 - len(carried)
    counted = node.has(0) and count is None
    if count is None or _is_endless(count):
        most = stated_bounds(node, node.proto.output[len(carried)])[-1]
        count = most + 1
    else:
        most = largest(count)
    if not most:
        raise NotSupported("its scan outputs have no rows; expected a loop that may run")
    made = collecting(node, region.graph, len(carried), scans, most)
    outputs = made.body.outputs if conditional else made.body.outputs[1:]
    inputs = [_scalar(node, 1)] if conditional else []
    if counted:
        limit = node.table("limit", Splat(most + 1, "int64", ()))
        inputs.insert(0, node.emit(Min(), _scalar(node, 0), limit))
    op = Loop(
        _giving(made.body, outputs),
        len(carried) + len(made.first),
        count,
        counted,
        conditional,
    )
    name = node_name(node.proto)
    fresh = tuple(node.builder.fresh(f"{name}.value{n}") for n in range(op.carried))
    given = (*inputs, *carried, *made.first, *region.captured)
    node.define(GraphNode(op, given, fresh, node.proto.name))
    rows = cut(node, fresh[len(carried) : -1], fresh[-1], most)
    return Several((*((Identity(), (value,)) for value in fresh[: len(carried)]), *rows))


def _known_count(node: NodeReader) -> AnySize | None:
    """The trip count that is constant, or a size; None where there is none, or data decide."""
    if node.has(0) and node.value(0) in node.builder.sizes:
        return greatest(0, node.size(0))
    known = node.builder.constants.get(node.value(0)) if node.has(0) else None
    if known is None or node.type(0).elements != 1:
        return None
    return max(0, int(array_of(known).item()))


def _is_endless(count: AnySize) -> bool:
    return at_most(_LARGEST_COUNT, count) is True


def _conditional(
    node: NodeReader, body: Graph, condition: str, count: AnySize | None
) -> tuple[bool, AnySize | None]:
    """Whether a condition is to be asked, and the count that is known without it."""
    first = node.builder.constants.get(node.value(1))
    begins = None if first is None else bool(array_of(first).item())
    later = body.constants.get(condition)
    goes_on = None if later is None else bool(array_of(later).item())
    if begins is False:
        return False, 0
    if begins and goes_on is False and count is not None:
        return False, least(count, 1)
    if begins and goes_on is False and not node.has(0):
        return False, 1
    return not (begins and goes_on), count


def _scan(node: NodeReader) -> Result:
    """Arrays are read along their first axes: others are moved there, and back."""
    if node.version == _BATCHED:
        return batched_scan(node)
    if node.given("directions"):
        raise NotSupported(f"attribute 'directions' is one of version {_BATCHED}")
    number = node.integer("num_scan_inputs")
    states = len(node.inputs) - number
    if number < 1 or states < 0:
        raise NotSupported(
            f"it scans {number} of {len(node.inputs)} inputs; expected 1 to {len(node.inputs)}"
        )
    carried = tuple(node.value(n) for n in range(states))
    axes = node.as_many("scan_input_axes", (0,) * number)
    arrays = [_moved(node, node.value(states + n), axis) for n, axis in enumerate(axes)]
    types = node.builder.types
    lengths = {types[value].shape[0] for value in arrays}
    if len(lengths) > 1:
        raise NotSupported(
            f"it scans arrays of {sorted(lengths, key=str)} rows; expected as many of each"
        )
    rows = [TensorType(types[v].dtype, types[v].shape[1:]) for v in arrays]
    region = _body(node, (*(types[value] for value in carried), *rows))
    body = region.graph
    collected = len(body.outputs) - states
    if collected < 0:
        raise NotSupported(
            f"its body gives {len(body.outputs)} values; expected {states} states first"
        )
    backwards = node.as_many("scan_input_directions", (0,) * number)
    prepended = node.as_many("scan_output_directions", (0,) * collected)
    op = Loop(
        _counting(body),
        states,
        lengths.pop(),
        rows=tuple(map(bool, backwards)),
        collected=tuple(map(bool, prepended)),
    )
    out_axes = node.as_many("scan_output_axes", (0,) * collected)
    inputs = (*carried, *arrays, *region.captured)
    if not any(out_axes):
        return _defined(node, op, inputs, len(body.outputs))
    fresh = tuple(
        node.builder.fresh(f"{node_name(node.proto)}.rows{n}") for n in range(len(body.outputs))
    )
    node.define(GraphNode(op, inputs, fresh, node.proto.name))
    moved: list[Application] = [(Identity(), (value,)) for value in fresh[:states]]
    for value, axis in zip(fresh[states:], out_axes, strict=True):
        order = inverse(_first(axis, types[value].rank))
        moved.append((Transpose(order), (value,)))
    return Several(tuple(moved))


def _moved(node: NodeReader, value: str, axis: int) -> str:
    """The value with one axis in front of the others."""
    rank = node.builder.types[value].rank
    if not -rank <= axis < rank:
        raise NotSupported(f"it scans axis {axis} of '{value}'; expected one of its {rank}")
    order = _first(axis, rank)
    return value if order == tuple(range(rank)) else node.emit(Transpose(order), value)


def _first(axis: int, rank: int) -> tuple[int, ...]:
    """The permutation that brings an axis to the front."""
    return (axis % rank, *(n for n in range(rank) if n != axis % rank))


def _counting(body: Graph) -> Graph:
    """The body with the number of the iteration as its first input."""
    name = "iteration"
    while name in body.types:
        name += "_"
    inputs = {name: ITERATION, **{value: body.types[value] for value in body.inputs}}
    return make_graph(body.name, inputs, body.outputs, body.nodes, body.constants)


def _giving(body: Graph, outputs: Sequence[str]) -> Graph:
    """The body with other outputs."""
    inputs = {value: body.types[value] for value in body.inputs}
    return make_graph(body.name, inputs, outputs, body.nodes, body.constants)


def _scalar(node: NodeReader, position: int) -> str:
    """An input of one element, without axes."""
    value, type_ = node.value(position), node.type(position)
    if type_.rank == 0 or type_.elements != 1:
        return value
    return node.emit(Reshape(()), value)


def _defined(node: NodeReader, op: RegionOperator, inputs: tuple[str, ...], outputs: int) -> Result:
    """The node, whose outputs are those of the operator."""
    node.define(GraphNode(op, inputs, node.outputs(outputs), node.proto.name))
    return Several(())


_LOOPS = (11, 13, 16, 19, 21, 23, 24, 25)
RULES: dict[str, ImportRule] = {
    "If": ImportRule((1, *_LOOPS), ("then_branch", "else_branch"), _if, outputs=None),
    "Loop": ImportRule((1, *_LOOPS), ("body",), _loop, outputs=None, takes_structures=True),
    "Scan": ImportRule(
        (_BATCHED, 9, *_LOOPS),
        (
            "body",
            "directions",
            "num_scan_inputs",
            "scan_input_axes",
            "scan_input_directions",
            "scan_output_axes",
            "scan_output_directions",
        ),
        _scan,
        outputs=None,
    ),
}
