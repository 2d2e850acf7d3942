"""The "python" target: a kernel that the interpreter runs. Slow, but it needs no compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..codegen.artifact import Artifact, parameters_of, sizes_of
from ..runtime.arrays import Array
from ..runtime.kernel import Kernel, accept_constants
from ..runtime.kernel_code import Code
from ..tir.func import PrimFunc
from ..tir.interpreter.interpreter import interpret
from ..tir.target.target import Target


class InterpretedCode(Code):
    """A function with its constants bound: what an interpreted Kernel runs; pickles."""

    def __init__(self, func: PrimFunc, constants: Mapping[str, Array]) -> None:
        self.func = func
        self.constants = dict(constants)

    def run(self, arrays: Sequence[Array], threads: int) -> None:
        """Run once, whatever the number of threads."""
        interpret(self.func, *arrays, constants=self.constants)


def interpreted(func: PrimFunc, target: Target, constants: Mapping[str, object]) -> Kernel:
    """A kernel that interprets `func`; its source is the function's own text.

    Raises: ArgumentError for constants that do not fit.
    """
    artifact = Artifact(
        func.name, func.name, str(func), target, parameters_of(func), sizes=sizes_of(func)
    )
    bound = accept_constants(artifact, constants)
    code = InterpretedCode(func, {name: array.copy() for name, array in bound.items()})
    return Kernel(artifact, code, bound=bound, tuning="default: an interpreter takes no schedule")
