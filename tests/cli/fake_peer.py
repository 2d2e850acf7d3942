"""A peer for tests: the reference in NumPy, as far off as it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.cli.compare.peers import PeerSession
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.runtime.arrays import Array


@dataclass
class FakePeer:
    """Its outputs are the reference's plus `error`, behind `axes` axes more; `loads` keeps the
    thread counts and the inputs, `runs` counts the calls. refusal: it raises that.
    """

    name: str = "fake"
    requirement: str = "fake-peer"
    here: bool = True
    error: float = 0.0
    axes: int = 0
    refusal: Exception | None = None
    loads: list[tuple[int, Mapping[str, Array]]] = field(default_factory=list)
    runs: int = 0

    def is_installed(self) -> bool:
        return self.here

    def version(self) -> str:
        return "9.9"

    def settings(self, threads: int) -> Mapping[str, str]:
        return {"workers": str(threads)}

    def load(
        self,
        model: str | bytes,
        inputs: Mapping[str, Array],
        outputs: Sequence[str],
        threads: int,
    ) -> PeerSession:
        self.loads.append((threads, inputs))
        if self.refusal is not None:
            raise self.refusal
        found = evaluate(import_onnx(model), inputs)
        return PeerSession(self._run, lambda: {name: self._off(found[name]) for name in outputs})

    def _run(self) -> None:
        self.runs += 1

    def _off(self, array: Array) -> Array:
        off = array + self.error
        return off.astype(np.float32).reshape((1,) * self.axes + array.shape)
