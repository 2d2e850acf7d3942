"""Whole models on the GPU that is here: our engine beside torch.compile of the same network at the
same dtype.

Ours is bound to arrays of the device, theirs takes tensors that lie there. Both are timed as one
graph by events of the device; theirs also as it is called, with what Python and PyTorch take to
launch. Errors are beside the network in float64 on the CPU.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.runtime.cuda.device.array import DeviceArray
from tilewright.runtime.cuda.device.availability import Available
from tilewright.tir.errors import TilewrightError

from .. import report

CASES = tuple(
    f"{name} {dtype}" for name in ("resnet50", "bert_base") for dtype in ("float32", "float16")
)
Seconds = Callable[[Callable[[], object]], float]


@dataclass(frozen=True)
class ModelRow:
    """One model: seconds of ours, of theirs in a graph, and of theirs as it is called; the largest
    errors of both, as shares of the largest magnitude. refused: why ours does not run it.
    """

    name: str
    ours: float
    in_graph: float
    called: float
    error: float
    their_error: float
    launches: int = 0
    compile_seconds: float = 0.0
    refused: str = ""


def measure(
    case: str, found: Available, in_graph: Seconds, called: Seconds, seconds: float
) -> ModelRow:
    """One model. in_graph, called: what times a call of PyTorch's."""
    import torch  # optional, as what it needs is

    from ..export import export, network

    name, dtype = case.split()
    made = network(name, half=dtype == "float16")
    exact = network(name)
    with torch.inference_mode():
        wanted = _arrays(exact.network.double()(*_cast(exact.inputs.values(), torch.float64)))
        net = torch.compile(made.network.cuda())
        given = [tensor.cuda() for tensor in made.inputs.values()]
        their_error = _error(_arrays(net(*given)), wanted)
        times = in_graph(lambda: net(*given)), called(lambda: net(*given))
    with tempfile.TemporaryDirectory() as folder:
        file = export(name, Path(folder), half=dtype == "float16")
        try:
            engine = tw.compile(file, f"cuda:{found.devices[0].arch}", cache=False)
        except TilewrightError as error:
            said = str(error).splitlines()[0]
            return ModelRow(case, 0.0, *times, 0.0, their_error, refused=said)
    context = found.context()
    inputs = {
        spec.name: DeviceArray.of(context, made.inputs[spec.name].numpy()) for spec in engine.inputs
    }
    outputs = {o.name: DeviceArray.empty(context, o.shape, o.dtype) for o in engine.outputs}
    bound = engine.context().bind(inputs, outputs)
    bound.run()
    error = _error([outputs[key].numpy() for key in made.outputs], wanted)
    return ModelRow(
        case,
        bound.time(seconds).median,
        *times,
        error,
        their_error,
        launches=len(engine.parts.artifact.launches),
        compile_seconds=sum(taken for _, taken in engine.explain().seconds),
    )


def _cast(tensors: Any, dtype: Any) -> list[Any]:
    """Tensors of floats in another type, the others as they are."""
    return [t.to(dtype) if t.is_floating_point() else t for t in tensors]


def _arrays(result: Any) -> list[np.ndarray]:
    """What a network returned, on the host."""
    tensors = result if isinstance(result, tuple | list) else (result,)
    return [tensor.cpu().numpy() for tensor in tensors]


def _error(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> float:
    return max(
        float(np.abs(one.astype(np.float64) - other).max() / np.abs(other).max())
        for one, other in zip(got, wanted, strict=True)
    )


def table(rows: Sequence[ModelRow]) -> str:
    """The rows as Markdown."""
    head = (
        *("model", "us", "torch.compile in a graph, us", "as called, us", "graph / ours"),
        *("called / ours", "error", "torch's error", "launches", "refused"),
    )
    cells = [
        (
            row.name,
            f"{row.ours * 1e6:.1f}" if row.ours else "",
            f"{row.in_graph * 1e6:.1f}",
            f"{row.called * 1e6:.1f}",
            f"{row.in_graph / row.ours:.2f}" if row.ours else "",
            f"{row.called / row.ours:.2f}" if row.ours else "",
            f"{row.error:.1e}" if row.ours else "",
            f"{row.their_error:.1e}",
            row.launches or "",
            row.refused,
        )
        for row in rows
    ]
    return report.table(head, cells)
