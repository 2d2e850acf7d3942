"""tw.verify_model: run a model here and in another system, and compare what comes out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from onnx import ModelProto

from ...runtime.arrays import Array
from ...runtime.engine.engine import Engine
from ...runtime.model.verification import share_of_types
from ...schedule.source import ScheduleSource
from ...tir.target.target import Target
from ...tir.text.display import printable
from ..given_model import is_archive
from ..options import OptionError, Shapes, kinds_of
from .archives import load_archive, torch_title
from .differences import ValueBound, ValueDifference
from .first_difference import FirstDifference, InnerComparison, compare_inside
from .setting import EngineSetting, ModelSource, compared_outputs, read_model
from .systems import ModelRun, OtherSystem, system_named

if TYPE_CHECKING:
    from ..precision.accuracy import Accuracy
    from ..precision.calibration.calibration import Calibration

_TORCH = (None, "torch")  # what may be said of an archive
SEEDS = 3  # of random inputs, where nobody says

Progress = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class ModelReport:
    """How a model compares with another system; true where nothing differs.

    system: with its version. outputs: each output on the inputs on which it is furthest off. runs:
    on how many inputs. inside: what became of the values within; None where nobody asked.
    """

    model: str
    system: str
    target: str
    outputs: tuple[ValueDifference, ...]
    runs: int
    inside: InnerComparison | None = None

    def __bool__(self) -> bool:
        return all(one.is_equal for one in self.outputs) and not (self.inside and self.inside.first)

    @property
    def first(self) -> FirstDifference | None:
        """The first node whose value differs, where the values within were compared."""
        return self.inside.first if self.inside else None

    def __str__(self) -> str:
        word = "equal within bounds" if self else "different"
        head = f"{self.model}, {self.target}, and {self.system}: {word}"
        lines = [*map(str, self.outputs), *(str(self.inside).splitlines() if self.inside else ())]
        return "\n".join([printable(head), *(f"  {line}" for line in lines)])

    __repr__ = __str__


def verify_model(
    model: str | os.PathLike[str] | bytes | ModelProto,
    *,
    against: Literal["onnxruntime", "reference", "torch"] | None = None,
    engine: Engine[Any] | None = None,
    target: Target | str | None = None,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    inputs: Mapping[str, Array] | None = None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    seeds: int = SEEDS,
    atol: float | None = None,
    rtol: float | None = None,
    tolerance: float | None = None,
    precision: str | Mapping[str, str] = "float32",
    calibration: Calibration | None = None,
    accuracy: Accuracy | None = None,
    schedules: ScheduleSource | None = None,
    intermediates: bool = False,
    progress: Progress | None = None,
) -> ModelReport:
    """Run a model here and in another system on the same inputs, and compare all outputs.

    against: "onnxruntime", the default, or "reference", the evaluator of the onnx package; "torch",
    of an archive of torch.export alone, which is compared whole. engine: an engine of the model; by
    default one is compiled: target, shapes, constants, tolerance, precision, calibration, accuracy,
    schedules are as `compile` has them. inputs: by default random ones, as `Engine.random_inputs`
    draws them, of so many `seeds` from `seed` on, at `sizes`. An output is equal where it is off by
    at most 10 times the share of its largest magnitude that `Engine.verify` allows (of float32
    1e-4), or the tolerance, or what the model's own rounding explains; integers are the same. atol,
    rtol: |ours - theirs| <= atol + rtol * |theirs| instead. Where operands of products are rounded
    to 16 bits, 10 times what their type allows; where products multiply bytes, whose ranges are the
    caller's, one of atol, rtol and tolerance has to say it. intermediates: compare the values
    within, too, and name the first node that differs.
    Raises: what `compile` raises; OptionError; UnknownSystem, SystemMissing, SystemFailed;
    ArgumentValueError.
    """
    tell = progress or _silent
    other = _judge(model, against, constants, intermediates=intermediates)
    bound = ValueBound(atol, rtol, tolerance)
    types = (precision, calibration, accuracy)
    setting = EngineSetting(target, shapes, bound, schedules, tolerance, *types)
    if engine is None:
        check_compared(kinds_of(precision), bound, intermediates=intermediates)
        tell("compiling")
        engine = setting.compiled(other.source, verify="all", cache=True)
    if inputs is not None:
        drawn = {"on the inputs": dict(inputs)}
    else:
        numbers = range(seed, seed + seeds)
        drawn = {f"seed {n}": engine.random_inputs(n, sizes=sizes) for n in numbers}
    return _compared(other, engine, setting, drawn, intermediates, tell)


def _compared(
    other: _Judge,
    engine: Engine[Any],
    setting: EngineSetting,
    drawn: Mapping[str, Mapping[str, Array]],
    intermediates: bool,
    tell: Progress,
) -> ModelReport:
    """The report of an engine on some inputs. Raises: as `verify_model`."""
    built, kinds = engine.explain(), engine.explain().precision.kinds
    accepted = built.tolerance if setting.tolerance is None else setting.tolerance
    bound = replace(setting.bound, tolerance=accepted)
    check_compared(kinds, bound, intermediates=intermediates)
    bound = replace(bound, tolerance=max(accepted or 0.0, share_of_types(kinds) or 0.0) or None)
    setting = replace(setting, bound=bound, tolerance=accepted)
    tell(f"running {other.title}")
    run = other.load([spec.name for spec in engine.outputs])
    report = ModelReport(
        engine.name,
        other.title,
        str(engine.parts.artifact.target),
        _worst(engine, run, drawn, setting.bound),
        len(drawn),
    )
    if not intermediates or other.inside is None:
        return report
    furthest = max(report.outputs, key=lambda one: one.share)
    inside = compare_inside(*other.inside, setting, drawn[furthest.at], furthest, tell)
    return replace(report, inside=inside)


def check_compared(kinds: Iterable[str], bound: ValueBound, *, intermediates: bool) -> None:
    """Refuse a comparison that would mean nothing. kinds: types that products have, or are asked to
    have. Raises: OptionError.
    """
    narrow = dict.fromkeys(kinds)
    if narrow and intermediates:
        raise OptionError(
            f"verify: intermediates are asked for of a model with products in {', '.join(narrow)}, "
            "of whose values no other system has the same; expected the outputs alone, or a model "
            "in float32.",
            code="verify-precision-inside",
            hints=("engine.explain().precision says what bytes change in each product.",),
        )
    if not {"int8", "auto", "bytes"}.isdisjoint(narrow) and bound == ValueBound():
        raise OptionError(
            "verify: products multiply bytes, which round by the ranges of a calibration: no type "
            "says what outputs may be off by; expected atol, rtol or tolerance.",
            code="verify-bytes-bound",
            hints=(
                "tolerance=0.05 allows 5 % of an output's largest magnitude; "
                "compile(..., accuracy=...) holds a metric on data.",
            ),
        )


@dataclass(frozen=True, slots=True)
class _Judge:
    """Another system and what it runs. source: what is compiled; load: what computes outputs of
    these names; inside: what compares values within, where they can be.
    """

    title: str
    source: ModelSource
    load: Callable[[Sequence[str]], ModelRun]
    inside: tuple[ModelProto, OtherSystem] | None = None


def _judge(
    model: ModelSource,
    name: str | None,
    constants: Mapping[str, object] | None,
    *,
    intermediates: bool,
) -> _Judge:
    """An archive whose values within nobody asks for goes to torch. Raises: as `verify_model`."""
    as_it_is = not (constants or intermediates) and name in _TORCH
    if as_it_is and not isinstance(model, ModelProto) and is_archive(model):
        return _Judge(torch_title(), model, lambda outputs: load_archive(model, outputs))
    system = system_named(name or "onnxruntime")
    proto = read_model(model, constants)
    source = proto if constants else model
    return _Judge(system.title, source, lambda outputs: system.load(proto), (proto, system))


def _worst(
    engine: Engine[Any], run: ModelRun, drawn: Mapping[str, Mapping[str, Array]], bound: ValueBound
) -> tuple[ValueDifference, ...]:
    """Each output on the inputs on which it is furthest off."""
    worst: dict[str, ValueDifference] = {}
    for at, given in drawn.items():
        for one in compared_outputs(engine, run, given, bound, at):
            if one.name not in worst or one.share > worst[one.name].share:
                worst[one.name] = one
    return tuple(worst.values())


def _silent(stage: str) -> None:
    """Discard a progress message."""
