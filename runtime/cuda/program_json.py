"""A model's CUDA C as JSON and back; what writing cannot have made is refused."""

from __future__ import annotations

from functools import partial

from ...codegen.cuda.program_artifact import CudaProgram
from ...tir.json_reader import Json, Reader
from ...tir.program.flow import has_flow
from ...tir.program.program import Launch
from ..artifact_json import (
    SYMBOL,
    check_steps,
    program_from_json,
    program_to_json,
    target_from_json,
    wrong,
)
from .artifact_json import artifact_of_parts, parts_to_json


def cuda_program_to_json(program: CudaProgram) -> dict[str, Json]:
    """A program without its sources."""
    kernels: list[Json] = [{"name": k.name, **parts_to_json(k)} for k in program.kernels]
    return {**program_to_json(program), "kernels": kernels}


def cuda_program_from_json(data: Reader, sources: tuple[str, ...]) -> CudaProgram:
    """The program that `cuda_program_to_json` wrote. sources: of its kernels. Raises: IRError."""
    target = target_from_json(data["target"])
    kernels = list(data["kernels"].items())
    if len(kernels) != len(sources):
        raise wrong(f"{len(kernels)} kernels have {len(sources)} sources")
    made = tuple(
        artifact_of_parts(item, item["name"].text(SYMBOL), source, target)
        for item, source in zip(kernels, sources, strict=True)
    )
    program = program_from_json(data, partial(CudaProgram, kernels=made))
    _check(program)
    return program


def _check(program: CudaProgram) -> None:
    if has_flow(program.body):
        raise wrong("a program for a GPU branches or loops")
    check_steps(program, program.arena_bytes + program.workspace_bytes)
    for step in (*program.body, *program.prepare):
        if isinstance(step, Launch) and not _fits(program, step):
            raise wrong(f"a launch of '{step.function}' does not fit the kernels")


def _fits(program: CudaProgram, step: Launch) -> bool:
    """Whether the slices of a launch are what its kernel takes, each as large as it has to be."""
    try:
        part = program.part(step.function)
    except KeyError:
        return False
    sizes = [parameter.bytes for parameter in part.parameters]
    sizes += [temporary.bytes for temporary in part.temporaries]
    return sizes == [item.bytes for item in step.arguments]
