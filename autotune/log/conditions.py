"""The conditions of measurements on this machine."""

from __future__ import annotations

from ...driver.backends.table import backend_of
from ...driver.tuning.tuner import Toolchain
from ...runtime.version import tool_version
from ...tir.target.target import Target
from .record import Conditions


def conditions(target: Target) -> Conditions:
    """What is measured on this machine for a target; nothing of it has a name where nothing times
    its candidates.
    """
    tuner = backend_of(target).tuner
    here = Toolchain("", "") if tuner is None else tuner.toolchain(target)
    return Conditions(
        target.to_json(), here.machine, here.compiler, here.flags, tool_version(), here.driver
    )
