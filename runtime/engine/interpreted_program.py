"""A model run by the interpreter, element by element: target "python", which needs no compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...codegen.program_artifact import HasInterface
from ...tir.dim import Dim
from ..arrays import Array
from ..index_checks import check_indices
from ..model.interface import Interface
from ..model.model import Model


class InterpretedProgram:
    """A model whose functions are interpreted as they are defined, without schedules."""

    def __init__(self, artifact: HasInterface, model: Model) -> None:
        """artifact: what is taken and given."""
        self.model = model
        self.checks = model.program.checks
        self.interface = Interface(artifact)

    def frame(self, threads: int) -> InterpretedFrame:
        """Memory for runs; the interpreter makes its own, and uses one thread."""
        return InterpretedFrame(self.model, self.interface)


class InterpretedFrame:
    """The arrays of one run at a time."""

    def __init__(self, model: Model, interface: Interface) -> None:
        self._model = model
        self._interface = interface
        self._inputs: Sequence[Array] = ()
        self._outputs: Sequence[Array] = ()
        self.sizes: Mapping[Dim, int] = {}

    def point(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Let the next runs use these arrays."""
        self._inputs, self._outputs = inputs, outputs

    def run(self, threads: int) -> int:
        """Run on one thread.

        Raises: IndexRangeError after a run in which an index lay outside of its range.
        """
        # here, because an engine of compiled code needs no interpreter
        from ...tir.program.evaluate import interpret_with_checks

        program = self._model.program
        inputs = {t.name: a for t, a in zip(program.inputs, self._inputs, strict=True)}
        found, words, sizes = interpret_with_checks(program, inputs, self._model.constants)
        interface, by_name = self._interface, {dim.name: size for dim, size in sizes.items()}
        self.sizes = {dim: by_name[dim.name] for dim in (*interface.dims, *interface.computed)}
        for tensor, array in zip(program.outputs, self._outputs, strict=True):
            array.reshape(-1)[: found[tensor.name].size] = found[tensor.name].reshape(-1)
        for item, word in zip(program.checks, words, strict=True):
            check_indices(program.name, [(item.check, word)], item.label)
        return 1
