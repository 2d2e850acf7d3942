"""A model's CUDA C as the emulation on the CPU runs it: every launch its own source, the arena an
array of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ....codegen.cuda.program_artifact import PREPARE, CudaProgram
from ....tir.program.flow import Iterations
from ....tir.program.program import Copy, Launch, Slice
from ....tir.sizes import closed, closed_shape
from ...arrays import Array
from ...index_checks import check_indices
from ...model.interface import Interface, told
from .emulated_code import EmulationFailed
from .emulator import Given, emulate
from .report import EmulationReport

_POISON = 0xFF  # every byte of what nobody wrote: NaN in every float type


class EmulatedProgram:
    """A model on the CPU. What depends on constants alone is computed at the first run.

    report: what was seen in the last run; where checked, what each line asked of memory.
    """

    def __init__(
        self, artifact: CudaProgram, constants: Sequence[Array | None], *, checked: bool = False
    ) -> None:
        """constants: by position; None for those that nobody reads or that are computed here."""
        self.artifact = artifact
        self.checked = checked
        self.checks = artifact.checks
        self.interface = Interface(artifact)
        self.report = EmulationReport(())
        self._constants = dict(enumerate(constants))
        self._prepared: Mapping[int, Array] | None = None

    def frame(self, threads: int) -> EmulatedFrame:
        """Memory for runs; one thread of the CPU runs all threads of a device.

        Raises: EmulationFailed, as a run does.
        """
        return EmulatedFrame(self)

    @property
    def prepared(self) -> Mapping[int, Array]:
        """The constants that are computed, by position."""
        if self._prepared is None:
            made = {
                position: _poisoned(p.bytes).view(p.dtype.numpy).reshape(p.largest_shape)
                for position, p in enumerate(self.artifact.constants)
                if p.role == "prepared"
            }
            memory = _Memory(self.artifact, {**self._constants, **made})
            memory.run(self.artifact.prepare, self.checked)
            self._prepared = made
        return self._prepared

    def memory(self) -> _Memory:
        """The memory of one run at a time."""
        return _Memory(self.artifact, {**self._constants, **self.prepared})


class EmulatedFrame:
    """The memory of one run at a time."""

    def __init__(self, program: EmulatedProgram) -> None:
        self._program = program
        self._memory = program.memory()
        self._told = told(program.artifact.inputs)
        self._steps = program.artifact.steps

    def point(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Let the next runs use these arrays."""
        self._memory.inputs, self._memory.outputs = inputs, outputs
        sizes = {dim: inputs[number].shape[axis] for dim, (number, axis) in self._told.items()}
        self._steps = self._program.artifact.at(sizes).steps

    def steps(self) -> list[tuple[Launch | Copy, Callable[[Iterations], object]]]:
        """Each step but the Syncs as a call of its own, on the arrays pointed to and at their
        sizes; there are no loops around them.

        Raises: EmulationFailed, as a call does.
        """
        return [(step, partial(self._alone, step)) for step in self._steps]

    def _alone(self, step: Launch | Copy, iterations: Iterations) -> None:
        self._memory.run((step,), self._program.checked)

    def view(self, item: Slice) -> Array:
        """The array of a slice, as it is now."""
        return self._memory.array(item)

    def run(self, threads: int) -> int:
        """Run on one thread.

        Raises: EmulationFailed; IndexRangeError after a run in which an index lay outside of its
        range.
        """
        program = self._program
        program.report = self._memory.run(self._steps, program.checked)
        for item in program.checks:
            word = int(self._memory.array(item.word).item())
            check_indices(program.artifact.name, [(item.check, word)], item.label)
        return 1


class _Memory:
    """Arrays of the host in place of a device's memory."""

    def __init__(self, artifact: CudaProgram, constants: Mapping[int, Array | None]) -> None:
        self.inputs: Sequence[Array] = ()
        self.outputs: Sequence[Array] = ()
        self._artifact = artifact
        self._constants = constants
        self._arena = _poisoned(artifact.arena_bytes + artifact.workspace_bytes)

    def array(self, item: Slice) -> Array:
        """The array of a slice."""
        match item.space:
            case "arena":
                data = self._arena[item.position : item.position + item.bytes]
                return data.view(item.dtype.numpy).reshape(closed_shape(item.shape))
            case "input":
                found: Array | None = self.inputs[item.position]
            case "constant":
                found = self._constants[item.position]
            case _:
                found = self.outputs[item.position]
        assert found is not None, item
        return found.reshape(closed_shape(item.shape))

    def run(self, steps: Sequence[Launch | Copy], checked: bool) -> EmulationReport:
        """Run steps one after the other; what was seen. Raises: EmulationFailed."""
        reports = []
        for step in steps:
            match step:
                case Launch():
                    reports.append(self._launch(step, checked))
                case Copy():
                    self.array(step.target)[...] = self.array(step.source)
        return EmulationReport.of_launches(reports)

    def _launch(self, step: Launch, checked: bool) -> EmulationReport:
        artifact = self._artifact
        part, sizes = artifact.part(step.function), artifact.sizes(step)
        kernel = artifact.kernel(step.function.removesuffix(PREPARE))
        places = artifact.places(step)
        first: dict[Slice, str] = {}  # two names of one slice, which is only read, are one array
        names = {name: first.setdefault(item, name) for name, item in places.items()}
        launches = [
            replace(launch, arguments=tuple(names.get(name, name) for name in launch.arguments))
            for launch in artifact.launches_at(step)
        ]
        used = {name for launch in launches for name in launch.arguments} - sizes.keys()
        arrays = {name: self.array(item) for item, name in first.items() if name in used}
        written = used.intersection(part.written)
        for name in used - written:
            arrays[name] = arrays[name].view()
            arrays[name].flags.writeable = False
        given: Given = {**arrays, **{name: closed(size) for name, size in sizes.items()}}
        report = emulate(kernel.source, launches, given, checked=checked, fresh=written)
        if not report:
            raise EmulationFailed(
                f"emulate: '{step.function}' of '{artifact.name}' does what no kernel may do.",
                code="emulate-program",
                where=str(report),
                notes=(f"it computes {step.label}.",) if step.label else (),
            )
        return report


def _poisoned(size: int) -> Array:
    return np.full(size, _POISON, np.uint8)
