from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tilewright.runtime.cuda.program_json import cuda_program_from_json, cuda_program_to_json
from tilewright.tir.errors import IRError
from tilewright.tir.json_reader import Json, parse_json

from ...gpu_program import KERNELS, branches, passed_on

SOURCES = tuple(kernel.source for kernel in KERNELS)


def test_a_program_survives() -> None:
    for made in (branches(), passed_on()):
        data = parse_json(json.dumps(cuda_program_to_json(made)), "data")
        assert cuda_program_from_json(data, SOURCES) == made


def changed(path: str, value: Json) -> str:
    """What is said of a program with one value changed."""
    data: Json = json.loads(json.dumps(cuda_program_to_json(branches())))
    *parents, last = path.split(".")
    place = data
    for name in parents:
        place = place[int(name) if name.isdigit() else name]  # type: ignore[index,call-overload]
    place[int(last) if last.isdigit() else last] = value  # type: ignore[index,call-overload]
    with pytest.raises(IRError) as caught:
        cuda_program_from_json(parse_json(json.dumps(data), "data"), SOURCES)
    return caught.value.message


RUN = "kernels.0.run"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("kernels", [], "program: 0 kernels have 2 sources."),
        ("arena_bytes", 512, "program: arena[2048]: float32[64] does not exist."),
        ("outputs", [], "program: output[0]: float32[64] does not exist."),
        ("read", [9], "program: 'read' names a constant that does not exist."),
        ("body.0.function", "scales", "program: a launch of 'scales' does not fit the kernels."),
        (
            "body.0.arguments.0.shape",
            [32],
            "program: a launch of 'scale' does not fit the kernels.",
        ),
        (f"{RUN}.launches.0.arguments.0", "Z", "program: 'first' takes what nobody hands it."),
        (
            f"{RUN}.launches.0.grid",
            [1, 1],
            "program: data.kernels[0].run.launches[0].grid has 2 extents.",
        ),
        (
            f"{RUN}.launches.0.block.0",
            2048,
            "json: data.kernels[0].run.launches[0].block[0] is 2048; expected a whole number from "
            "0 to 1024.",
        ),
    ],
)
def test_a_program_that_contradicts_itself_is_refused(path: str, value: Json, message: str) -> None:
    assert changed(path, value) == message


def test_as_many_sources_as_kernels_are_wanted() -> None:
    data = parse_json(json.dumps(cuda_program_to_json(replace(branches(), kernels=()))), "data")
    with pytest.raises(IRError, match="0 kernels have 2 sources"):
        cuda_program_from_json(data, SOURCES)
