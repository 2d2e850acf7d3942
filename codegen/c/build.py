"""A scheduled nest becomes an Artifact: prepared constants cut off, both parts lowered, written as
one C source.
"""

from __future__ import annotations

from ...tir.expr import Call
from ...tir.func import PrimFunc
from ...tir.instructions.tensor_intrinsics import TensorIntrinsic
from ...tir.target.target import Target
from ...tir.visit import found_in
from ..artifact import Artifact, Entry, parameters_of, sizes_of
from ..lower.lower import lower_parts
from ..lower.split_prepare import Prepared
from ..text.comments import header
from ..text.marked import joined
from .dialect import C
from .emit import emit_function
from .externs import with_externs
from .frame import prelude
from .workspace import plan_workspace


def build_artifact(func: PrimFunc, target: Target, *, notes: str = "") -> Artifact:
    """The artifact of a function of stage NEST, as the passes to the nest leave it.

    notes: text for the comment at the top of the source, such as the schedule.
    Raises: TargetError where the target cannot do what the schedule asks.
    """
    return write_artifact(lower_parts(func, target), target, notes=notes)


def write_artifact(parts: Prepared, target: Target, *, notes: str = "") -> Artifact:
    """The artifact of a lowered function. Its target has the features that the code uses."""
    name = parts.run.name
    functions = (parts.run,) if parts.prepare is None else (parts.prepare, parts.run)
    target = using(target, *functions)
    symbol = C.entry_symbol(name)
    texts = [emit_function(parts.run, target, symbol)]
    prepare = None
    if parts.prepare is not None:
        prepare = entry(parts.prepare, f"{symbol}_prepare")
        texts.insert(0, emit_function(parts.prepare, target, prepare.symbol))
    body = joined(texts)
    whole = with_externs(body, *functions)
    source = f"{header(parts.run.name, target, notes)}{prelude(target, body)}\n{whole}"
    main = entry(parts.run, symbol)
    return Artifact(
        name,
        symbol,
        body.within(source),
        target,
        main.parameters,
        main.workspace_bytes,
        main.thread_workspace_bytes,
        prepare,
        sizes_of(parts.run),
    )


def using(target: Target, *functions: PrimFunc) -> Target:
    """The target with those of its features that the code of LOWERED functions uses."""
    called = (node.intrinsic for f in functions for node in found_in(f.body, Call))
    used = (i.features_on(target) for i in called if isinstance(i, TensorIntrinsic))
    return target.using(feature for features in used for feature in features)


def entry(func: PrimFunc, symbol: str) -> Entry:
    """How to call the entry of a LOWERED function."""
    workspace = plan_workspace(func)
    return Entry(
        symbol,
        parameters_of(func),
        workspace.shared_bytes,
        workspace.own_bytes,
        sizes_of(func),
    )
