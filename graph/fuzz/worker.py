"""A process that examines random models: one line of JSON in, one out; `python -m
tilewright.graph.fuzz.worker`.

Compiled code that is wrong may crash or hang; then only this process is lost. A request is
{"seed": ..., "target": ...}; the answer is a list of one entry. Where onnxruntime is installed, its
values are compared, too: with the bounds of `tw.verify_model`.
"""

from __future__ import annotations

import json
import sys
from random import Random
from typing import Any

import numpy as np
from onnx import ModelProto

from ...runtime.engine.engine import Engine
from ...tir.errors import TilewrightError
from ..compile import compile
from ..importers.onnx.importer import import_onnx
from ..reference.reference import evaluate
from ..types import Array
from ..verification.differences import ValueBound
from ..verification.setting import compared_outputs
from ..verification.systems import SYSTEMS, ModelRun, SystemFailed, has_onnxruntime
from .random_model import RandomModel, random_model

SYSTEM = "onnxruntime"
CHOICES = 3  # of sizes and data, for each model
_RTOL, _ATOL = 1e-3, 1e-4  # values are bounded by one, and sums are short

Entry = dict[str, object]


def main() -> None:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        request = json.loads(line)
        target = request["target"]
        print(json.dumps([answer(int(request["seed"]), target)]), flush=True)


def answer(seed: int, target: str | None) -> Entry:
    """What became of a model: how many kernels it has, or what is wrong. All that is drawn is
    supported, so that a refusal is a failure.
    """
    model = random_model(seed)
    entry: Entry = {"kind": model.kind, "kernels": 0, "failure": "", "beside": ""}
    try:
        return entry | examine(model, target)
    except TilewrightError as error:
        return entry | {"failure": str(error)}
    except Exception as error:  # whatever it is, it is what is looked for
        return entry | {"failure": f"{type(error).__name__}: {error}"}


def examine(model: RandomModel, target: str | None) -> Entry:
    """Compile a model, and compare its engine with the reference at random sizes."""
    ranges = dict(model.ranges) or None
    graph = import_onnx(model.proto, shapes=ranges)
    engine = compile(model.proto, target, shapes=ranges, cache=False, verify="kernels")
    unproved = [k.name for k in engine.explain().kernels if not k.proof.startswith("proved")]
    if unproved:
        return {"failure": f"not proved: {', '.join(unproved)}"}
    beside = _Beside(model.proto)
    rng = Random(model.seed)
    for choice in range(CHOICES):
        sizes = model.sizes(rng)
        given = model.inputs(sizes, model.seed + choice)
        expected, found = evaluate(graph, given), engine.run(given, threads=1)
        for name, array in expected.items():
            shape, wanted = found[name].shape, np.asarray(array, np.float64)
            values = np.asarray(found[name], np.float64)
            if shape != array.shape:
                return {"failure": f"'{name}' at {sizes}: shape {shape}, expected {array.shape}"}
            if not np.allclose(values, wanted, rtol=_RTOL, atol=_ATOL):
                worst = float(np.abs(values - wanted).max(initial=0.0))
                return {"failure": f"'{name}' at {sizes} is off by {worst:.2g}"}
        again = engine.run(given, threads=3)
        other = [name for name in found if found[name].tobytes() != again[name].tobytes()]
        if other:
            return {"failure": f"{other} at {sizes}: other bits on 3 threads than on 1"}
        off = beside.difference(engine, given, str(sizes))
        if off:
            return {"failure": off}
    return {"kernels": len(engine.explain().kernels), "beside": beside.outcome}


class _Beside:
    """The same model in onnxruntime. outcome: "compared", or "not run: " and why; empty where it is
    not installed.
    """

    def __init__(self, proto: ModelProto) -> None:
        self.proto = proto
        self.outcome = "compared" if has_onnxruntime() else ""
        self.run: ModelRun | None = None

    def difference(self, engine: Engine[Any], given: dict[str, Array], sizes: str) -> str:
        """How an output differs; empty where none does, or nothing is compared."""
        if self.outcome != "compared":
            return ""
        try:
            self.run = self.run or SYSTEMS[SYSTEM].load(self.proto)
            found = list(compared_outputs(engine, self.run, given, ValueBound(), f"at {sizes}"))
        except SystemFailed as error:
            self.outcome = f"not run: {error.message}"
            return ""
        off = next((one for one in found if not one.is_equal), None)
        return f"onnxruntime differs: {off}" if off is not None else ""


if __name__ == "__main__":
    main()
