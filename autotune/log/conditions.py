"""The conditions of measurements on this machine."""

from __future__ import annotations

from ...runtime.machine.host import host
from ...runtime.toolchain.compilers import compile_flags, find_compiler
from ...runtime.version import tool_version
from ...tir.target import Target
from .gpu_here import gpu_conditions
from .record import Conditions


def conditions(target: Target) -> Conditions:
    """The conditions under which this machine measures for a target."""
    if target.gpu is not None:
        return gpu_conditions(target)
    compiler = find_compiler()
    return Conditions(
        target.to_json(),
        host().model,
        compiler.version,
        (*compile_flags(target), *compiler.flags),
        tool_version(),
    )
