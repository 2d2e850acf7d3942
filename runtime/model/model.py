"""A Model: a program before schedules with its constants; what an engine is built from, and what it
is verified against.

A StoredModel is the same as it stands in a file: the program as text, read only when it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...tir.program.json import parse_program, program_text
from ...tir.program.program import Program
from ..arrays import Array

_MOST_STEPS = 1 << 12  # of a model whose loops data end: a second or two


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A program of functions of stage TENSOR, and an array for each of its constants, by name."""

    program: Program
    constants: Mapping[str, Array]

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, with every float in float64.

        Raises: IRError for arrays that do not fit.
        """
        return self._evaluated(inputs, "float64")

    def program_for(self, inputs: Mapping[str, Array]) -> Program:
        """The program at the sizes that the inputs tell."""
        from ...tir.program.at_sizes import program_at, values_told  # as below

        shapes = [inputs[tensor.name].shape for tensor in self.program.inputs]
        return program_at(self.program, values_told(self.program.inputs, shapes))

    def in_own_types(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, each tensor of the program rounded to its own type.

        Raises: IRError for arrays that do not fit.
        """
        return self._evaluated(inputs, None)

    def _evaluated(self, inputs: Mapping[str, Array], dtype: str | None) -> dict[str, Array]:
        # here, because an engine that is loaded to run needs no evaluator
        from ...tir.program.evaluate import evaluate_program

        return evaluate_program(self.program, inputs, self.constants, dtype)

    def why_not_run(self, inputs: Mapping[str, Array]) -> str | None:
        """Why no engine is run on these inputs: a loop does not end on them, or so late that nobody
        waits for it. None: it may be.
        """
        from ...tir.program.evaluate import TooManySteps, evaluate_program  # as above
        from ...tir.program.flow import is_open

        if not is_open(self.program.body):
            return None
        try:
            for dtype in ("float64", None):
                evaluate_program(self.program, inputs, self.constants, dtype, _MOST_STEPS)
        except TooManySteps:
            return f"the model takes more than {_MOST_STEPS} steps"
        return None

    @property
    def stores_halves(self) -> bool:
        """Whether a function reads or makes a tensor of floats of 16 bits, constants aside."""
        return any(
            p.buffer.type.is_half
            for func in self.program.functions
            for p in func.parameters
            if p.buffer not in func.constants
        )

    @property
    def decides(self) -> bool:
        """Whether a function makes a great difference of a small one: it compares floats, or makes
        whole numbers of them.
        """
        from ...tir.analysis.decides import decides  # as above

        return any(map(decides, self.program.functions))

    def stored(self) -> StoredModel:
        """The model as a file holds it."""
        return StoredModel(program_text(self.program), dict(self.constants))


@dataclass(frozen=True, slots=True, eq=False)
class StoredModel:
    """A model whose program is a JSON text."""

    text: str
    constants: Mapping[str, Array]

    def model(self) -> Model:
        """Read the text.

        Raises: IRError where it is not what `Model.stored` wrote.
        """
        return Model(parse_program(self.text), self.constants)

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """As `Model`."""
        return self.model()(inputs)
