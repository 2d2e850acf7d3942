"""A program of LOWERED functions and their CUDA C as one value: where each launch finds its arrays,
also those that its kernels need between their own launches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...tir.errors import TargetError
from ...tir.program.program import (
    Branch,
    Launch,
    Program,
    Repeat,
    Slice,
    Step,
    Sync,
    sizes_read,
    step_text,
)
from ...tir.program.syncs import verify_program
from ...tir.target.target import Target
from ..program_artifact import constant_parameters, constants_of, parameters_with
from .artifact import CudaArtifact, Temporary
from .program_artifact import CudaProgram, aligned

WIDEST = 16  # bytes, of one load or store


def emit_program(program: Program, kernels: Sequence[CudaArtifact], target: Target) -> CudaProgram:
    """The program with its kernels in place of its functions.

    Requires: functions of stage LOWERED; a kernel for each, by name; Syncs where launches depend.
    Raises: IRError for a program that is not well formed.
    """
    verify_program(program)
    check_flat(program)
    plain = CudaProgram(
        name=program.name,
        target=target,
        inputs=parameters_with("input", program.inputs),
        constants=constant_parameters(program),
        read=constants_of(program.body),
        outputs=parameters_with("output", program.outputs),
        kernels=tuple(kernels),
        body=(),
        arena_bytes=aligned(program.arena_bytes),
    )
    for launch in program.launches:
        _check_aligned(launch)
        _check_apart(plain, launch)
    placer = _Placer(plain)
    body = tuple(placer.placed(program.body))
    prepare = tuple(_launches(placer.placed(program.prepare)))
    return replace(plain, body=body, prepare=prepare, workspace_bytes=placer.most)


def check_flat(program: Program) -> None:
    """Refuse branches, loops and sizes that data decide: a run on a GPU is one graph, which decides
    nothing.
    """
    if read := sizes_read(program.body):
        raise TargetError(
            f"cuda: data decide the size '{read[0].dim.name}' of '{program.name}'; expected sizes "
            "that the inputs tell: on a GPU a run is one graph.",
            code="cuda-data-size",
            hints=("tw.compile(model, 'c') runs it on the CPU.",),
        )
    step = next((step for step in program.body if isinstance(step, Branch | Repeat)), None)
    if step is not None:
        what = "branches" if isinstance(step, Branch) else "loops"
        raise TargetError(
            f"cuda: '{program.name}' {what} at '{step.label or step_text(step)}' as its data say; "
            "expected the same steps in every run: on a GPU it is one graph.",
            code="cuda-flow",
            hints=(
                "tw.compile(model, 'c') runs it on the CPU.",
                "where what decides is known, make it a constant of the model.",
            ),
        )


def _check_aligned(launch: Launch) -> None:
    """Refuse arrays of the arena of which a kernel cannot load 16 bytes at once."""
    for item in launch.arguments:
        if item.space == "arena" and item.bytes > item.dtype.bytes and item.position % WIDEST:
            raise TargetError(
                f"cuda: a launch of '{launch.function}' names {item}; expected a multiple of "
                f"{WIDEST} bytes, since kernels load as many at once.",
                code="cuda-slice-aligned",
            )


def _check_apart(program: CudaProgram, launch: Launch) -> None:
    """Refuse a launch that writes where it reads: its kernels take their arrays as apart."""
    places = dict(zip(program.part(launch.function).names, launch.arguments, strict=False))
    written = set(program.part(launch.function).written) & places.keys()
    for one in written:
        for other in places.keys() - {one}:
            if places[one].overlaps(places[other]):
                raise TargetError(
                    f"cuda: a launch of '{launch.function}' writes '{one}' where '{other}' lies; "
                    "expected arrays that share no memory.",
                    code="cuda-in-place",
                )


def _launches(steps: Iterator[Step]) -> Iterator[Launch]:
    return (step for step in steps if isinstance(step, Launch))


class _Placer:
    """Gives temporaries their places behind the arena; launches that may overlap share none."""

    def __init__(self, program: CudaProgram) -> None:
        self.most = 0
        self._program = program
        self._used = 0

    def placed(self, steps: Sequence[Step]) -> Iterator[Step]:
        """The steps, each launch with the slices of its temporaries."""
        self._used = 0
        for step in steps:
            if isinstance(step, Sync):
                self._used = 0
            if isinstance(step, Launch):
                own = map(self._place, self._program.part(step.function).temporaries)
                yield replace(step, arguments=(*step.arguments, *own))
            else:
                yield step

    def _place(self, temporary: Temporary) -> Slice:
        at = self._program.arena_bytes + self._used
        place = Slice("arena", at, temporary.dtype, temporary.shape)
        self._used += aligned(place.bytes)
        self.most = max(self.most, self._used)
        return place
