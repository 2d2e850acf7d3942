"""The systems we compare with, each wrapped as a call without arguments; what is not installed is
left out.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Call = Callable[[], object]


def available() -> tuple[str, ...]:
    """The peers that are installed."""
    return tuple(name for name in ("onnxruntime", "openvino") if importlib.util.find_spec(name))


def version(name: str) -> str:
    """The version of an installed peer."""
    return str(importlib.import_module(name).__version__)


def onnxruntime_call(model: bytes, inputs: Mapping[str, np.ndarray], threads: int) -> Call:
    """A call that runs the model in ONNX Runtime on its CPU provider, on arrays bound
    beforehand.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda: session.run(names, dict(inputs))


def openvino_call(model: bytes, inputs: Mapping[str, np.ndarray], threads: int) -> Call:
    """A call that runs the model in OpenVINO, held to fp32, on tensors set beforehand."""
    import openvino

    core = openvino.Core()
    settings: dict[str, Any] = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = core.compile_model(core.read_model(model), "CPU", settings)
    request = compiled.create_infer_request()
    for name, value in inputs.items():
        request.set_tensor(name, openvino.Tensor(value, shared_memory=True))
    return request.infer


CALLS = {"onnxruntime": onnxruntime_call, "openvino": openvino_call}
