"""A Program as JSON and back. Functions are their printed text, so a file of it can be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, assert_never

from ..dim import Dim
from ..errors import IRError
from ..json_reader import Json, Reader, cut_line, parse_json
from ..sizes import AnySize, Size, size_of
from .program import (
    SPACES,
    Branch,
    Copy,
    KeepLargest,
    Launch,
    LoopRow,
    Program,
    ProgramTensor,
    ReadSize,
    Repeat,
    Slice,
    Step,
    Sync,
    WriteIteration,
    sizes_read,
)
from .sizes_json import (
    NO_DIMS,
    Dims,
    dims_from_json,
    dims_to_json,
    shape_from_json,
    shape_to_json,
    size_from_json,
    size_to_json,
    sizes_from_json,
)
from .syncs import verify_program

if TYPE_CHECKING:
    from ..func import PrimFunc

_STEPS = ("launch", "copy", "sync", "iteration", "largest", "size", "if", "for")
_LONGEST_FUNCTION = 1 << 22  # characters
DEEPEST = 64  # of branches and loops within each other


def program_text(program: Program) -> str:
    """The JSON text of a program."""
    return json.dumps(
        {
            "name": program.name,
            "dims": dims_to_json((*program.dims, *(s.dim for s in sizes_read(program.body)))),
            "inputs": [tensor_to_json(tensor) for tensor in program.inputs],
            "outputs": [tensor_to_json(tensor) for tensor in program.outputs],
            "constants": [tensor_to_json(tensor) for tensor in program.constants],
            "functions": [str(func) for func in program.functions],
            "body": [step_to_json(step) for step in program.body],
            "arena_bytes": program.arena_bytes,
            "prepare": [step_to_json(launch) for launch in program.prepare],
        }
    )


def parse_program(text: str) -> Program:
    """The program that `program_text` wrote.

    Raises: IRError, ParseError for anything else, and for a program that is not well formed.
    """
    data = parse_json(text, "program")
    dims = dims_from_json(data.optional("dims"))
    program = Program(
        name=data["name"].text(),
        inputs=tuple(tensor_from_json(item, dims) for item in data["inputs"].items()),
        outputs=tuple(tensor_from_json(item, dims) for item in data["outputs"].items()),
        constants=tuple(tensor_from_json(item, dims) for item in data["constants"].items()),
        functions=tuple(_function(item) for item in data["functions"].items()),
        body=tuple(step_from_json(item, dims) for item in data["body"].items()),
        arena_bytes=data["arena_bytes"].integer(),
        prepare=tuple(launch_from_json(item, dims) for item in data["prepare"].items()),
    )
    verify_program(program)
    return program


def tensor_to_json(tensor: ProgramTensor) -> Json:
    """A tensor as plain JSON values."""
    return {"name": tensor.name, "dtype": str(tensor.dtype), "shape": shape_to_json(tensor.shape)}


def tensor_from_json(data: Reader, dims: Dims = NO_DIMS) -> ProgramTensor:
    """The tensor that `tensor_to_json` wrote. Raises: IRError."""
    name, kind = data["name"].text(), data["dtype"].dtype()
    return ProgramTensor(name, kind, shape_from_json(data["shape"], dims))


def step_to_json(step: Step) -> Json:
    """A step as plain JSON values."""
    match step:
        case Launch():
            return {
                "step": "launch",
                "function": step.function,
                "arguments": [_slice_to_json(item) for item in step.arguments],
                "label": cut_line(step.label),
                **({"sizes": shape_to_json(step.sizes)} if step.sizes else {}),
            }
        case Copy() | KeepLargest():
            return {
                "step": "copy" if isinstance(step, Copy) else "largest",
                "source": _slice_to_json(step.source),
                "target": _slice_to_json(step.target),
            }
        case WriteIteration():
            return {
                "step": "iteration",
                "loop": step.loop,
                "target": _slice_to_json(step.target),
            }
        case ReadSize():
            return {
                "step": "size",
                "size": size_to_json(size_of(step.dim)),
                "source": _slice_to_json(step.source),
            }
        case Branch():
            return {
                "step": "if",
                "condition": _slice_to_json(step.condition),
                "then": [step_to_json(one) for one in step.then],
                "else": [step_to_json(one) for one in step.otherwise],
                "label": cut_line(step.label),
            }
        case Repeat():
            count, until = step.count, step.condition
            return {
                "step": "for",
                "loop": step.loop,
                "count": None if count is None or isinstance(count, Slice) else size_to_json(count),
                "counted": _slice_to_json(count) if isinstance(count, Slice) else None,
                "condition": None if until is None else _slice_to_json(until),
                "body": [step_to_json(one) for one in step.body],
                "label": cut_line(step.label),
            }
        case Sync():
            return {"step": "sync"}
    assert_never(step)


def step_from_json(data: Reader, dims: Dims = NO_DIMS, depth: int = 0) -> Step:
    """The step that `step_to_json` wrote, within `depth` others. Raises: IRError."""

    def place(name: str) -> Slice:
        return _slice_from_json(data[name], dims)

    match data["step"].one_of(*_STEPS):
        case "launch":
            return launch_from_json(data, dims)
        case "copy":
            return Copy(place("source"), place("target"))
        case "iteration":
            return WriteIteration(data["loop"].integer(), place("target"))
        case "largest":
            return KeepLargest(place("source"), place("target"))
        case "size":
            return ReadSize(_dim_from_json(data["size"], dims), place("source"))
        case "sync":
            return Sync()
        case kind:
            return _flow_from_json(data, kind, dims, depth + 1)


def _flow_from_json(data: Reader, kind: str, dims: Dims, depth: int) -> Branch | Repeat:
    if depth > DEEPEST:
        raise IRError(
            f"program: steps lie within each other more than {DEEPEST} deep; expected no program "
            "of ours.",
            code="program-depth",
        )

    def place(item: Reader) -> Slice:
        return _slice_from_json(item, dims)

    def size(item: Reader) -> AnySize:
        return size_from_json(item, dims)

    def steps(name: str) -> tuple[Step, ...]:
        return tuple(step_from_json(item, dims, depth) for item in data[name].items())

    label = data["label"].line()
    if kind == "if":
        return Branch(place(data["condition"]), steps("then"), steps("else"), label)
    counted = data["counted"].or_none(place)
    return Repeat(
        data["loop"].integer(),
        data["count"].or_none(size) if counted is None else counted,
        data["condition"].or_none(place),
        steps("body"),
        label,
    )


def _dim_from_json(data: Reader, dims: Dims) -> Dim:
    size = size_from_json(data, dims)
    if not isinstance(size, Size) or size.dim is None:
        raise IRError(
            f"json: {data.where} is {size}; expected one size that a run decides.", code="json-dim"
        )
    return size.dim


def launch_from_json(data: Reader, dims: Dims = NO_DIMS) -> Launch:
    """The launch that `step_to_json` wrote. Raises: IRError."""
    arguments = tuple(_slice_from_json(item, dims) for item in data["arguments"].items())
    sizes = data.optional("sizes")
    given = () if sizes is None else sizes_from_json(sizes, dims)
    return Launch(data["function"].text(), arguments, data["label"].line(), given)


def _slice_to_json(item: Slice) -> Json:
    made: dict[str, Json] = {
        "space": item.space,
        "position": item.position,
        "dtype": str(item.dtype),
        "shape": shape_to_json(item.shape),
    }
    if item.moves:
        made["moves"] = [
            {"loop": move.loop, "rows": size_to_json(move.rows), "reverse": move.reverse}
            for move in item.moves
        ]
    return made


def _slice_from_json(data: Reader, dims: Dims) -> Slice:
    moves = data.optional("moves")  # of rows alone
    return Slice(
        data["space"].one_of(*SPACES),
        data["position"].integer(),
        data["dtype"].dtype(),
        shape_from_json(data["shape"], dims),
        () if moves is None else tuple(_row_from_json(m, dims) for m in moves.items(DEEPEST)),
    )


def _row_from_json(data: Reader, dims: Dims) -> LoopRow:
    rows = size_from_json(data["rows"], dims)
    return LoopRow(data["loop"].integer(), rows, data["reverse"].truth())


def _function(data: Reader) -> PrimFunc:
    # here, because the steps of a program that is only run hold no functions
    from ..parsing.parser import parse

    return parse(data.text(_LONGEST_FUNCTION))
