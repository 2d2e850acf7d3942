"""A model's CUDA C as JSON and back; what writing cannot have made is refused."""

from __future__ import annotations

from functools import partial

from ...codegen.cuda.program_artifact import PREPARE, CudaProgram
from ...codegen.program_artifact import slices_of
from ...tir.dim import Dim
from ...tir.json_reader import Json, Reader
from ...tir.program.flow import has_flow
from ...tir.program.program import Copy, Launch, Slice, Sync
from ...tir.sizes import AnySize, at_most, product_of, same, substituted
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
    if not all(isinstance(step, Launch | Copy | Sync) for step in program.body):
        raise wrong("a program for a GPU reads sizes that data decide")
    check_steps(program, program.arena_bytes + program.workspace_bytes)
    for step in (*program.body, *program.prepare):
        if isinstance(step, Launch) and not _fits(program, step):
            raise wrong(f"a launch of '{step.function}' does not fit the kernels")
        for item in slices_of(step):
            _check_whole(program, item)


def _check_whole(program: CudaProgram, item: Slice) -> None:
    """Refuse a slice of an array that a run gives or takes which is not as large, in every run."""
    tensors = {"input": program.inputs, "output": program.outputs, "constant": program.constants}
    if item.space in tensors:
        whole = tensors[item.space][item.position]
        if same(product_of(item.shape), product_of(whole.shape)) is not True:
            raise wrong(f"{item} is not all of '{whole.name}'")


def _fits(program: CudaProgram, step: Launch) -> bool:
    """Whether the slices of a launch are what its kernel takes, each as large as it has to be in
    every run, and its sizes are some that the kernel may have.
    """
    try:
        part = program.part(step.function)
    except KeyError:
        return False
    arrays = [(p.dtype, p.shape) for p in part.parameters]
    arrays += [(t.dtype, t.shape) for t in part.temporaries]
    kernel = program.kernel(step.function.removesuffix(PREPARE))
    dims = [told.dim for told in kernel.sizes][: len(part.sizes)]
    if len(arrays) != len(step.arguments) or len(dims) != len(step.sizes):
        return False
    given = dict(zip(dims, step.sizes, strict=True))
    return all(_within(size, dim) for dim, size in given.items()) and all(
        same(
            dtype.bytes * substituted(product_of(shape), given),
            item.dtype.bytes * product_of(item.shape),
        )
        is True
        for (dtype, shape), item in zip(arrays, step.arguments, strict=True)
    )


def _within(size: AnySize, dim: Dim) -> bool:
    """Whether a dim may be so large, in every run."""
    return at_most(dim.low, size) is True and at_most(size, dim.high) is True
