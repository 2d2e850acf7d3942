"""What a run of a model does on a device, as text: each step with its stream and what it waits for,
its launches, and where their arrays lie.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...tir.program.program import Copy, Launch, Slice
from .artifact import KernelLaunch
from .program_artifact import CudaProgram
from .streams import place_on_streams


def plan_text(program: CudaProgram) -> str:
    """The text, a line for each step, below it one for each launch of a kernel."""
    return "\n".join(_lines(program))


def _lines(program: CudaProgram) -> Iterator[str]:
    placed = place_on_streams(program)
    total = program.arena_bytes + program.workspace_bytes
    streams = len({step.stream for step in placed})
    count = f"{streams} stream{'' if streams == 1 else 's'}"
    yield f"{program.name} for {program.target}: one arena of {total} bytes, {count}"
    for launch in program.prepare:
        yield f"prepare {launch.function}"
        yield from _launches(program, launch)
    for number, item in enumerate(placed):
        after = f", after {', '.join(map(str, item.waits))}" if item.waits else ""
        where = f"{number}: stream {item.stream}{after}"
        match item.step:
            case Copy():
                yield f"{where}  copy {item.step.source} -> {item.step.target}"
            case Launch():
                label = f"  # {item.step.label}" if item.step.label else ""
                yield f"{where}  {item.step.function}{label}"
                yield from _launches(program, item.step)


def _launches(program: CudaProgram, step: Launch) -> Iterator[str]:
    places = program.places(step)
    for launch in program.part(step.function).launches:
        yield f"    {_launch_text(launch, places)}"


def _launch_text(launch: KernelLaunch, places: dict[str, Slice]) -> str:
    shared = f", {launch.shared_bytes}" if launch.shared_bytes else ""
    given = "; ".join(f"{name} = {places[name]}" for name in launch.arguments)
    return f"{launch.kernel}<<<{launch.grid}, {launch.block}{shared}>>>({given})"
