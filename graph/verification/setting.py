"""How a model is compiled to be held against another system, and what of it is compared."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from onnx import ModelProto
from onnx.external_data_helper import load_external_data_for_model

from ...runtime.arrays import Array
from ...runtime.engine.engine import Engine
from ...runtime.model.verification import roundings_of
from ...schedule.source import ScheduleSource
from ...tir.target.target import Target
from ..compile import compile
from ..errors import ModelError
from ..given_model import is_archive
from ..importers.onnx.given import with_constants
from ..importers.onnx.importer import ImportLimits, parsed_model
from ..options import Shapes, Verify
from .differences import ValueBound, ValueDifference, difference
from .systems import ModelRun

if TYPE_CHECKING:
    from ..precision.accuracy import Accuracy
    from ..precision.calibration.calibration import Calibration

ModelSource = str | os.PathLike[str] | bytes | ModelProto


@dataclass(frozen=True, slots=True)
class EngineSetting:
    """target, shapes, schedules, tolerance, precision, calibration, accuracy: as `compile` has
    them; bound: what outputs may be off by.
    """

    target: Target | str | None
    shapes: Shapes | None
    bound: ValueBound
    schedules: ScheduleSource | None = None
    tolerance: float | None = None
    precision: str | Mapping[str, str] = "float32"
    calibration: Calibration | None = None
    accuracy: Accuracy | None = None

    def compiled(
        self, model: ModelSource, *, verify: Verify = "off", cache: bool = False
    ) -> Engine[Any]:
        """The engine of a model. Raises: what `compile` raises."""
        return compile(
            model,
            self.target,
            shapes=self.shapes,
            schedules=self.schedules,
            tolerance=self.tolerance,
            precision=self.precision,
            calibration=self.calibration,
            accuracy=self.accuracy,
            verify=verify,
            cache=cache,
        )

    def closed_by(self, model: ModelProto) -> EngineSetting:
        """The setting for a part of the model, without sizes that it does not name."""
        names = {item.name for item in model.graph.input}
        for item in model.graph.input:
            names |= {dim.dim_param for dim in item.type.tensor_type.shape.dim}
        kept = {name: size for name, size in (self.shapes or {}).items() if name in names}
        return replace(self, shapes=kept)


def compared_outputs(
    engine: Engine[Any], run: ModelRun, given: Mapping[str, Array], bound: ValueBound, at: str
) -> Iterator[ValueDifference]:
    """Each output of an engine beside that of another system. at: a word for the inputs. What the
    model's own types explain is allowed where the engine has no others.

    Raises: SystemFailed; what a run of an engine raises.
    """
    ours, theirs = engine.run(given), run(given)
    kept = engine.parts.reference

    @cache
    def roundings() -> Mapping[str, float]:
        assert kept is not None
        model = kept.model()
        return roundings_of(model, given, model(given), model.in_own_types(given))

    is_own = kept is not None and not engine.explain().precision.kinds
    asked = replace(bound, roundings=roundings) if is_own else bound
    for name, array in ours.items():
        yield difference(name, array, theirs[name], asked, at)


def read_model(model: ModelSource, constants: Mapping[str, object] | None) -> ModelProto:
    """A model with its external data; its inputs that are `constants` are initialisers.

    Raises: ModelFileError, ModelError.
    """
    if not isinstance(model, ModelProto) and is_archive(model):
        raise ModelError(
            "verify: the model is an archive of torch.export, which is compared with torch alone, "
            "whole and as it is; expected an ONNX model.",
            code="verify-archive",
            hints=(
                "torch.onnx.export(torch.export.load(path).module(), inputs, 'model.onnx') writes "
                "one.",
            ),
        )
    proto, folder = parsed_model(model, ImportLimits())
    if folder is not None:
        load_external_data_for_model(proto, str(folder))
    return with_constants(proto, constants) if constants else proto
