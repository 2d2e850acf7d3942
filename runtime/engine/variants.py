"""Variants of an engine: the same model, compiled for one choice of the sizes that runs decide.

A variant is the parts of an engine of its own, which has the bits of an engine for these sizes
alone. What both hold in equal bits is held once: the weights that kernels read as they are, those
that are packed alike, and the originals. Runs of one frame never overlap, so all of them have the
same scratch memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain

from ...tir.dim import Dim
from ..arrays import Array
from ..cpu.pages import side_by_side
from ..model.interface import Interface
from ..model.model import StoredModel
from ..model.report import MemoryPlan
from .context import ProgramCode
from .engine_code import Constants
from .equal_arrays import EqualArrays, repeats_one_value
from .padded_program import PaddedRows, padded_array
from .parts import EngineParts, Variant
from .size_counts import Sizes
from .sized_program import SizedProgram


def with_variants(parts: EngineParts, variants: Iterable[Variant]) -> EngineParts:
    """The parts with these variants in addition to those that they have, sharing what is equal."""
    held = [parts, *(variant.parts for variant in parts.variants)]
    run = EqualArrays(array for one in held for array in one.constants if array is not None)
    kept = EqualArrays(array for one in held for array in _originals(one))
    made, plan = list(parts.variants), parts.plan
    for variant in variants:
        constants, own = _shared(variant.parts.constants, run)
        plain, own_kept = _shared_model(variant.parts.plain, kept)
        plan = _grown(plan, variant.parts.plan, own, own_kept)
        rows = None if variant.padding is None else padded_rows(parts, variant)
        if rows is not None:
            plan = replace(plan, padding_bytes=max(plan.padding_bytes, rows.bytes))
        shared = replace(variant.parts, constants=constants, plain=plain, reference=None)
        made.append(replace(variant, parts=shared))
    return replace(parts, variants=tuple(made), plan=plan)


def prepared(parts: EngineParts) -> EngineParts:
    """The parts, with what a CPU computes of constants alone: a build leaves that where the machine
    lacks the instructions.
    """
    whole = _prepared(parts)
    if all(variant.parts.are_prepared for variant in parts.variants):
        return whole
    variants = [replace(one, parts=_prepared(one.parts)) for one in parts.variants]
    return with_variants(replace(whole, variants=()), variants)


def loaded(parts: EngineParts) -> ProgramCode:
    """What runs the parts, without their variants. Raises: EngineError, LibraryError."""
    return parts.code.load(parts.constants, parts.plain)


def fits(parts: EngineParts, variant: Variant) -> bool:
    """Whether a variant takes and gives what the parts do at its sizes."""
    interface, sizes = Interface(parts.artifact), dict(variant.sizes)
    own = Interface(variant.parts.artifact)
    known = {dim.name: dim for dim in interface.dims}
    if own.dims or known.keys() != sizes.keys():
        return False
    if any(not dim.low <= sizes[name] <= dim.high for name, dim in known.items()):
        return False
    pad = variant.padding
    if pad is not None:
        if pad.dim not in known or not max(known[pad.dim].low, 1) <= pad.least <= sizes[pad.dim]:
            return False
        if padded_rows(parts, variant) is None:
            return False
    values: Mapping[Dim, int] = {dim: sizes[name] for name, dim in known.items()}
    return interface.specs_at(values) == own.specs_at({})


def key_of(parts: EngineParts, variant: Variant) -> Sizes:
    """The sizes of a variant in the order in which runs tell them."""
    sizes = dict(variant.sizes)
    return tuple(sizes[dim.name] for dim in Interface(parts.artifact).dims)


def padded_rows(parts: EngineParts, variant: Variant) -> PaddedRows | None:
    """Where the rows lie of which a variant may get fewer than it has; None where it has padding
    and they lie nowhere.
    """
    assert variant.padding is not None
    name, count = variant.padding.dim, dict(variant.sizes)[variant.padding.dim]
    dim = next(one for one in Interface(parts.artifact).dims if one.name == name)
    opened, closed = parts.artifact, variant.parts.artifact
    ends = [
        [padded_array(one.shape, other, dim, count) for one, other in zip(*pair, strict=True)]
        for pair in ((opened.inputs, closed.inputs), (opened.outputs, closed.outputs))
        if len(pair[0]) == len(pair[1])
    ]
    known = [[one for one in arrays if one is not None] for arrays in ends]
    if len(ends) < 2 or known != ends:
        return None
    return PaddedRows(count, tuple(known[0]), tuple(known[1]))


def let_serve(program: SizedProgram, parts: EngineParts, variant: Variant) -> None:
    """Load a variant of the parts, and let it serve the runs that begin from now on. Raises:
    EngineError, LibraryError.
    """
    code, sizes = loaded(variant.parts), key_of(parts, variant)
    program.serve(sizes, code)
    rows = None if variant.padding is None else padded_rows(parts, variant)
    if variant.padding is not None and rows is not None:
        program.serve_padded(sizes, variant.padding, code, rows)


def serving(parts: EngineParts, sizes: Sizes) -> EngineParts:
    """The parts that serve runs of these sizes, in the order in which runs tell them: those of a
    variant, if there is one.
    """
    dims = [dim.name for dim in Interface(parts.artifact).dims]
    told = dict(zip(dims, sizes, strict=True))
    fitting = [
        one
        for one in parts.variants
        if all(least <= told[name] <= most for name, least, most in one.widths)
    ]
    return min(fitting, key=lambda one: one.sizes).parts if fitting else parts


def _prepared(parts: EngineParts) -> EngineParts:
    if parts.are_prepared:
        return parts
    return replace(parts, constants=parts.code.prepared(parts.constants))


def _originals(parts: EngineParts) -> Iterable[Array]:
    """The original weights of the model before and after the passes."""
    models = (one for one in (parts.plain, parts.reference) if one is not None)
    arrays = chain.from_iterable(model.constants.values() for model in models)
    return (array for array in arrays if not repeats_one_value(array))


def _shared(constants: Constants, known: EqualArrays) -> tuple[Constants, int]:
    """The constants, known ones in place of those that equal them, the others in memory of their
    own, known from now on; the bytes of these.
    """
    found = [None if array is None else known.find(array) for array in constants]
    own = [n for n, array in enumerate(constants) if array is not None and found[n] is None]
    arrays: list[Array] = [array for n in own if (array := constants[n]) is not None]
    copies = side_by_side([(array.shape, array.dtype) for array in arrays])
    for position, array, copy in zip(own, arrays, copies, strict=True):
        copy[...] = array
        found[position] = known.first(copy)
    return tuple(found), sum(array.nbytes for array in arrays)


def _shared_model(model: StoredModel | None, known: EqualArrays) -> tuple[StoredModel | None, int]:
    """The model with known arrays in place of those that equal them; the bytes of the others."""
    if model is None:
        return None, 0
    constants, own = dict(model.constants), 0
    for name, array in constants.items():
        if not repeats_one_value(array):
            constants[name] = known.first(array)
            own += array.nbytes if constants[name] is array else 0
    return StoredModel(model.text, constants), own


def _grown(plan: MemoryPlan, added: MemoryPlan, own: int, own_kept: int) -> MemoryPlan:
    """The plan of an engine with one more variant, whose runs have the memory of all runs."""
    return replace(
        plan,
        weights_bytes=plan.weights_bytes + own,
        arena_bytes=max(plan.arena_bytes, added.arena_bytes),
        workspace_bytes=max(plan.workspace_bytes, added.workspace_bytes),
        thread_workspace_bytes=max(plan.thread_workspace_bytes, added.thread_workspace_bytes),
        kept_bytes=plan.kept_bytes + own_kept,
    )
