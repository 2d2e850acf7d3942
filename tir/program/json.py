"""A Program as JSON and back. Functions are their printed text, so a file of it can be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..json_reader import Json, Reader, cut_line, parse_json
from .program import SPACES, Copy, Launch, Program, ProgramTensor, Slice, Step, Sync, verify_program
from .sizes_json import (
    NO_DIMS,
    Dims,
    dims_from_json,
    dims_to_json,
    shape_from_json,
    shape_to_json,
)

if TYPE_CHECKING:
    from ..func import PrimFunc

_LONGEST_FUNCTION = 1 << 22  # characters


def program_text(program: Program) -> str:
    """The JSON text of a program."""
    return json.dumps(
        {
            "name": program.name,
            "dims": dims_to_json(program.dims),
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
        case Copy():
            return {
                "step": "copy",
                "source": _slice_to_json(step.source),
                "target": _slice_to_json(step.target),
            }
    return {"step": "sync"}


def step_from_json(data: Reader, dims: Dims = NO_DIMS) -> Step:
    """The step that `step_to_json` wrote. Raises: IRError."""
    match data["step"].one_of("launch", "copy", "sync"):
        case "launch":
            return launch_from_json(data, dims)
        case "copy":
            source, target = (_slice_from_json(data[end], dims) for end in ("source", "target"))
            return Copy(source, target)
    return Sync()


def launch_from_json(data: Reader, dims: Dims = NO_DIMS) -> Launch:
    """The launch that `step_to_json` wrote. Raises: IRError."""
    arguments = tuple(_slice_from_json(item, dims) for item in data["arguments"].items())
    sizes = data.optional("sizes")
    given = () if sizes is None else shape_from_json(sizes, dims)
    return Launch(data["function"].text(), arguments, data["label"].line(), given)


def _slice_to_json(item: Slice) -> Json:
    return {
        "space": item.space,
        "position": item.position,
        "dtype": str(item.dtype),
        "shape": shape_to_json(item.shape),
    }


def _slice_from_json(data: Reader, dims: Dims) -> Slice:
    return Slice(
        data["space"].one_of(*SPACES),
        data["position"].integer(),
        data["dtype"].dtype(),
        shape_from_json(data["shape"], dims),
    )


def _function(data: Reader) -> PrimFunc:
    # here, because the steps of a program that is only run hold no functions
    from ..parsing.parser import parse

    return parse(data.text(_LONGEST_FUNCTION))
