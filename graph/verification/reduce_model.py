"""tw.reduce_model: the smallest part of a model that fails in the same way.

Delta debugging over the nodes of a model. A part of them is a model again: what other nodes
computed becomes an input, with the value that it had in a run of the whole model, or a constant of
that value where it is an integer (a shape, an axis); what no node reads becomes an output. Then
outputs are dropped, and nodes are bypassed whose result has the type and the shape of one of their
inputs, until nothing more can go; in the bodies of branches and loops, nodes become an Identity of
what they read. Each candidate is a model that onnx.checker takes, and is tried in a process of its
own, which may crash or hang.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
from onnx import ModelProto

from ...runtime.arrays import Array
from ...runtime.files.replacement import replacing
from ...runtime.model.interface import ClosedSpec
from ...runtime.model.verification import random_inputs
from ...tir.errors import TilewrightError
from ...tir.output_file import writing
from ...tir.sizes import dims_in, shape_in
from ...tir.target.target import Target
from ..importers.onnx.structured_inputs import read_inputs
from ..importers.symbols import resolve
from ..options import Shapes
from .bodies import body_nodes, with_identities, without_unread
from .cutting import inner_values, with_outputs
from .delta import smallest
from .differences import ValueBound
from .outcomes import CommandTrial, EngineTrial, ModelTrial
from .parts import ModelPart, WholeModel, is_valid
from .setting import EngineSetting, ModelSource, read_model
from .systems import SYSTEMS, SystemFailed, has_onnxruntime, system_named

Progress = Callable[[str], object]
_DRAWS = 3  # of random inputs, until the model fails on them


class ReduceError(TilewrightError, ValueError):
    """A model cannot be reduced: it does not fail, or it is no ONNX model to begin with."""


@dataclass(frozen=True, slots=True, eq=False)
class ReducedModel:
    """The smallest model that was found. outcome: how it fails, as the whole one does; inputs: on
    which, as far as they are known. nodes, whole: how many nodes it and the whole model have;
    trials: how many models were tried; is_done: whether nothing more could go, else the time was
    over.
    """

    proto: ModelProto
    inputs: Mapping[str, Array]
    outcome: str
    nodes: int
    whole: int
    trials: int
    is_done: bool

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, Path | None]:
        """Write the model, and beside it its inputs as .npz, each file in one step; the paths.

        Raises: OutputFileError.
        """
        file = Path(path)
        with writing(file), replacing(file) as stream:
            stream.write(self.proto.SerializeToString())
        if not self.inputs:
            return file, None
        beside = file.with_suffix(".npz")
        with writing(beside), replacing(beside) as stream:
            np.savez(stream, **dict(self.inputs))  # type: ignore[arg-type]  # its stub has keywords
        return file, beside

    def __str__(self) -> str:
        end = "" if self.is_done else "; the time was over"
        return (
            f"{self.nodes} of {self.whole} nodes, {self.outcome}, after {self.trials} trials{end}"
        )

    __repr__ = __str__


def reduce_model(
    model: ModelSource,
    *,
    against: Literal["onnxruntime", "reference"] | None = None,
    fails_with: str | None = None,
    command: str | None = None,
    target: Target | str | None = None,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    inputs: Mapping[str, Array] | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    tolerance: float | None = None,
    seconds: float = 600.0,
    trial_seconds: float = 60.0,
    progress: Progress | None = None,
) -> ReducedModel:
    """The smallest part of a model that fails as it does.

    It fails where an output differs from that of the system `against` ("onnxruntime", where it is
    installed, else "reference"), where compiling it ends with an error, or where the process
    crashes or hangs. fails_with: the code of the error that it must end with; then nothing is run.
    command: a line for sh, in which {model} is the path of a candidate; it fails where it ends with
    the status, other than 0, with which it ends for the whole model. target, shapes, constants,
    tolerance: as `compile` has them; atol, rtol: as `verify_model` has them. inputs: by default
    random ones. seconds: of all; trial_seconds: of one candidate, in which it has to answer.
    Raises: ReduceError; SystemMissing; ModelError, ModelFileError.
    """
    proto = read_model(model, constants)
    _check_valid(proto)
    deadline, tell = time.monotonic() + seconds, progress or _silent
    system = against or ("onnxruntime" if has_onnxruntime() else "reference")
    bound = ValueBound(atol, rtol, tolerance)
    trial = _trial(EngineSetting(target, shapes, bound), system, fails_with, command, trial_seconds)
    draws = [dict(inputs)] if inputs is not None else _draws(proto, shapes)
    try:
        given, outcome = _failing(proto, trial, draws, fails_with)
        arrays = {**_run_values(proto, given, system), **given}
        search = _Search(WholeModel.of(proto, arrays), trial, outcome, deadline, tell)
        return search.reduced(given)
    finally:
        trial.stop()


def _trial(
    setting: EngineSetting,
    system: str,
    fails_with: str | None,
    command: str | None,
    seconds: float,
) -> ModelTrial:
    """What tries the candidates. Raises: UnknownSystem, SystemMissing."""
    if command is not None:
        return CommandTrial(command, seconds)
    return EngineTrial(setting, None if fails_with else system_named(system).name, seconds)


def _failing(
    proto: ModelProto, trial: ModelTrial, draws: Sequence[dict[str, Array]], code: str | None
) -> tuple[dict[str, Array], str]:
    """Inputs on which the whole model fails, and how. Raises: ReduceError."""
    outcome = ""
    for given in draws:
        outcome = trial.outcome(proto, given)
        if trial.is_failure(outcome) and (code is None or outcome == f"error {code}"):
            return given, outcome
    wanted = "" if code is None else f"; expected 'error {code}'"
    raise ReduceError(
        f"reduce: the model does not fail so, but ends with '{outcome}'{wanted}.",
        code="reduce-no-failure",
    )


class _Search:
    """Looks for the smallest part that fails as the whole model does."""

    def __init__(
        self, model: WholeModel, trial: ModelTrial, outcome: str, deadline: float, tell: Progress
    ) -> None:
        self.model, self.trial, self.outcome = model, trial, outcome
        self.deadline, self.tell = deadline, tell
        self.trials = 0
        self.found: tuple[ModelProto, Mapping[str, Array]] = (model.proto, {})

    def reduced(self, given: Mapping[str, Array]) -> ReducedModel:
        """The smallest model that was found. given: the inputs of the whole one."""
        self.found = (self.model.proto, given)
        best, before = self.model.whole(), None
        while before != best:
            before = best
            best = self.bypassed(self.fewer_outputs(self.fewer_nodes(best)))
        self.smaller_bodies()
        is_done = time.monotonic() <= self.deadline
        whole = len(self.model.proto.graph.node)
        nodes = len(best.nodes)
        return ReducedModel(*self.found, self.outcome, nodes, whole, self.trials, is_done)

    def fewer_nodes(self, part: ModelPart) -> ModelPart:
        """The smallest subset of its nodes that fails."""
        best = part

        def holds(nodes: tuple[int, ...]) -> bool:
            nonlocal best
            self.tell(f"{len(best.nodes)} nodes left, {self.trials} trials")
            found = self.fails(replace(part, nodes=nodes, outputs=None))
            best = found or best
            return found is not None

        smallest(part.nodes, holds)
        return best

    def fewer_outputs(self, part: ModelPart) -> ModelPart:
        """The smallest subset of its outputs that fails."""
        names = tuple(item.name for item in self.found[0].graph.output)
        best = part

        def holds(outputs: tuple[str, ...]) -> bool:
            nonlocal best
            found = self.fails(replace(part, outputs=outputs))
            best = found or best
            return found is not None

        smallest(names, holds)
        return best

    def bypassed(self, part: ModelPart) -> ModelPart:
        """The part without nodes that may be passed by."""
        best, again = part, True
        while again:
            found = next(filter(None, map(self.fails, self.model.detours(best))), None)
            best, again = found or best, found is not None
        return best

    def smaller_bodies(self) -> None:
        """Make the graphs within nodes smaller."""
        place = 0
        while place < len(body_nodes(self.found[0])):
            self.tell(f"{len(body_nodes(self.found[0]))} nodes within others, {self.trials} trials")
            any(map(self.fails_too, with_identities(self.found[0], place)))
            place += 1
        while any(map(self.fails_too, without_unread(self.found[0]))):
            self.tell(f"{len(body_nodes(self.found[0]))} nodes within others, {self.trials} trials")

    def fails_too(self, model: ModelProto) -> bool:
        """Whether a model with the inputs of the one that was found fails as that does."""
        known = self.found[1]
        if model == self.found[0] or not is_valid(model) or time.monotonic() > self.deadline:
            return False
        self.trials += 1
        if self.trial.outcome(model, known) != self.outcome:
            return False
        self.found = (model, known)
        return True

    def fails(self, part: ModelPart) -> ModelPart | None:
        """The part, or the part with integers as constants, where that fails as the model does."""
        for one in dict.fromkeys((part.fixed, True)):
            tried = replace(part, fixed=one)
            made = self.model.model_of(tried)
            if made is None or time.monotonic() > self.deadline:
                continue
            self.trials += 1
            if self.trial.outcome(*made) == self.outcome:
                self.found = made
                return tried
        return None


def _check_valid(proto: ModelProto) -> None:
    """Raises: ReduceError for what onnx.checker refuses."""
    try:
        onnx.checker.check_model(proto)
    except (onnx.checker.ValidationError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(" .:")
        raise ReduceError(
            f"reduce: onnx.checker refuses the model: {reason[:300]}; expected one that it takes, "
            "as it has to take each part of it.",
            code="reduce-invalid",
        ) from error


def _draws(proto: ModelProto, shapes: Shapes | None) -> list[dict[str, Array]]:
    """Random inputs at the usual sizes, to be tried in order: integers may be indices, or not."""
    weights = {tensor.name for tensor in proto.graph.initializer}
    items = [item for item in proto.graph.input if item.name not in weights]
    try:
        given = read_inputs(items, shapes, None)
        shapes_of = resolve(given.tensors, given.tensor_shapes)
    except TilewrightError:
        return [{}]  # what refuses them is what fails
    if given.unknown or given.structures:  # no tensors, which nobody draws
        return [{}]
    usual = {dim: dim.usual for shape in shapes_of.values() for dim in dims_in(shape)}
    specs = [
        ClosedSpec(item.name, np.dtype(item.dtype), shape_in(shapes_of[item.name], usual))
        for item in given.tensors
    ]
    return [
        random_inputs(specs, seed, indices=indices)
        for seed in range(_DRAWS)
        for indices in (False, True)
    ]


def _run_values(proto: ModelProto, given: Mapping[str, Array], system: str) -> dict[str, Array]:
    """What all nodes compute on these inputs, in the first system that can run the model; nothing
    where none can.
    """
    part = with_outputs(proto, inner_values(proto))
    for name in dict.fromkeys((system, "reference")):
        try:
            return SYSTEMS[name].load(part)(given)
        except SystemFailed:
            continue
    return {}


def _silent(stage: str) -> None:
    """Discard a progress message."""
