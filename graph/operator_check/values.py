"""What an operator computes: its shapes and types, its expression beside its reference, at sizes
that a run decides too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...driver.build import prove
from ...schedule.schedule import Schedule
from ...schedule.verdict import PROVED
from ...tir.analysis.specialise import specialise
from ...tir.dim import Dim
from ...tir.errors import TilewrightError
from ...tir.func import PrimFunc
from ...tir.reference.evaluate import evaluate as evaluate_function
from ...tir.sizes import shape_in, size_in, size_of
from ...tir.te import te
from ...tir.text.canonical import workload_key
from ..ir.at_sizes import operator_at
from ..ops.base import Operator
from ..plan.check_functions import differences
from ..reference.reference import evaluate
from ..types import FLOATS, Array, Splat, TensorType, numpy_type, type_of
from .report import OperatorFinding
from .subject import REFUSALS, OperatorCase

_LARGER = 3  # by how much a size that a run decides is tried beyond that of the case
_STRANGE = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30)


def types_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """`infer` says what `reference` gives, in every type of floats that it accepts."""
    yield from _types_found(case)
    kinds = {type_.dtype for type_ in case.types if type_.is_float}
    for name in FLOATS if kinds else ():
        arrays = [
            array.astype(numpy_type(name)) if type_.is_float else array
            for array, type_ in zip(case.arrays, case.types, strict=True)
        ]
        other = case.with_arrays(arrays)
        if {name} != kinds and not _is_refused(other):
            yield from _types_found(other)


def _is_refused(case: OperatorCase) -> bool:
    try:
        case.op.infer(case.types)
    except REFUSALS:
        return True
    return False


def _types_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    said: object = case.inferred()
    made: object = case.computed()
    hint = "infer gives a tuple of the types of what reference gives, an array for each output."
    if not isinstance(said, tuple) or not all(isinstance(one, TensorType) for one in said):
        yield case.finding("types", f"infer gives {said!r}", hint)
        return
    if not isinstance(made, tuple) or not all(isinstance(a, np.ndarray | np.generic) for a in made):
        kinds = [type(one).__name__ for one in made] if isinstance(made, tuple) else made
        yield case.finding("types", f"reference gives {kinds!r}", hint)
        return
    counts = {case.op.output_count, len(said), len(made)}
    if len(counts) > 1:
        problem = f"output_count is {case.op.output_count}, infer gives {len(said)} types and "
        yield case.finding("types", f"{problem}reference {len(made)} arrays", hint)
        return
    for n, (type_, array) in enumerate(zip(said, made, strict=True)):
        found = TensorType(array.dtype.name, array.shape)
        if found != type_:
            problem = f"output {n} is {found}, and infer says {type_}"
            yield case.finding("types", problem, hint)


def inputs_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """`reference` leaves its inputs as they are, and gives the same results every time; so do
    `infer` and `express`.
    """
    copies = [array.copy() for array in case.arrays]
    first = case.call("reference", lambda: case.op.compute(*copies))
    kept = [array.copy() for array in first]
    for n, (before, after) in enumerate(zip(case.arrays, copies, strict=True)):
        if before.tobytes() != after.tobytes():
            hint = "compute in an array of its own: np.add(x, 1) for x += 1."
            yield case.finding("inputs", f"reference writes to its input {n}", hint)
            return
    hint = "results depend on fields and inputs alone; random numbers are an input."
    second = case.computed()
    if any(a.tobytes() != b.tobytes() for a, b in zip(kept, second, strict=True)):
        yield case.finding("deterministic", "reference gives other results the second time", hint)
    if case.inferred() != case.inferred():
        yield case.finding("deterministic", "infer gives other types the second time", hint)
    if workload_key(case.function()) != workload_key(case.function()):
        yield case.finding("deterministic", "express gives another function each time", hint)


def values_found(case: OperatorCase, rng: np.random.Generator) -> Iterator[OperatorFinding]:
    """`express` computes what `reference` does, in float64: on the data of the case, on random
    data, and among NaN, infinities and numbers that are large.
    """
    func, graph = case.function(), case.graph()
    shapes = [tuple(buffer.shape) for buffer in func.outputs[: case.op.output_count]]
    said = [type_.shape for type_ in case.inferred()]
    if shapes != said:
        problem = f"express gives the shapes {shapes}, and infer says {said}"
        yield case.finding("values", problem, "te.compute((...), ...) gives a tensor its shape.")
        return
    for title, one in _data(case, rng):
        drawn = dict(zip(graph.inputs, one.arrays, strict=True))
        judged, _ = case.call("reference or express", lambda d=drawn: differences(graph, func, d))  # type: ignore[misc]
        for n, (error, allowed) in enumerate(judged):
            if error > allowed:
                place = _furthest(one, func, n)
                yield case.finding(
                    "values",
                    f"output {n} of express differs from reference by {error:.3g} of the largest "
                    f"element on {title}; rounding explains {allowed:.3g}{place}",
                    "reference is the meaning; express says the same, element by element.",
                )
                return


def _data(case: OperatorCase, rng: np.random.Generator) -> Iterator[tuple[str, OperatorCase]]:
    """What an operator is tried on; where it reads integers the case's own data alone."""
    yield "the data of the case", case
    if not case.has_floats_alone:
        return
    normal = [rng.standard_normal(array.shape).astype(array.dtype) for array in case.arrays]
    yield "random data", case.with_arrays(normal)
    yield "positive data", case.with_arrays([np.abs(array) for array in normal])
    strange = [_with_strange(array, rng) for array in normal]
    yield "data with NaN and infinities", case.with_arrays(strange)


def _with_strange(array: Array, rng: np.random.Generator) -> Array:
    """One in four elements is one that computers treat in a way of its own."""
    with np.errstate(over="ignore"):
        strange = rng.choice(_STRANGE, array.shape).astype(array.dtype)
    mixed: Array = np.where(rng.random(array.shape) < 0.25, strange, array)
    return mixed


def _furthest(case: OperatorCase, func: PrimFunc, number: int) -> str:
    """Where an output is furthest off, with both values."""
    graph = case.graph()
    drawn = dict(zip(graph.inputs, case.arrays, strict=True))
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, drawn)[graph.outputs[number]]
        given = dict(zip((p.name for p in func.parameters), case.arrays, strict=False))
        results = evaluate_function(func, given, "float64")
        got = results[func.outputs[number].name].reshape(wanted.shape)
        off = np.abs(wanted.astype(np.float64) - got.astype(np.float64))
    off = np.where(np.isnan(off) & ~(np.isnan(wanted) & np.isnan(got)), np.inf, np.nan_to_num(off))
    if not off.size:
        return ""
    at = np.unravel_index(int(np.argmax(off)), off.shape)
    listed = ", ".join(str(int(i)) for i in at)
    return f"; at [{listed}] it is {got[at]:.6g}, expected {wanted[at]:.6g}"


def kernel_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """The plain loops of the function are proved to compute it."""
    yield from _proved(case, case.function())


def _proved(case: OperatorCase, func: PrimFunc) -> Iterator[OperatorFinding]:
    verdict = case.call("express", lambda: prove(Schedule(func), "python"))
    if verdict.status != PROVED:
        said = "; ".join(line.strip() for line in str(verdict).splitlines()[1:2])
        hint = "where a run decides sizes, facts says what ties those of inputs and results."
        yield case.finding("kernel", f"its loops are {verdict.status}: {said}", hint)


def folding_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """What `fold_splats` says of constants with one number everywhere is what they give."""
    if not case.arrays or case.op.output_count > 1:
        return
    for number in (0, 1):
        splats = [Splat(number, type_.dtype, array.shape) for type_, array in _typed(case)]
        said = case.call("fold_splats", lambda s=splats: case.op.fold_splats(s))  # type: ignore[misc]
        if said is None:
            continue
        full = case.with_arrays([np.array(splat.array()) for splat in splats])
        (made,) = full.computed()
        if not np.array_equal(made, np.full_like(made, said), equal_nan=made.dtype.kind == "f"):
            yield case.finding(
                "folding",
                f"fold_splats says {said!r} of inputs that are {number} everywhere; reference "
                f"gives {made.reshape(-1)[0]!r}",
                "fold_splats gives None where it does not know; the default is right.",
            )
            return


def _typed(case: OperatorCase) -> Iterator[tuple[TensorType, Array]]:
    yield from zip(case.types, case.arrays, strict=True)


def precision_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """`at_precision` gives the operator that computes floats in another type: checks compute in
    float64.
    """
    if not any(type_.is_float for type_ in case.types):
        return
    op = case.call("at_precision", lambda: case.op.at_precision("float64"))
    wide = [array.astype(np.float64) if _is_float(array) else array for array in case.arrays]
    made = OperatorCase(op, tuple(wide)).computed()
    for n, (type_, array) in enumerate(zip(case.inferred(), made, strict=True)):
        if type_.is_float and array.dtype != np.float64:
            yield case.finding(
                "precision",
                f"output {n} of at_precision('float64') is {array.dtype} where inputs are float64",
                "reference computes in the type of its inputs, and at_precision changes fields "
                "that name a type of floats: checks compute in float64.",
            )
            return


def _is_float(array: Array) -> bool:
    return type_of(array).is_float


def refusals_found(case: OperatorCase) -> Iterator[OperatorFinding]:
    """Inputs that do not fit are refused by a ModelError, or accepted; nothing else is raised."""
    for title, types in _misfits(case.types):
        try:
            case.op.infer(types)
        except REFUSALS:
            continue
        except Exception as error:
            yield case.finding(
                "refusals",
                f"infer of {title} raises {type(error).__name__}: {error}",
                "infer refuses what does not fit by a ModelError: check_arity, check_float and "
                "refuse of tilewright.graph.ops.base raise one.",
            )
            return


def _misfits(types: tuple[TensorType, ...]) -> Iterator[tuple[str, tuple[TensorType, ...]]]:
    """Inputs that may not fit, with what is odd about them."""
    yield "no inputs", ()
    yield "one input more", (*types, TensorType("float32", (2, 3)))
    if len(types) > 1:
        yield "one input less", types[:-1]
    for n, type_ in enumerate(types):
        others = [TensorType(name, type_.shape) for name in ("bool", "int32", "float64")]
        others += [TensorType(type_.dtype, ()), TensorType(type_.dtype, (*type_.shape, 2))]
        others += [
            TensorType(type_.dtype, (*type_.shape[:axis], size + 1, *type_.shape[axis + 1 :]))
            for axis, size in enumerate(type_.shape)
        ]
        for other in others:
            yield f"input {n} as {other}", (*types[:n], other, *types[n + 1 :])


def open_sizes_found(case: OperatorCase, notes: list[str]) -> Iterator[OperatorFinding]:
    """Where a size is decided by a run, the function at any choice is that of closed sizes. Some
    operators take such a size from a least one on.
    """
    for number in sorted({int(n) for array in case.arrays for n in array.shape if n > 1}):
        refusals = list[str]()
        for low in dict.fromkeys((1, (number + 1) // 2, number)):
            dim = Dim("n", low=low, high=number + _LARGER + 2, typical=number)
            types = tuple(_opened(type_, number, dim) for type_ in case.types)
            try:
                made, func = case.op.infer(types), _function(case.op, types)
            except (*REFUSALS, TilewrightError) as refusal:
                refusals.append(refusal.message)
                continue
            except Exception as error:
                yield case.finding(
                    "open sizes",
                    f"where a run decides the sizes {number}, it raises {type(error).__name__}: "
                    f"{error}",
                    "a size may be a Size in place of a number: do not ask int, range or NumPy of "
                    "it, or refuse it.",
                )
                return
            yield from _proved(case, func)
            yield from _at_choices(case, dim, types, made, func)
            break
        else:
            notes.append(f"sizes {number} of {case} must be numbers: {refusals[0]}")


def _opened(type_: TensorType, number: int, dim: Dim) -> TensorType:
    """The type with a size that a run decides in place of a number."""
    return TensorType(type_.dtype, tuple(size_of(dim) if n == number else n for n in type_.shape))


def _function(op: Operator, types: tuple[TensorType, ...]) -> PrimFunc:
    """The function of an operator whose sizes a run decides."""
    given = [te.placeholder(t.shape, t.dtype, name=f"x{n}") for n, t in enumerate(types)]
    made = op.express(*given, name="y")
    told = {dim for tensor in given for dim in tensor.dims}
    sizes = [dim for dim in te.dims_of_tensors(*made) if dim not in told]
    return replace(te.func(*given, *made, name="f", sizes=sizes), facts=op.facts(types))


def _at_choices(
    case: OperatorCase,
    dim: Dim,
    types: tuple[TensorType, ...],
    made: tuple[TensorType, ...],
    func: PrimFunc,
) -> Iterator[OperatorFinding]:
    number = dim.usual
    hint = "sizes of inputs are asked of them (shape_of(tensor)), not kept or assumed."
    for chosen in dict.fromkeys((number, number + _LARGER, dim.low)):
        values = {dim: chosen}
        arrays = [
            np.resize(array, shape_in(type_.shape, values)).astype(array.dtype)
            for array, type_ in zip(case.arrays, types, strict=True)
        ]
        closed = OperatorCase(operator_at(case.op, values), tuple(arrays))
        if chosen != number and (not case.has_floats_alone or _is_refused(closed)):
            continue
        wanted = [type_.shape for type_ in closed.inferred()]
        said = [shape_in(type_.shape, values) for type_ in made]
        if said != wanted:
            problem = f"of {closed} infer says {wanted}; where a run decides the sizes, {said}"
            yield case.finding("open sizes", problem, hint)
            return
        at = specialise(func, {d: size_in(size_of(d), values) for d in func.dims})
        graph = closed.graph()
        drawn = dict(zip(graph.inputs, closed.arrays, strict=True))
        judged, _ = closed.call("express", lambda g=graph, f=at, d=drawn: differences(g, f, d))  # type: ignore[misc]
        for n, (error, allowed) in enumerate(judged):
            if error > allowed:
                problem = (
                    f"output {n} of the function whose sizes {number} a run decides differs by "
                    f"{error:.3g} of the largest element from reference of {closed}; rounding "
                    f"explains {allowed:.3g}"
                )
                yield case.finding("open sizes", problem, hint)
                return
