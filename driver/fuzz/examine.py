"""What a case is held against: the checked interpreter at every stage, NumPy, the proof, the
replay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from ...codegen.lower.lower import contraction, lower_parts, lower_to_nest
from ...codegen.lower.split_prepare import Prepared
from ...schedule.canonical import canonical_form
from ...schedule.proof.lowered.prove import prove_lowered
from ...schedule.proof.prove import prove
from ...schedule.schedule import Schedule
from ...schedule.trace.trace import Trace
from ...schedule.verdict import PROVED, UNKNOWN, Verdict
from ...tir.dtype import dtype
from ...tir.errors import TargetError, TilewrightError
from ...tir.func import PrimFunc
from ...tir.interpreter.interpreter import interpret
from ...tir.reference.error_bound import Reference, reference
from ...tir.stmt import Role
from ...tir.target.target import Target
from ...tir.verify.verify import Stage, verify
from .case import ISAS, Array, Case, arrays, named, size_choices

UNDECIDED = "undecided, of recomputed reductions"


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """What is wrong with a case. stage: where it showed; kind: the class or code of the error."""

    stage: str
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.stage}: {self.message}"

    def is_like(self, other: CaseFailure | None) -> bool:
        """Whether both are one defect, as far as one can tell."""
        return other is not None and (self.stage, self.kind) == (other.stage, other.kind)


class Failed(Exception):
    """A check found a failure."""

    def __init__(self, failure: CaseFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


@dataclass(frozen=True, slots=True)
class LoweredCase:
    """A case, lowered for a target: its two parts and the values of its outputs by the
    interpreter.
    """

    target: Target
    parts: Prepared
    given: Mapping[str, Array]
    outputs: Mapping[str, Array]


@dataclass(slots=True)
class Examined:
    """What was found: the first failure, if any; what the proof said; what each target refused."""

    failure: CaseFailure | None = None
    proof: str = ""
    refused: dict[str, str] = field(default_factory=dict)
    lowered: list[LoweredCase] = field(default_factory=list)


def examine(case: Case, isas: Sequence[str] = ISAS) -> Examined:
    """Hold a case against its meaning, up to the LOWERED function of each instruction set."""
    found = Examined()
    try:
        for sizes in size_choices(case.function):
            _examine(case, isas, arrays(case.function, sizes=sizes), found)
    except Failed as error:
        found.failure = error.failure
    return found


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Any error inside is a failure of this stage. Raises: Failed."""
    try:
        yield
    except Failed:
        raise
    except Exception as error:  # whatever it is, it is what is looked for
        kind = error.code if isinstance(error, TilewrightError) else _origin(error)
        raise Failed(CaseFailure(name, kind, f"{type(error).__name__}: {error}")) from error


def _origin(error: Exception) -> str:
    """The class of an error and the function that raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = "" if trace is None else f" in {trace.tb_frame.f_code.co_qualname}"
    return f"{type(error).__name__}{name}"


def _examine(case: Case, isas: Sequence[str], given: Mapping[str, Array], found: Examined) -> None:
    """Hold a case against its meaning on some arrays. Raises: Failed."""
    with stage("definition"):
        verify(case.function, Stage.TENSOR)
        expected = reference(case.function, given)
    with stage("schedule"):
        sch = case.schedule()
        verify(sch.func, Stage.SCHEDULED)
    with stage("replay"):
        _check_replay(sch)
    _check_values("scheduled", sch.func, given, expected)
    nests: dict[bool, PrimFunc] = {}
    for isa in isas:
        target = Target.parse(f"c:{isa}")
        if target.has_fma not in nests:
            first = not nests and not found.proof
            nests[target.has_fma] = _nest(sch, target, given, expected, found, prove_it=first)
        _lower(nests[target.has_fma], target, given, expected, found)


def _check_replay(sch: Schedule) -> None:
    trace = Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    if str(Schedule.replay(sch.original, trace)) != str(sch):
        raise Failed(CaseFailure("replay", "text", "the trace makes another function"))


def _check_values(
    name: str,
    func: PrimFunc,
    given: Mapping[str, Array],
    expected: Reference,
    *,
    barriers: bool = False,
) -> None:
    """The checked interpreter's values are within the bound of the reference."""
    with stage(name):
        values = interpret(func, *named(given, func), checked=True, barriers=barriers)
        compare(name, values, expected)


def compare(name: str, values: Sequence[Array], expected: Reference) -> None:
    """Raise Failed where values stray from the reference."""
    comparison = expected.compare(values)
    if not comparison:
        raise Failed(CaseFailure(name, "values", str(comparison)))


def _nest(
    sch: Schedule,
    target: Target,
    given: Mapping[str, Array],
    expected: Reference,
    found: Examined,
    *,
    prove_it: bool,
) -> PrimFunc:
    """The nest of a schedule, checked and proved."""
    with stage("nest"):
        contracted = contraction(sch.func, target)
        nest = lower_to_nest(contracted)
        verify(nest, Stage.NEST)
    _check_values("nest", nest, given, expected, barriers=True)
    if prove_it:
        with stage("canonical form"):
            canonical = canonical_form(contracted)
        _check_values("canonical form", canonical, given, expected)
        with stage("proof"):
            verdict = prove(nest, canonical)
        found.proof = verdict.status
        if verdict.status == UNKNOWN and _recomputes_reductions(nest):
            found.proof = UNDECIDED
        elif verdict.status != PROVED:
            raise Failed(CaseFailure("proof", _lacking(verdict), str(verdict)))
    return nest


def _lacking(verdict: Verdict) -> str:
    """The status of a verdict and the properties that it speaks of: "unknown P2"."""
    said = " ".join((*map(str, verdict.failures), *verdict.reasons))
    return " ".join((verdict.status, *sorted({*re.findall(r"\bP[1-5]\b", said)})))


def _recomputes_reductions(nest: PrimFunc) -> bool:
    """Whether a reduction is computed again in several places, cut into variants: the proof sees
    rounds of one loop only, so it may be undecided, and the values alone speak.
    """
    again = {block.family for block in nest.blocks if block.recomputed}
    return any(block.role is Role.INIT and block.family in again for block in nest.blocks)


def _lower(
    nest: PrimFunc,
    target: Target,
    given: Mapping[str, Array],
    expected: Reference,
    found: Examined,
) -> None:
    """The LOWERED function for a target, run; or why the target refuses the schedule."""
    name = f"lowered for {target}"
    with stage(name):
        try:
            parts = lower_parts(nest, target)
        except TargetError as refusal:
            str(refusal)
            found.refused[target.isa] = refusal.code
            return
        _check_parts(name, parts)
        values = dict(given)
        if parts.prepare is not None:
            values |= _outputs(parts.prepare, values, whole=False)
        outputs = _outputs(parts.run, values)
        compare(name, list(outputs.values()), expected)
    found.lowered.append(LoweredCase(target, parts, given, outputs))


def _check_parts(name: str, parts: Prepared) -> None:
    """Bounds and races of lowered code are proved. Raises: Failed."""
    for func in (parts.prepare, parts.run):
        verdict = None if func is None else prove_lowered(func)
        if verdict is not None and verdict.status != PROVED:
            raise Failed(CaseFailure(name, verdict.status, str(verdict)))


def _outputs(
    func: PrimFunc, values: Mapping[str, Array], *, whole: bool = True
) -> dict[str, Array]:
    """The outputs by name; whole: each element of them is written."""
    results = interpret(func, *named(values, func), checked=True, barriers=True, whole=whole)
    return {b.name: array for b, array in zip(func.outputs, results, strict=True)}


def differing(a: Array, b: Array) -> int:
    """Elements whose bits differ; any NaN is as good as another."""
    same = a == b
    if dtype(a.dtype).is_float:
        bits = np.dtype(f"u{a.dtype.itemsize}")
        same = (a.view(bits) == b.view(bits)) | ((a != a) & (b != b))
    return int(np.count_nonzero(~same))
