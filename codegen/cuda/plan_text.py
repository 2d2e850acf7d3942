"""What a run of a model does on a device, as text: each step with its stream and what it waits for,
its launches, and where their arrays lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...tir.program.program import Copy, Launch, Slice
from ...tir.sizes import AnySize
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
    given = program.places(step) | program.sizes(step)
    for launch in program.part(step.function).launches:
        yield f"    {_launch_text(launch, given)}"


def _launch_text(launch: KernelLaunch, places: Mapping[str, Slice | AnySize]) -> str:
    shared = f", {launch.shared_bytes}" if launch.shared_bytes else ""
    given = "; ".join(f"{name} = {places[name]}" for name in launch.arguments)
    stopped = {stop.axis for stop in launch.stops}  # the grid ends earlier at smaller sizes
    grid = ", ".join(f"{'up to ' * (n in stopped)}{size}" for n, size in enumerate(launch.grid))
    return f"{launch.kernel}<<<({grid}), {launch.block}{shared}>>>({given})"
