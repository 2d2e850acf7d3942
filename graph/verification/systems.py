"""Other systems that say what a model computes: onnxruntime, and ONNX's reference evaluator.

onnxruntime runs without its graph optimisations, so that a value is what its node computes. It is
no dependency: it is imported when it loads its first model.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Protocol

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from ...runtime.arrays import Array
from ...tir.errors import TilewrightError, known_names

_ERRORS_ONLY = 3  # the log level of onnxruntime

ModelRun = Callable[[Mapping[str, Array]], dict[str, Array]]


class UnknownSystem(TilewrightError, ValueError):
    """No system of this name is known."""


class SystemMissing(TilewrightError, ImportError):
    """A system to compare with is not installed."""


class SystemFailed(TilewrightError, RuntimeError):
    """A system to compare with cannot run a model."""


class OtherSystem(Protocol):
    """A system that runs ONNX models. title: its name with its version."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    def load(self, model: str | ModelProto) -> ModelRun:
        """What computes all outputs of a model, by name. Raises: SystemFailed, in runs too."""


@dataclass(frozen=True, slots=True)
class OnnxRuntimeSystem:
    """onnxruntime on one CPU, node by node."""

    name: str = "onnxruntime"

    @property
    def title(self) -> str:
        return f"onnxruntime {version('onnxruntime')}"

    def load(self, model: str | ModelProto) -> ModelRun:
        import onnxruntime  # an optional dependency

        options = onnxruntime.SessionOptions()
        options.log_severity_level = _ERRORS_ONLY
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        with telling(self.title):
            source = model if isinstance(model, str) else model.SerializeToString()
            session = onnxruntime.InferenceSession(source, options, ["CPUExecutionProvider"])
        names = [item.name for item in session.get_outputs()]
        taken = {item.name for item in session.get_inputs()}
        return _running(self.title, names, taken, lambda given: session.run(names, given))


@dataclass(frozen=True, slots=True)
class ReferenceSystem:
    """The reference evaluator of the onnx package: each operator in NumPy."""

    name: str = "reference"

    @property
    def title(self) -> str:
        return f"the reference of onnx {version('onnx')}"

    def load(self, model: str | ModelProto) -> ModelRun:
        with telling(self.title):
            evaluator = ReferenceEvaluator(model)
        names, taken = list(evaluator.output_names), set(evaluator.input_names)
        return _running(self.title, names, taken, lambda given: evaluator.run(None, given))


SYSTEMS: dict[str, OtherSystem] = {
    system.name: system for system in (OnnxRuntimeSystem(), ReferenceSystem())
}


def system_named(name: str) -> OtherSystem:
    """The system of a name. Raises: UnknownSystem, SystemMissing."""
    if name not in SYSTEMS:
        raise UnknownSystem(
            f"verify: there is no system '{name}'; known are {known_names(name, SYSTEMS)}.",
            code="verify-system",
        )
    if name == "onnxruntime" and not has_onnxruntime():
        raise SystemMissing(
            "verify: 'onnxruntime' is not installed.",
            code="verify-system-missing",
            hints=(
                "python -m pip install onnxruntime",
                "'reference', the evaluator of the onnx package, is always there.",
            ),
        )
    return SYSTEMS[name]


def has_onnxruntime() -> bool:
    """Whether onnxruntime is installed."""
    return find_spec("onnxruntime") is not None


def _running(
    title: str,
    names: list[str],
    taken: Container[str],
    call: Callable[[dict[str, Array]], Iterable[object]],
) -> ModelRun:
    """What runs a model that is loaded. taken: its inputs; call: gives its outputs, in order."""

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        given = {name: array for name, array in inputs.items() if name in taken}
        with telling(title), np.errstate(all="ignore"):
            found = call(given)
        return _arrays(title, names, found)

    return run


@contextmanager
def telling(title: str) -> Iterator[None]:
    """Raise SystemFailed for whatever another system raises."""
    try:
        yield
    except Exception as error:  # of any class
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SystemFailed(
            f"verify: {title} cannot run this model: {reason[:300]}.", code="verify-system-fails"
        ) from error


def _arrays(title: str, names: list[str], found: Iterable[object]) -> dict[str, Array]:
    """The outputs of a run by name. Raises: SystemFailed for one that is no tensor."""
    arrays: dict[str, Array] = {}
    for name, value in zip(names, found, strict=True):
        if not isinstance(value, np.ndarray | np.generic):
            raise SystemFailed(
                f"verify: output '{name}' of {title} is a {type(value).__name__}; expected a "
                "tensor.",
                code="verify-system-output",
            )
        arrays[name] = np.asarray(value)
    return arrays
