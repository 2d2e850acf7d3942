"""A Program as JSON and back. Functions are their printed text, so a file of it can be read."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, assert_never

from ..errors import IRError
from ..json_reader import Json, Reader, cut_line, parse_json
from .program import (
    SPACES,
    Branch,
    Copy,
    KeepLargest,
    Launch,
    LoopRow,
    Program,
    ProgramTensor,
    Repeat,
    Slice,
    Step,
    Sync,
    WriteIteration,
)
from .syncs import verify_program

if TYPE_CHECKING:
    from ..func import PrimFunc

_LONGEST_FUNCTION = 1 << 22  # characters
DEEPEST = 64  # of branches and loops within each other


def program_text(program: Program) -> str:
    """The JSON text of a program."""
    return json.dumps(
        {
            "name": program.name,
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
    program = Program(
        name=data["name"].text(),
        inputs=tuple(tensor_from_json(item) for item in data["inputs"].items()),
        outputs=tuple(tensor_from_json(item) for item in data["outputs"].items()),
        constants=tuple(tensor_from_json(item) for item in data["constants"].items()),
        functions=tuple(_function(item) for item in data["functions"].items()),
        body=tuple(step_from_json(item) for item in data["body"].items()),
        arena_bytes=data["arena_bytes"].integer(),
        prepare=tuple(launch_from_json(item) for item in data["prepare"].items()),
    )
    verify_program(program)
    return program


def tensor_to_json(tensor: ProgramTensor) -> Json:
    """A tensor as plain JSON values."""
    return {"name": tensor.name, "dtype": str(tensor.dtype), "shape": list(tensor.shape)}


def tensor_from_json(data: Reader) -> ProgramTensor:
    """The tensor that `tensor_to_json` wrote. Raises: IRError."""
    return ProgramTensor(data["name"].text(), data["dtype"].dtype(), data["shape"].shape())


def step_to_json(step: Step) -> Json:
    """A step as plain JSON values."""
    match step:
        case Launch():
            return {
                "step": "launch",
                "function": step.function,
                "arguments": [_slice_to_json(item) for item in step.arguments],
                "label": cut_line(step.label),
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
                "count": None if isinstance(count, Slice) else count,
                "counted": _slice_to_json(count) if isinstance(count, Slice) else None,
                "condition": None if until is None else _slice_to_json(until),
                "body": [step_to_json(one) for one in step.body],
                "label": cut_line(step.label),
            }
        case Sync():
            return {"step": "sync"}
    assert_never(step)


def step_from_json(data: Reader, depth: int = 0) -> Step:
    """The step that `step_to_json` wrote, within `depth` others. Raises: IRError."""
    match data["step"].one_of("launch", "copy", "sync", "iteration", "largest", "if", "for"):
        case "launch":
            return launch_from_json(data)
        case "copy":
            return Copy(_slice_from_json(data["source"]), _slice_from_json(data["target"]))
        case "iteration":
            return WriteIteration(data["loop"].integer(), _slice_from_json(data["target"]))
        case "largest":
            return KeepLargest(_slice_from_json(data["source"]), _slice_from_json(data["target"]))
        case "sync":
            return Sync()
        case kind:
            return _flow_from_json(data, kind, depth + 1)


def _flow_from_json(data: Reader, kind: str, depth: int) -> Branch | Repeat:
    if depth > DEEPEST:
        raise IRError(
            f"program: steps lie within each other more than {DEEPEST} deep; expected no program "
            "of ours.",
            code="program-depth",
        )

    def steps(name: str) -> tuple[Step, ...]:
        return tuple(step_from_json(item, depth) for item in data[name].items())

    label = data["label"].line()
    if kind == "if":
        return Branch(_slice_from_json(data["condition"]), steps("then"), steps("else"), label)
    counted = data["counted"].or_none(_slice_from_json)
    return Repeat(
        data["loop"].integer(),
        data["count"].or_none(Reader.integer) if counted is None else counted,
        data["condition"].or_none(_slice_from_json),
        steps("body"),
        label,
    )


def launch_from_json(data: Reader) -> Launch:
    """The launch that `step_to_json` wrote. Raises: IRError."""
    arguments = tuple(_slice_from_json(item) for item in data["arguments"].items())
    return Launch(data["function"].text(), arguments, data["label"].line())


def _slice_to_json(item: Slice) -> Json:
    made: dict[str, Json] = {
        "space": item.space,
        "position": item.position,
        "dtype": str(item.dtype),
        "shape": list(item.shape),
    }
    if item.moves:
        made["moves"] = [asdict(move) for move in item.moves]
    return made


def _slice_from_json(data: Reader) -> Slice:
    moves = data.optional("moves")  # of rows alone
    return Slice(
        data["space"].one_of(*SPACES),
        data["position"].integer(),
        data["dtype"].dtype(),
        data["shape"].shape(),
        () if moves is None else tuple(map(_row_from_json, moves.items(DEEPEST))),
    )


def _row_from_json(data: Reader) -> LoopRow:
    return LoopRow(data["loop"].integer(), data["rows"].integer(), data["reverse"].truth())


def _function(data: Reader) -> PrimFunc:
    # here, because the steps of a program that is only run hold no functions
    from ..parsing.parser import parse

    return parse(data.text(_LONGEST_FUNCTION))
