"""tilewright: a tensor compiler in pure Python. Names only: each is imported at its first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .autotune.result import TuneResult as TuneResult
    from .autotune.space.summary import SpaceSummary as SpaceSummary
    from .autotune.space.summary import tuning_space as tuning_space
    from .autotune.tune import tune as tune
    from .autotune.tuning_log import TuningLog as TuningLog
    from .driver.build import build as build
    from .driver.build import prove as prove
    from .driver.check.emulated import emulated as emulated
    from .driver.load import load as load
    from .graph.block_weights import BlockWeights as BlockWeights
    from .graph.compile import compile as compile
    from .graph.extensions.operators import operator as operator
    from .graph.extensions.rules import AtenRule as AtenRule
    from .graph.extensions.rules import OnnxRule as OnnxRule
    from .graph.importers.weights.gguf import read_gguf as read_gguf
    from .graph.importers.weights.safetensors import read_safetensors as read_safetensors
    from .graph.operator_check.check_operator import check_operator as check_operator
    from .graph.operator_check.report import OperatorReport as OperatorReport
    from .graph.ops.base import Operator as Operator
    from .graph.ops.base import OperatorRole as OperatorRole
    from .graph.ops.elementwise import Elementwise as Elementwise
    from .graph.passes.passes import PASSES as PASSES
    from .graph.passes.passes import Passes as Passes
    from .graph.plan.tasks import tasks as tasks
    from .graph.precision.accuracy import Accuracy as Accuracy
    from .graph.precision.blocks.stored_weights import with_weights as with_weights
    from .graph.precision.blocks.weights import QuantizedGraph as QuantizedGraph
    from .graph.precision.blocks.weights import quantize_weights as quantize_weights
    from .graph.precision.calibration.calibrate import calibrate as calibrate
    from .graph.precision.calibration.calibration import Calibration as Calibration
    from .graph.types import TensorType as TensorType
    from .graph.verification.reduce_model import reduce_model as reduce_model
    from .graph.verification.verify_model import ModelReport as ModelReport
    from .graph.verification.verify_model import verify_model as verify_model
    from .runtime.engine.context import Context as Context
    from .runtime.engine.engine import Engine as Engine
    from .runtime.engine.size_log import frequent_sizes as frequent_sizes
    from .runtime.kernel import Kernel as Kernel
    from .runtime.machine.timing import Timing as Timing
    from .runtime.measure.roofline import Roofline as Roofline
    from .runtime.model.coverage import Coverage as Coverage
    from .runtime.model.interface import TensorSpec as TensorSpec
    from .runtime.model.profile import Profile as Profile
    from .runtime.model.report import EngineReport as EngineReport
    from .runtime.model.report import MemoryPlan as MemoryPlan
    from .runtime.model.verification import Report as Report
    from .schedule.errors import ScheduleError as ScheduleError
    from .schedule.schedule import Schedule as Schedule
    from .schedule.trace.references import LoopRef as LoopRef
    from .schedule.trace.trace import Trace as Trace
    from .schedule.verdict import Verdict as Verdict
    from .tir.errors import TilewrightError as TilewrightError
    from .tir.func import PrimFunc as PrimFunc
    from .tir.target.target import Target as Target
    from .tir.te import te as te

__version__ = "0.1.0"

# name -> "module:name" where it lives, or "module:" for a module itself; the same names as above
_HOMES = {
    "Accuracy": "graph.precision.accuracy:Accuracy",
    "AtenRule": "graph.extensions.rules:AtenRule",
    "BlockWeights": "graph.block_weights:BlockWeights",
    "Calibration": "graph.precision.calibration.calibration:Calibration",
    "Context": "runtime.engine.context:Context",
    "Coverage": "runtime.model.coverage:Coverage",
    "Elementwise": "graph.ops.elementwise:Elementwise",
    "Engine": "runtime.engine.engine:Engine",
    "EngineReport": "runtime.model.report:EngineReport",
    "Kernel": "runtime.kernel:Kernel",
    "LoopRef": "schedule.trace.references:LoopRef",
    "MemoryPlan": "runtime.model.report:MemoryPlan",
    "ModelReport": "graph.verification.verify_model:ModelReport",
    "OnnxRule": "graph.extensions.rules:OnnxRule",
    "Operator": "graph.ops.base:Operator",
    "OperatorReport": "graph.operator_check.report:OperatorReport",
    "OperatorRole": "graph.ops.base:OperatorRole",
    "PASSES": "graph.passes.passes:PASSES",
    "Passes": "graph.passes.passes:Passes",
    "PrimFunc": "tir.func:PrimFunc",
    "Profile": "runtime.model.profile:Profile",
    "QuantizedGraph": "graph.precision.blocks.weights:QuantizedGraph",
    "Report": "runtime.model.verification:Report",
    "Roofline": "runtime.measure.roofline:Roofline",
    "Schedule": "schedule.schedule:Schedule",
    "ScheduleError": "schedule.errors:ScheduleError",
    "SpaceSummary": "autotune.space.summary:SpaceSummary",
    "Target": "tir.target.target:Target",
    "TensorSpec": "runtime.model.interface:TensorSpec",
    "TensorType": "graph.types:TensorType",
    "TilewrightError": "tir.errors:TilewrightError",
    "Timing": "runtime.machine.timing:Timing",
    "Trace": "schedule.trace.trace:Trace",
    "TuneResult": "autotune.result:TuneResult",
    "TuningLog": "autotune.tuning_log:TuningLog",
    "Verdict": "schedule.verdict:Verdict",
    "build": "driver.build:build",
    "calibrate": "graph.precision.calibration.calibrate:calibrate",
    "check_operator": "graph.operator_check.check_operator:check_operator",
    "compile": "graph.compile:compile",
    "emulated": "driver.check.emulated:emulated",
    "frequent_sizes": "runtime.engine.size_log:frequent_sizes",
    "load": "driver.load:load",
    "operator": "graph.extensions.operators:operator",
    "prove": "driver.build:prove",
    "quantize_weights": "graph.precision.blocks.weights:quantize_weights",
    "read_gguf": "graph.importers.weights.gguf:read_gguf",
    "read_safetensors": "graph.importers.weights.safetensors:read_safetensors",
    "reduce_model": "graph.verification.reduce_model:reduce_model",
    "tasks": "graph.plan.tasks:tasks",
    "te": "tir.te.te:",
    "tune": "autotune.tune:tune",
    "tuning_space": "autotune.space.summary:tuning_space",
    "verify_model": "graph.verification.verify_model:verify_model",
    "with_weights": "graph.precision.blocks.stored_weights:with_weights",
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
    return sorted(__all__)
