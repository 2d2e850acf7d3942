from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.runtime.cuda.program_json import cuda_program_from_json, cuda_program_to_json
from tilewright.tir.dim import Dim
from tilewright.tir.dtype import INT64
from tilewright.tir.errors import IRError
from tilewright.tir.json_reader import Json, parse_json
from tilewright.tir.program.program import ReadSize, Slice

from ...gpu_program import DOUBLED, KERNELS, branches, open_rows, passed_on

SOURCES = tuple(kernel.source for kernel in KERNELS)


def test_a_program_survives() -> None:
    for made in (branches(), passed_on()):
        data = parse_json(json.dumps(cuda_program_to_json(made)), "data")
        assert cuda_program_from_json(data, SOURCES) == made


def test_a_program_of_open_sizes_survives() -> None:
    written = cuda_program_to_json(open_rows())
    found = cuda_program_from_json(parse_json(json.dumps(written), "data"), (DOUBLED,))
    assert cuda_program_to_json(found) == written
    (rows,), (kernel,) = found.dims, found.kernels
    assert (rows.name, rows.low, rows.high, rows.usual) == ("rows", 0, 8, 4)
    assert kernel.run.launches == open_rows().kernels[0].run.launches
    assert [(size.dim.name, size.parameter, size.axis) for size in kernel.sizes] == [("n", 0, 0)]
    assert found.at({rows: 3}).steps[0].arguments[0].shape == (3, 64)  # type: ignore[union-attr]


def changed(path: str, value: Json) -> str:
    """What is said of a program with one value changed."""
    return refused(branches(), SOURCES, path, value)


def refused(program: CudaProgram, sources: tuple[str, ...], path: str, value: Json) -> str:
    data: Json = json.loads(json.dumps(cuda_program_to_json(program)))
    *parents, last = path.split(".")
    place = data
    for name in parents:
        place = place[int(name) if name.isdigit() else name]  # type: ignore[index,call-overload]
    place[int(last) if last.isdigit() else last] = value  # type: ignore[index,call-overload]
    with pytest.raises(IRError) as caught:
        cuda_program_from_json(parse_json(json.dumps(data), "data"), sources)
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


LAUNCH = f"{RUN}.launches.0"
MISFIT = "program: a launch of 'doubled' does not fit the kernels."


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("body.0.sizes", [], MISFIT),
        ("body.0.sizes", [9], MISFIT),  # the kernel has at most 8 rows
        ("body.0.sizes", [[[2, "rows"]]], MISFIT),
        ("body.0.sizes", [[[1, "lines"]]], "json: data.body[0].sizes[0][0][1] names the size "),
        ("body.0.arguments.1.shape", [8, 64], MISFIT),
        ("body.0.arguments.1.shape", [[[1, "rows"]], 32], MISFIT),
        ("kernels.0.dims", [], "json: data.kernels[0].run.parameters[0].shape[0][0][1] names the "),
        ("kernels.0.dims", [["n", 0, 7, 4]], MISFIT),
        ("kernels.0.dims", [["A", 0, 8, 4]], "json: data.kernels[0].run.parameters[0].shape[0]"),
        (f"{LAUNCH}.arguments", ["A", "C", "m"], "program: 'doubled' takes what nobody hands it."),
        (
            f"{LAUNCH}.stops.0.size",
            "A",
            "program: the grid of 'doubled' ends with a size that it does not have.",
        ),
        (f"{LAUNCH}.stops.0.axis", 3, "json: data.kernels[0].run.launches[0].stops[0].axis is 3;"),
        (f"{LAUNCH}.stops.0.step", 0, "program: data.kernels[0].run.launches[0].stops[0] ends no"),
        (f"{LAUNCH}.stops.0.scale", 0, "program: data.kernels[0].run.launches[0].stops[0] ends no"),
        (f"{LAUNCH}.stops.0.offset", 0.5, "program: data.kernels[0].run.launches[0].stops[0] ends"),
        ("outputs.0.shape", [8, 64], "program: output[0]: float32[rows, 64] is not all of 'y'."),
    ],
)
def test_open_sizes_that_contradict_each_other_are_refused(
    path: str, value: Json, message: str
) -> None:
    assert refused(open_rows(), (DOUBLED,), path, value).startswith(message)


def test_a_size_has_a_name_that_no_array_has() -> None:
    data: Json = json.loads(json.dumps(cuda_program_to_json(open_rows())).replace('"n"', '"A"'))
    with pytest.raises(IRError) as caught:
        cuda_program_from_json(parse_json(json.dumps(data), "data"), (DOUBLED,))
    assert caught.value.message == (
        "program: data.kernels[0].run has arrays and sizes of one name."
    )


def test_files_from_before_have_no_sizes() -> None:
    data = cuda_program_to_json(branches())
    for kernel in data["kernels"]:  # type: ignore[union-attr]
        del kernel["dims"]  # type: ignore[index,union-attr]
        for launch in kernel["run"]["launches"]:  # type: ignore[index,union-attr]
            del launch["stops"]  # type: ignore[union-attr]
    del data["dims"]
    assert cuda_program_from_json(parse_json(json.dumps(data), "data"), SOURCES) == branches()


def test_a_size_that_data_decide_is_refused() -> None:
    read = ReadSize(Dim("found", low=0, high=8), Slice("arena", 0, INT64, ()))
    data = cuda_program_to_json(replace(open_rows(), body=(*open_rows().body, read)))
    with pytest.raises(IRError) as caught:
        cuda_program_from_json(parse_json(json.dumps(data), "data"), (DOUBLED,))
    assert caught.value.message == "program: a program for a GPU reads sizes that data decide."
