"""The code of a CUDA kernel as the emulation on the CPU runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ....codegen.cuda.artifact import CudaArtifact, Part
from ....tir.errors import TilewrightError
from ...arrays import Array
from ...kernel_code import Code
from ..toolchain.compile import ptx_of
from .emulator import Given, emulate
from .report import EmulationReport


class EmulationFailed(TilewrightError, RuntimeError):
    """An emulated kernel did what none may do."""


class EmulatedCode(Code):
    """Runs an artifact's launches on the CPU; what `prepare` makes of the constants is made once.

    report: what was seen in the last run; where checked, what each line asked of memory.
    Raises: as `emulate`; EmulationFailed.
    """

    device = "GPU"  # whose source it is

    def __init__(
        self, artifact: CudaArtifact, constants: Mapping[str, Array], *, checked: bool = False
    ) -> None:
        self.artifact = artifact
        self.checked = checked
        self.report = EmulationReport(())
        self.fixed: dict[str, Array] = dict(constants)
        for parameter in artifact.parameters:
            if parameter.role == "prepared":
                self.fixed[parameter.name] = np.zeros(
                    parameter.largest_shape, parameter.dtype.numpy
                )
        if artifact.prepare is not None:
            self._launch(artifact.prepare, self.fixed, "prepared", {})

    def run(self, arrays: Sequence[Array], threads: int) -> None:
        """Run on the arrays of inputs and outputs, in parameter order."""
        free = self.artifact.free_parameters
        named = {p.name: array for p, array in zip(free, arrays, strict=True)}
        sizes = self.artifact.sizes_of([array.shape for array in arrays])
        self._launch(self.artifact.run, {**self.fixed, **named}, "output", sizes)

    def assembly(self) -> str:
        """Of the CUDA C, as for a device: its PTX."""
        artifact = self.artifact
        return ptx_of(artifact.source, artifact.target.isa, name=artifact.name)

    def _launch(
        self, part: Part, arrays: Mapping[str, Array], result: str, sizes: Mapping[str, int]
    ) -> None:
        """Run a part, which makes its parameters of role `result`, at the sizes of a call."""
        made = {t.name: np.empty(t.shape, t.dtype.numpy) for t in part.temporaries}
        known: Given = {**arrays, **made, **sizes}
        launches = part.launches_at(sizes)
        used = {name: known[name] for launch in launches for name in launch.arguments}
        results = {p.name for p in part.parameters if p.role == result}
        fresh = used.keys() & (results | made.keys())
        self.report = emulate(
            self.artifact.source, launches, used, checked=self.checked, fresh=fresh
        )
        if not self.report:
            raise EmulationFailed(
                f"emulate: '{self.artifact.name}' does what no kernel may do.",
                code="emulate-failed",
                where=str(self.report),
            )
