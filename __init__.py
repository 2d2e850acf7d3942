"""tilewright: a tensor compiler in pure Python. Names only: each is imported at its first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .autotune.result import TuneResult as TuneResult
    from .autotune.space.summary import tuning_space as tuning_space
    from .autotune.tune import tune as tune
    from .autotune.tuning_log import TuningLog as TuningLog
    from .driver.build import build as build
    from .driver.build import prove as prove
    from .driver.check.emulated import emulated as emulated
    from .driver.load import load as load
    from .graph.compile import compile as compile
    from .graph.plan.tasks import tasks as tasks
    from .runtime.engine.engine import Engine as Engine
    from .schedule.errors import ScheduleError as ScheduleError
    from .schedule.schedule import Schedule as Schedule
    from .schedule.trace.trace import Trace as Trace
    from .tir.errors import TilewrightError as TilewrightError
    from .tir.func import PrimFunc as PrimFunc
    from .tir.target.target import Target as Target
    from .tir.te import te as te

__version__ = "0.1.0"

# name -> "module:name" where it lives, or "module:" for a module itself; the same names as above
_HOMES = {
    "Engine": "runtime.engine.engine:Engine",
    "PrimFunc": "tir.func:PrimFunc",
    "ScheduleError": "schedule.errors:ScheduleError",
    "Schedule": "schedule.schedule:Schedule",
    "Target": "tir.target:Target",
    "TilewrightError": "tir.errors:TilewrightError",
    "Trace": "schedule.trace.trace:Trace",
    "TuneResult": "autotune.result:TuneResult",
    "TuningLog": "autotune.tuning_log:TuningLog",
    "build": "driver.build:build",
    "emulated": "driver.check.emulated:emulated",
    "compile": "graph.compile:compile",
    "load": "driver.load:load",
    "prove": "driver.build:prove",
    "tasks": "graph.plan.tasks:tasks",
    "te": "tir.te.te:",
    "tune": "autotune.tune:tune",
    "tuning_space": "autotune.space.summary:tuning_space",
}
__all__ = ["__version__", *_HOMES]


if not TYPE_CHECKING:  # a checker knows the names above, and that there are no others

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        module_name, _, attribute = _HOMES[name].partition(":")
        module = import_module(f"{__name__}.{module_name}")
        globals()[name] = value = getattr(module, attribute) if attribute else module
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
