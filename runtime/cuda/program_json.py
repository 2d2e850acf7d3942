"""A model's CUDA C as JSON and back; what writing cannot have made is refused."""

from __future__ import annotations

from ...codegen.cuda.artifact import CudaArtifact
from ...codegen.cuda.program_artifact import CudaProgram
from ...tir.parsing.json_reader import Json, Reader
from ...tir.program.json import launch_from_json, step_from_json, step_to_json
from ...tir.program.program import Launch as Step
from ...tir.target import Target
from ..artifact_json import (
    SYMBOL,
    check_steps,
    parameter_from_json,
    parameter_to_json,
    target_from_json,
    wrong,
)
from .artifact_json import part_from_json, part_to_json


def program_to_json(program: CudaProgram) -> dict[str, Json]:
    """A program without its sources."""
    return {
        "name": program.name,
        "target": dict(program.target.to_json()),
        "inputs": [parameter_to_json(p) for p in program.inputs],
        "constants": [parameter_to_json(p) for p in program.constants],
        "read": list(program.read),
        "outputs": [parameter_to_json(p) for p in program.outputs],
        "kernels": [_kernel_to_json(kernel) for kernel in program.kernels],
        "body": [step_to_json(step) for step in program.body],
        "prepare": [step_to_json(launch) for launch in program.prepare],
        "arena_bytes": program.arena_bytes,
        "workspace_bytes": program.workspace_bytes,
    }


def program_from_json(data: Reader, sources: tuple[str, ...]) -> CudaProgram:
    """The program that `program_to_json` wrote. sources: of its kernels. Raises: IRError."""
    target = target_from_json(data["target"])
    kernels = list(data["kernels"].items())
    if len(kernels) != len(sources):
        raise wrong(f"{len(kernels)} kernels have {len(sources)} sources")
    program = CudaProgram(
        name=data["name"].text(),
        target=target,
        inputs=tuple(parameter_from_json(item) for item in data["inputs"].items()),
        constants=tuple(parameter_from_json(item) for item in data["constants"].items()),
        read=tuple(item.integer() for item in data["read"].items()),
        outputs=tuple(parameter_from_json(item) for item in data["outputs"].items()),
        kernels=tuple(
            _kernel(item, source, target) for item, source in zip(kernels, sources, strict=True)
        ),
        body=tuple(step_from_json(item) for item in data["body"].items()),
        prepare=tuple(launch_from_json(item) for item in data["prepare"].items()),
        arena_bytes=data["arena_bytes"].integer(),
        workspace_bytes=data["workspace_bytes"].integer(),
    )
    _check(program)
    return program


def _kernel_to_json(kernel: CudaArtifact) -> Json:
    prepare = None if kernel.prepare is None else part_to_json(kernel.prepare)
    return {"name": kernel.name, "run": part_to_json(kernel.run), "prepare": prepare}


def _kernel(data: Reader, source: str, target: Target) -> CudaArtifact:
    prepare = data["prepare"]
    return CudaArtifact(
        data["name"].text(SYMBOL),
        source,
        target,
        part_from_json(data["run"]),
        None if prepare.value is None else part_from_json(prepare),
    )


def _check(program: CudaProgram) -> None:
    counts = {
        "input": len(program.inputs),
        "constant": len(program.constants),
        "output": len(program.outputs),
        "arena": program.arena_bytes + program.workspace_bytes,
    }
    check_steps((*program.body, *program.prepare), counts)
    for step in (*program.body, *program.prepare):
        if isinstance(step, Step) and not _fits(program, step):
            raise wrong(f"a launch of '{step.function}' does not fit the kernels")


def _fits(program: CudaProgram, step: Step) -> bool:
    """Whether the slices of a launch are what its kernel takes, each as large as it has to be."""
    try:
        part = program.part(step.function)
    except KeyError:
        return False
    sizes = [parameter.bytes for parameter in part.parameters]
    sizes += [temporary.bytes for temporary in part.temporaries]
    return sizes == [item.bytes for item in step.arguments]
