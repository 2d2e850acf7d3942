"""Kernels go to the C compiler while the next ones are still being lowered.

Which of them share a translation unit depends on their order and length alone.
"""

from __future__ import annotations

import time

from ..codegen.c.program import KernelTexts
from ..codegen.c.program_source import declarations, unit_source
from ..codegen.program_artifact import ProgramArtifact
from ..runtime.compile import Units
from ..runtime.library import SharedObject
from ..tir.target import Target
from .lower_program import LoweredKernel

# Characters of a translation unit: gcc takes half a second for as many, and 50 ms for the first.
UNIT = 1 << 16


class CompileAhead:
    """The kernels of one program, written and compiled as they come."""

    def __init__(self, name: str, target: Target, units: Units) -> None:
        """For the program called `name`."""
        self.texts = KernelTexts(name, target)
        self.seconds: list[tuple[str, float]] = []  # of lowering and writing, by their parts
        self._name = name
        self._target = target
        self._units = units
        self._waiting: list[str] = []
        self._features: set[str] = set()

    def add(self, kernel: LoweredKernel) -> None:
        """Write a kernel, its schedule in a comment, and compile it when a unit is full."""
        began = time.perf_counter()
        self.seconds += kernel.lowered.seconds
        for func in kernel.functions:
            trace = kernel.lowered.schedule.steps if func is kernel.run else ()
            made = self.texts.add(func, "\n".join(trace))
            self._waiting.append(made.text)
            self._features.update(made.target.features)
        if sum(map(len, self._waiting)) >= UNIT:
            self._compile()
        self.seconds.append(("write", time.perf_counter() - began))

    def finish(self, artifact: ProgramArtifact) -> SharedObject:
        """The object of all kernels and the program's entry. Raises: CompileFailed."""
        self._waiting += (declarations(artifact), artifact.main)
        self._compile()
        return self._units.link()

    def _compile(self) -> None:
        target = self._target.using(self._features)
        self._units.add(unit_source(self._name, target, self._waiting), target)
        self._waiting.clear()
        self._features.clear()
