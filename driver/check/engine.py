"""The check of a whole engine: it runs beside the model's own reference, in float64.

Kernels are proved and checked one by one; what joins them is not: the plan of the memory, scratch
memory beside it, copies, barriers, the shares of the threads, the waits of streams. So the engine
is run as it will be, in several ways (`EngineRuns`: on 1, 2 and 3 threads, say), its memory filled
with NaN, and

- the bits of the outputs are the same in all ways,
- no fence, no input and no constant has changed,
- every output is as near to the reference as `Engine.verify` asks; what leaves the model's own
  types on the way (a sum that is infinite in float32) is not compared.

That is done on random data, and once more on data that is not kind: zeros of both signs, tiny and
large numbers, the ends of the integers.

Where an output is further off, the engine runs launch by launch: what is wrong is named. A model
that decides on rounded values (the larger of two, say) may rightly decide otherwise than its
reference where they are all but equal; its launches must be right one by one then, each on what the
ones before it gave, and give the bits that the whole run gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol
from zlib import crc32

import ml_dtypes
import numpy as np

from ...codegen.artifact import Parameter
from ...runtime.arrays import Array
from ...runtime.model.model import Model
from ...runtime.model.verification import OutputReport, RoundedModel, compare_outputs, roundings_of
from ...tir.dtype import dtype as as_dtype
from ...tir.instructions.warp_products import cut_terms
from ...tir.number import integer_range
from ...tir.program.program import Slice
from ...tir.sizes import closed_shape, shape_in
from .blas_threads import fewer_blas_threads, share_of_cpus
from .check import CheckError
from .engine_runs import EngineRuns, RefusedStepError, WroteElsewhereError
from .fenced import same_bits
from .program import ProgramCheckError
from .wrong_launches import wrong_launches

_EACH_RIGHT = "run alone, each of its launches is right on what it is given."
_DRAWS = 4  # of inputs, until a model ends on them
_EDGE = 0.1  # of the largest number of a type
_EXTREME = (0.0, -0.0, 1e-30, -1e-30, 1e-6, -1e-6, 1e3, -1e3)


class EngineCheckError(CheckError):
    """An engine as a whole does not compute what its model does."""


class Oracle(RoundedModel, Protocol):
    """The reference of a model. decides: whether an operator of it makes a great difference of a
    small one. why_not_run: why no engine is run on some inputs: it may not end; None: it may be.
    """

    @property
    def decides(self) -> bool: ...

    def why_not_run(self, inputs: Mapping[str, Array]) -> str | None: ...


@dataclass(frozen=True, slots=True)
class EngineCheck:
    """What was found. ran: how it ran. shares: the largest error over what is allowed, for each
    kind of data; None where it was compared launch by launch. left_out: why it did not run on some.
    """

    ran: str
    shares: Mapping[str, float | None]
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        found = (
            f"{title} data launch by launch" if share is None else f"{title} data {share:.2g}"
            for title, share in self.shares.items()
        )
        said = [f"ok {self.ran}; error over bound: {', '.join(found)}"] if self.shares else []
        said += [f"not run on {title} data: {why}" for title, why in self.left_out.items()]
        return "; ".join(said)


class EngineChecker:
    """Runs one engine."""

    def __init__(
        self,
        runs: EngineRuns,
        model: Model,
        oracle: Oracle,
        *,
        tolerance: float | None = None,
    ) -> None:
        """model: the program before schedules, launch for launch, with its constants. tolerance:
        the share of an output's largest magnitude that may be allowed.
        """
        self._runs = runs
        self._model = model
        self._oracle = oracle
        self._tolerance = tolerance
        self._weights: tuple[int, ...] = ()

    def check(self, seed: int = 0) -> EngineCheck:
        """Run it on each kind of data.

        Raises: ProgramCheckError naming the functions whose kernels are wrong on what they were
        given; EngineCheckError where each of them is right, and the engine is not.
        """
        drawn = {title: self._drawn(title, seed) for title in KINDS}
        kinds = {title: inputs for title, inputs in drawn.items() if not isinstance(inputs, str)}
        left_out = {title: why for title, why in drawn.items() if isinstance(why, str)}
        references = ThreadPoolExecutor(len(KINDS), "tilewright-reference")
        with fewer_blas_threads(share_of_cpus(len(KINDS))), references as beside:
            exact = {t: beside.submit(self._oracle, self._named(x)) for t, x in kinds.items()}
            self._weights = self._digest()
            firsts = {title: self._same_in_all_ways(x, title) for title, x in kinds.items()}
            shares = {
                title: self._on(inputs, firsts[title], exact[title].result(), title)
                for title, inputs in kinds.items()
            }
        return EngineCheck(self._runs.title, shares, left_out)

    def _drawn(self, title: str, seed: int) -> list[Array] | str:
        """Inputs of a kind, on which the model ends; why there are none."""
        why: str | None = ""
        for number in range(seed, seed + _DRAWS):
            rng = np.random.default_rng(number)
            inputs = [KINDS[title](rng, p) for p in self._runs.artifact.inputs]
            why = self._oracle.why_not_run(self._named(inputs))
            if why is None:
                return inputs
        return why or ""

    def _named(self, inputs: Sequence[Array]) -> dict[str, Array]:
        parameters = self._runs.artifact.inputs
        return {p.name: array for p, array in zip(parameters, inputs, strict=True)}

    def _on(
        self,
        inputs: Sequence[Array],
        first: Sequence[Array],
        exact: Mapping[str, Array],
        title: str,
    ) -> float | None:
        """The largest error over what is allowed, of the outputs `first` of a run on these inputs.
        exact: the reference's.
        """
        worst = self._worst(first, self._named(inputs), exact)
        if worst is None or worst.share <= 1:
            return 0.0 if worst is None else worst.share
        alone = self._launches(inputs, title)
        same = all(same_bits(one, other) for one, other in zip(first, alone, strict=True))
        if same and self._oracle.decides:
            return None
        raise self._error(f"on {title} data output {worst}", _EACH_RIGHT)

    def _same_in_all_ways(self, inputs: Sequence[Array], title: str) -> list[Array]:
        """The outputs of a run, which have the same bits in each way."""
        artifact, ways = self._runs.artifact, self._runs.ways
        first, *others = (self._run(way, inputs, title) for way in range(len(ways)))
        if self._digest() != self._weights:
            raise self._error(f"it wrote into its weights, on {title} data")
        for way, outputs in zip(ways[1:], others, strict=True):
            for parameter, one, other in zip(artifact.outputs, first, outputs, strict=True):
                if not same_bits(one, other):
                    self._launches(inputs, title)
                    reason = self._runs.why_ways_differ()
                    raise self._error(
                        f"output '{parameter.name}' has other bits {way} than {ways[0]}, on "
                        f"{title} data",
                        *(_EACH_RIGHT, *([reason] if reason is not None else ())),
                    )
        return first

    def _run(self, way: int, inputs: Sequence[Array], title: str) -> list[Array]:
        """The outputs of a run."""
        try:
            return self._runs.run(way, inputs)
        except WroteElsewhereError as fault:
            where = f"{self._runs.ways[way]}, on {title} data"
            raise self._error(f"it wrote {fault} {where}") from None
        except RefusedStepError:
            self._launches(inputs, title)  # says more, where it can
            raise

    def _digest(self) -> tuple[int, ...]:
        """The weights, in short: taken before all runs and after those on each kind of data."""
        kept = map(np.ascontiguousarray, self._runs.weights())  # some repeat a value
        return tuple(crc32(array.reshape(-1).view(np.uint8).data) for array in kept)

    def _worst(
        self, outputs: Sequence[Array], inputs: Mapping[str, Array], exact: Mapping[str, Array]
    ) -> OutputReport | None:
        """The output that is furthest from the reference, by what it may be off. exact: all of them
        in float64.
        """
        names = [parameter.name for parameter in self._runs.artifact.outputs]
        got = dict(zip(names, outputs, strict=True))
        accepted = self._tolerance
        report = compare_outputs("", got, exact, tolerance=accepted)
        if not report:
            rounded = self._oracle.in_own_types(inputs)
            held = {n: _where_held(got[n], exact[n], rounded[n]) for n in names}
            strayed = roundings_of(self._oracle, inputs, exact, rounded)
            halves = self._oracle.stores_halves
            report = compare_outputs(
                "", got, held, tolerance=accepted, roundings=strayed, halves=halves
            )
        return max(report.outputs, key=lambda output: output.share, default=None)

    def _launches(self, inputs: Sequence[Array], title: str) -> list[Array]:
        """The outputs of a run launch by launch.

        Raises: ProgramCheckError for those that are wrong on what they are given; EngineCheckError
        where the plan of the steps or of the memory is.
        """
        artifact, run = self._runs.artifact, self._runs.stepped(inputs)
        try:
            found = wrong_launches(run, self._model, cut_terms(artifact.target))
        except RefusedStepError as fault:
            raise self._error(f"on {title} data {fault}") from None
        if found.planned is not None:
            raise self._error(
                f"on {title} data its outputs are off, and {found.planned}",
                "the plan of its steps is to blame.",
            )
        if found.lost is not None:
            raise self._error(
                f"on {title} data something writes over {found.lost}",
                "the plan of the memory, or a kernel that writes elsewhere, is to blame.",
            )
        if found.wrong:
            raise ProgramCheckError(artifact.name, found.wrong)
        return [
            run.view(Slice("output", position, p.dtype, shape_in(p.shape, found.sizes)))
            for position, p in enumerate(artifact.outputs)
        ]

    def _error(self, problem: str, *notes: str) -> EngineCheckError:
        return EngineCheckError(
            f"check: the engine of '{self._runs.artifact.name}' is wrong: {problem}.",
            code="check-engine",
            notes=notes,
            hints=(
                "this is a defect of tilewright, please report it; verify='kernels' builds the "
                "engine without this check.",
            ),
        )


def _where_held(got: Array, exact: Array, rounded: Array) -> Array:
    """The reference where the model's own types hold what float64 does; elsewhere what is there.

    Next to the largest number that a type holds, another order of operations may leave it.
    """
    if not got.shape == exact.shape == rounded.shape:
        return exact  # data have decided otherwise
    near = rounded.astype(np.float64)
    both = np.isnan(exact) & np.isnan(near)
    held = (np.isfinite(exact) & np.isfinite(near)) | (exact == near) | both
    if as_dtype(rounded.dtype).is_float:
        held &= ~(np.abs(near) > _EDGE * _most(rounded.dtype))
    return np.where(held, exact, got.astype(np.float64))


def _most(kind: np.dtype[np.generic]) -> float:
    """The largest number of a type of floats."""
    return float(ml_dtypes.finfo(kind).max)  # type: ignore[no-untyped-call]


def _random(rng: np.random.Generator, parameter: Parameter) -> Array:
    """Normal numbers, small whole ones, truth values."""
    kind, shape = parameter.dtype, closed_shape(parameter.shape)
    if kind.is_float:
        return rng.standard_normal(shape).astype(kind.numpy)
    high = 1 if kind.is_bool else min(100, integer_range(kind)[1])
    return rng.integers(0, high, shape, endpoint=True).astype(kind.numpy)


def _extreme(rng: np.random.Generator, parameter: Parameter) -> Array:
    """Half of the numbers as `_random` draws them, the others zeros, tiny, large, or ends."""
    kind, shape = parameter.dtype, closed_shape(parameter.shape)
    plain = _random(rng, parameter)
    if kind.is_bool:
        return plain
    with np.errstate(all="ignore"):
        few = np.array(_EXTREME if kind.is_float else integer_range(kind)).astype(kind.numpy)
    few = few[np.isfinite(few.astype(np.float64))]
    chosen = few[rng.integers(0, len(few), shape)]
    return np.where(rng.integers(0, 2, shape) == 0, plain, chosen)


KINDS: Mapping[str, Callable[[np.random.Generator, Parameter], Array]] = {
    "random": _random,
    "extreme": _extreme,
}
