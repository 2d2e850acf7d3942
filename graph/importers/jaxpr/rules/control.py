"""Rules of what runs jaxprs: calls, branches and loops."""

from __future__ import annotations

from collections.abc import Sequence

from .....tir.sizes import AnySize
from ....ir.build import GraphBuilder
from ....ir.ir import Graph, GraphNode, make_graph
from ....ops.logic import LessOrEqual
from ....regions.branch import IfElse
from ....regions.loop import ITERATION, Loop
from ....types import Splat, TensorType
from ...onnx.node import NotSupported
from ..program import Equation, Jaxpr, JaxType, Variable
from ..rule import Rule
from ..writer import JaxValue, JaxWriter

_INDEX = TensorType("int32", ())
_TRUTH = JaxType("bool", ())


def _jaxpr(w: JaxWriter, *operands: JaxValue, jaxpr: Jaxpr) -> list[JaxValue]:
    """What is called is written here."""
    return w.inline(jaxpr, operands)


def _called(
    w: JaxWriter, *operands: JaxValue, call_jaxpr: Jaxpr, num_consts: int = 0
) -> list[JaxValue]:
    return w.inline(call_jaxpr, operands)


def _called_in_batches(w: JaxWriter, *operands: JaxValue, call: Jaxpr) -> list[JaxValue]:
    return w.inline(call, operands)


def _composite(
    w: JaxWriter,
    *operands: JaxValue,
    jaxpr: Jaxpr,
    attributes: object = None,
    version: int = 0,
) -> list[JaxValue]:
    return w.inline(jaxpr, operands)


def _platform(w: JaxWriter, platforms: Sequence[Sequence[str] | None]) -> JaxValue:
    """Which of several ways is that of a CPU, or of any platform."""
    for number, names in enumerate(platforms):
        if names is None or "cpu" in names:
            return w.full(number, w.types[0].dtype)
    raise NotSupported(f"it is for {list(platforms)} alone; expected a way for a CPU, or for all")


# -- branches ------------------------------------------------------------------------------------


def _cond(
    w: JaxWriter, index: JaxValue, *operands: JaxValue, branches: Sequence[Jaxpr]
) -> list[JaxValue]:
    """One of several branches, by its number; a number that is known takes its branch."""
    known = w.known(index)
    if known is not None:
        return w.inline(branches[min(max(0, int(known)), len(branches) - 1)], operands)
    if len(branches) == 1:
        return w.inline(branches[0], operands)
    held = [w.held(one) for one in operands]
    graphs = [w.region(branch, held) for branch in branches]
    captured = [
        one for one, what in zip(operands, held, strict=True) if isinstance(what, TensorType)
    ]
    number = w.cast(index, _INDEX.dtype)
    half = len(graphs) // 2
    is_later = w.emit(LessOrEqual(), w.full(half, number.dtype), number)
    if len(graphs) > 2:
        captured = [number, *captured]
    op = IfElse(_chosen(graphs[half:], half, len(graphs)), _chosen(graphs[:half], 0, len(graphs)))
    return w.run(op, (is_later, *captured), len(graphs[0].outputs))


def _chosen(graphs: Sequence[Graph], first: int, total: int) -> Graph:
    """A graph that runs one of some, the first of which has the number `first`. It takes the number
    of the branch before all others, where there are more than two in `total`.
    """
    if total == 2:
        return graphs[0]
    builder = GraphBuilder(graphs[0].name)
    builder.reserved = frozenset(value for graph in graphs for value in graph.types)
    number = builder.input(builder.fresh("number"), _INDEX)
    inputs = {value: graphs[0].types[value] for value in graphs[0].inputs}
    if len(graphs) == 1:
        given = {**builder.inputs, **inputs}
        return make_graph(
            graphs[0].name, given, graphs[0].outputs, graphs[0].nodes, graphs[0].constants
        )
    names = [builder.input(value, type_) for value, type_ in inputs.items()]
    half = len(graphs) // 2
    limit = builder.constant(builder.fresh("limit"), Splat(first + half, _INDEX.dtype, ()))
    is_later = builder.add(LessOrEqual(), limit, number)
    op = IfElse(_chosen(graphs[half:], first + half, total), _chosen(graphs[:half], first, total))
    outputs = tuple(builder.fresh(f"output{n}") for n in range(len(graphs[0].outputs)))
    builder.add_node(GraphNode(op, (is_later, number, *names), outputs))
    return make_graph(builder.name, builder.inputs, outputs, builder.nodes, builder.constants)


# -- loops ---------------------------------------------------------------------------------------


def _scan(
    w: JaxWriter,
    *operands: JaxValue,
    jaxpr: Jaxpr,
    length: AnySize,
    reverse: bool,
    num_consts: int,
    num_carry: int,
) -> list[JaxValue]:
    """A loop over rows: constants come first, then what is carried, then arrays of rows."""
    constants, rest = operands[:num_consts], operands[num_consts:]
    carried, arrays = rest[:num_carry], rest[num_carry:]
    held = [w.held(one) for one in constants]
    rows = [TensorType(one.dtype, one.shape[1:]) for one in arrays]
    body = w.region(jaxpr, (*held, *(one.type for one in carried), *rows))
    captured = [
        one for one, what in zip(constants, held, strict=True) if isinstance(what, TensorType)
    ]
    collected = len(body.outputs) - num_carry
    op = Loop(
        _body(body, len(captured)),
        num_carry,
        length,
        rows=(reverse,) * len(arrays),
        collected=(reverse,) * collected,
    )
    return w.run(op, (*carried, *arrays, *captured), len(body.outputs))


def _body(graph: Graph, captured: int) -> Graph:
    """The body of a loop: the number of the iteration first, what is captured last."""
    name = "iteration"
    while name in graph.types:
        name += "_"
    order = (*graph.inputs[captured:], *graph.inputs[:captured])
    inputs = {name: ITERATION, **{value: graph.types[value] for value in order}}
    return make_graph(graph.name, inputs, graph.outputs, graph.nodes, graph.constants)


def _while(
    w: JaxWriter,
    *operands: JaxValue,
    cond_jaxpr: Jaxpr,
    cond_nconsts: int,
    body_jaxpr: Jaxpr,
    body_nconsts: int,
) -> list[JaxValue]:
    """The condition is asked before the first iteration, and behind each."""
    asked, run = operands[:cond_nconsts], operands[cond_nconsts : cond_nconsts + body_nconsts]
    carried = operands[cond_nconsts + body_nconsts :]
    begins = w.inline(cond_jaxpr, (*asked, *carried))
    held = [w.held(one) for one in (*asked, *run)]
    both = _run_and_asked(body_jaxpr, body_nconsts, cond_jaxpr, cond_nconsts)
    graph = w.region(both, (*held, *(one.type for one in carried)))
    captured = [
        one for one, what in zip((*asked, *run), held, strict=True) if isinstance(what, TensorType)
    ]
    op = Loop(_body(graph, len(captured)), len(carried), conditional=True)
    return w.run(op, (*begins, *carried, *captured), len(carried))


def _run_and_asked(body: Jaxpr, run: int, condition: Jaxpr, asked: int) -> Jaxpr:
    """A jaxpr that runs a body, and gives whether to go on, and what is carried then."""
    constants = [f"c{n}" for n in range(asked)], [f"b{n}" for n in range(run)]
    carried = [f"x{n}" for n in range(len(body.outputs))]
    made = [f"y{n}" for n in range(len(body.outputs))]
    types = [body.types[name] for name in body.inputs[run:]]
    known = {
        **dict(
            zip(constants[0], (condition.types[name] for name in condition.inputs), strict=False)
        ),
        **dict(zip(constants[1], (body.types[name] for name in body.inputs), strict=False)),
        **dict(zip(carried, types, strict=True)),
    }

    def call(jaxpr: Jaxpr, given: Sequence[str], outputs: Sequence[str]) -> Equation:
        kinds = types if jaxpr is body else [_TRUTH]
        operands = tuple(map(Variable, given))
        return Equation(
            "closed_call", operands, tuple(outputs), tuple(kinds), {"call_jaxpr": jaxpr}
        )

    return Jaxpr(
        (*constants[0], *constants[1], *carried),
        (Variable("more"), *map(Variable, made)),
        (
            call(body, (*constants[1], *carried), made),
            call(condition, (*constants[0], *made), ("more",)),
        ),
        known,
        {},
    )


RULES: dict[str, Rule] = {
    "closed_call": _called,
    "composite": _composite,
    "cond": _cond,
    "custom_jvp_call": _called,
    "custom_vjp_call": _called,
    "custom_vmap_call": _called_in_batches,
    "jit": _jaxpr,
    "platform_index": _platform,
    "remat2": _jaxpr,
    "scan": _scan,
    "while": _while,
}
