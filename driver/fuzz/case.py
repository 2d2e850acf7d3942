"""A case: a function and the steps of a schedule; drawn from a seed, written as a script, read
back.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from ...schedule.rules.default import default_schedule
from ...schedule.schedule import Schedule
from ...schedule.trace.trace import Step, Trace
from ...tir.dim import Dim
from ...tir.errors import TilewrightError
from ...tir.expr import Call, Div
from ...tir.func import PrimFunc
from ...tir.parsing.parser import parse
from ...tir.target.target import Target
from ...tir.visit import walk
from .program import random_function
from .steps import StepFailed, Tally, random_schedule, take_random

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

ISAS = ("scalar", "avx2", "avx512")
RULED = 6  # every so many cases begin with the steps of a rule
RANDOM_SIZES = 3  # that an open function runs at, beside the least and the largest
OPEN = 5  # of every so many functions one has sizes that a call decides
_EXACT_CALLS = frozenset({"abs", "floor", "round", "min_any", "max_any"})
_SCRIPT = '''\
"""{title}

{said}
"""

FUNCTION = """
{function}
"""

STEPS = [
{steps}
]
{refused}
if __name__ == "__main__":
    from tilewright.driver.fuzz.replay import replay

    replay(FUNCTION, STEPS{argument})
'''


class CaseError(TilewrightError, ValueError):
    """A file of the corpus is not one."""


@dataclass(frozen=True, slots=True)
class Case:
    """A function of stage TENSOR and the steps to take on it.

    refused: the code of the error that the last step meets; None where every step applies.
    """

    function: PrimFunc
    trace: Trace
    refused: str | None = None

    @staticmethod
    def of(function: str, steps: list[object], refused: str | None = None) -> Case:
        """The case that a script holds. Raises: IRError, ScheduleError for what is malformed."""
        return Case(parse(function), Trace.from_json({"version": 1, "steps": steps}), refused)

    @staticmethod
    def read(path: Path) -> Case:
        """The case of a file of the corpus. Raises: CaseError, IRError, ScheduleError."""
        held = runpy.run_path(str(path))
        function, steps, refused = (held.get(name) for name in ("FUNCTION", "STEPS", "REFUSED"))
        named = isinstance(refused, str | None)
        if not isinstance(function, str) or not isinstance(steps, list) or not named:
            raise CaseError(
                f"corpus: '{path.name}' lacks FUNCTION or STEPS; expected what `tilewright fuzz` "
                "writes.",
                code="corpus-file",
            )
        return Case.of(function, steps, refused)

    def script(self, title: str, said: str) -> str:
        """The text of a Python file that runs the case again."""
        steps = [json.dumps(step.to_json()) for step in self.trace.steps]
        return _SCRIPT.format(
            title=title,
            said=said.replace("\\", "\\\\").replace('"""', "'''"),
            function=self.function,
            steps="\n".join(f"    {_python(step)}," for step in steps),
            refused="" if self.refused is None else f'REFUSED = "{self.refused}"\n',
            argument="" if self.refused is None else ", REFUSED",
        ).replace("STEPS = [\n\n]", "STEPS = []")

    def to_json(self) -> dict[str, object]:
        """The case as JSON."""
        return {
            "function": str(self.function),
            "steps": [step.to_json() for step in self.trace.steps],
        }

    def schedule(self) -> Schedule:
        """The schedule after the steps. Raises: ScheduleError for a step that is refused."""
        return Schedule.replay(self.function, self.trace)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A case that was drawn, and how. failed: the step that did more than refuse, and its error."""

    case: Case
    failed: tuple[Step | None, str] | None = None


def draw(seed: int, tally: Tally, depth: int | None = None) -> Drawn:
    """The case of a seed: a random function after some random steps, by default 2 to 18 of them;
    in every sixth case the steps of the function's rule come before a few random ones.
    """
    rng = Random(seed)
    function = random_function(rng, is_open=seed % OPEN == OPEN - 1)
    steps = depth if depth is not None else rng.choice((2, 4, 6, 7, 8, 9, 10, 12, 14, 18))
    try:
        if seed % RULED == RULED - 1:
            sch = _ruled(rng, function)
            take_random(sch, rng, rng.choice((0, 0, 2, 4, 6)) if depth is None else depth, tally)
        else:
            sch = random_schedule(rng, function, steps, tally)
    except StepFailed as error:
        trace = error.trace
        if error.step is not None:
            trace = Trace((*trace.steps, error.step))
        return Drawn(Case(function, trace), (error.step, str(error)))
    return Drawn(Case(function, sch.trace))


def _ruled(rng: Random, function: PrimFunc) -> Schedule:
    """The schedule that the rule of a function makes. Raises: StepFailed."""
    target = Target.parse(f"c:{rng.choice(ISAS)}")
    try:
        return default_schedule(function, target, strict=rng.random() < 0.2)
    except Exception as error:  # a rule has a schedule for every function
        raise StepFailed(Trace(), None, error) from error


def rounds(func: PrimFunc) -> bool:
    """Whether a function divides or calls what rounds."""
    return any(
        isinstance(node, Div)
        or (isinstance(node, Call) and node.intrinsic.name not in _EXACT_CALLS)
        for node in walk(func.body)
    )


def size_choices(func: PrimFunc) -> list[dict[Dim, int]]:
    """The sizes at which a function runs: the largest, the least, and RANDOM_SIZES others, the same
    whenever it is examined. Without dims: one choice of none.
    """
    rng = Random(str(func))
    found = [{dim: dim.high for dim in func.dims}, {dim: dim.low for dim in func.dims}]
    found += [
        {dim: rng.randint(dim.low, dim.high) for dim in func.dims} for _ in range(RANDOM_SIZES)
    ]
    return [sizes for n, sizes in enumerate(found) if sizes not in found[:n]]


def arrays(
    func: PrimFunc, seed: int = 0, sizes: Mapping[Dim, int] | None = None
) -> dict[str, Array]:
    """Values for every parameter but the outputs, by name: normal floats for a function that
    rounds, else whole numbers so small that sums are exact. sizes: of its dims; by default the
    largest.
    """
    chosen = size_choices(func)[0] if sizes is None else sizes
    rng = np.random.default_rng(seed)
    normal = rounds(func)
    found: dict[str, Array] = {}
    for parameter in func.parameters:
        kind, extents = parameter.dtype, parameter.buffer.extents
        shape = tuple(chosen[e] if isinstance(e, Dim) else e for e in extents)
        if parameter.role == "output":
            continue
        if kind.is_float and normal:
            found[parameter.name] = rng.standard_normal(shape).astype(kind.numpy)
        else:
            signed = kind.is_float or kind.kind.value == "int"
            low, high = (-3, 4) if signed else (0, 2 if kind.is_bool else 4)
            found[parameter.name] = rng.integers(low, high, shape).astype(kind.numpy)
    return found


def _python(text: str) -> str:
    """JSON as a Python literal."""
    return repr(json.loads(text))


def named(arrays_: Mapping[str, Array], func: PrimFunc) -> list[Array]:
    """The arrays of a function's parameters, outputs left out, in order."""
    return [arrays_[p.name] for p in func.parameters if p.role != "output"]
