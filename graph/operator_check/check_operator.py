"""tw.check_operator: an operator is tried on inputs, and all that is wrong is said at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ...tir.dtype import dtype
from ...tir.number import integer_range
from ...tir.sizes import closed_shape, is_closed
from ..errors import OperatorError
from ..ops.base import Operator
from ..types import Array, TensorType
from .plain_value import copies_found, declared_found, equality_found, frozen_found, hash_found
from .promises import (
    commutative_found,
    joined_found,
    permuted_found,
    role_found,
    unchanged_found,
    view_found,
)
from .report import OperatorFinding, OperatorReport
from .subject import REFUSALS, OperatorCase, guarded
from .values import (
    folding_found,
    inputs_found,
    kernel_found,
    open_sizes_found,
    precision_found,
    refusals_found,
    types_found,
    values_found,
)

Inputs = Sequence[Array | TensorType]
_OF_THE_VALUE = (declared_found, frozen_found, hash_found, equality_found, copies_found)
_OF_A_CASE = (
    folding_found,
    refusals_found,
    role_found,
    view_found,
    unchanged_found,
    commutative_found,
    permuted_found,
    joined_found,
)
_SMALL = 100  # integers that are drawn are below


def check_operator(
    operator: Operator | type[Operator], cases: Iterable[Inputs], *, seed: int = 0
) -> OperatorReport:
    """Try what an operator says of itself, and say all that is wrong at once, each with a hint.

        report = tw.check_operator(Mish(0.5), [(x,), (tw.TensorType("float32", (2, 3)),)])
        assert report, report

    Held against each other are, on each case: what `infer` says and what `reference` gives, in each
    type of floats that it takes; `express` and `reference`, in float64, on the data of the case
    and, where it takes floats alone, on random data and among NaN and infinities, and with each
    size decided by a run; the plain loops and their proof; what its role, `fold_splats`,
    `at_precision`, `permute_axes` and the like promise. Inputs that do not fit are refused by a
    ModelError, inputs are left as they are, and results are the same each time. The operator is
    frozen, hashed and pickled. Nothing is compiled.

    operator: a value of your class, or the class where its fields have defaults.
    cases: for each the inputs, arrays or the types of arrays that are drawn. Sizes that have
    nothing to do with each other are different numbers.
    seed: of what is drawn.
    Raises: OperatorError where `cases` are none.
    """
    op = _value(operator)
    listed = [_case(op, n, given, seed) for n, given in enumerate(cases)]
    if not listed:
        raise OperatorError(
            f"check_operator: there are no cases for {op!r}; expected one at least.",
            code="operator-cases",
            hints=('tw.check_operator(op, [(tw.TensorType("float32", (2, 3)),)])',),
        )
    findings, notes = list[OperatorFinding](), list[str]()
    for found in _OF_THE_VALUE:
        findings += found(op)
    for case in listed:
        findings += _of_case(case, seed, notes)
    return OperatorReport(
        repr(op), tuple(map(str, listed)), tuple(dict.fromkeys(findings)), tuple(notes)
    )


def _of_case(case: OperatorCase, seed: int, notes: list[str]) -> Iterator[OperatorFinding]:
    try:
        case.op.infer(case.types)
    except REFUSALS as refusal:
        hint = "cases are inputs that it accepts; those that it refuses are made of them."
        yield case.finding("case", f"infer refuses it: {refusal.message}", hint)
        return
    except Exception:
        pass  # the checks say so
    for first in (types_found, inputs_found):
        found = list(guarded(first(case)))
        yield from found
        if found:  # nothing else can be compared
            return
    for check in _OF_A_CASE:
        yield from guarded(check(case))
    rng = np.random.default_rng(seed)
    for one in (
        precision_found(case),
        values_found(case, rng),
        kernel_found(case),
        open_sizes_found(case, notes),
    ):
        found = list(guarded(one))
        yield from found
        if found:  # what comes would say the same
            return


def _value(operator: object) -> Operator:
    """An operator, of a class the one with its defaults. Raises: OperatorError."""
    if isinstance(operator, Operator):
        return operator
    if isinstance(operator, type) and issubclass(operator, Operator):
        try:
            return operator()
        except TypeError as error:
            raise OperatorError(
                f"check_operator: {operator.__name__} cannot be made without fields: {error}.",
                code="operator-value",
                hints=(f"tw.check_operator({operator.__name__}(...), cases)",),
            ) from error
    raise OperatorError(
        f"check_operator: the operator is {operator!r}; expected a value of a subclass of "
        "tw.Operator.",
        code="operator-kind",
    )


def _case(op: Operator, number: int, given: object, seed: int) -> OperatorCase:
    """A case as arrays. Raises: OperatorError."""
    fits = isinstance(given, tuple | list) and all(
        isinstance(one, np.ndarray) or (isinstance(one, TensorType) and is_closed(one.shape))
        for one in given
    )
    if not fits:
        kind = type(given).__name__
        raise OperatorError(
            f"check_operator: case {number} is a {kind}: {given!r:.100}; expected a tuple of the "
            "inputs, arrays or TensorTypes whose sizes are numbers.",
            code="operator-case",
            hints=("(x,) is the case of one input x.",),
        )
    assert isinstance(given, tuple | list)
    rng = np.random.default_rng([seed, number])
    arrays = (_drawn(one, rng) if isinstance(one, TensorType) else one for one in given)
    return OperatorCase(op, tuple(arrays))


def _drawn(type_: TensorType, rng: np.random.Generator) -> Array:
    """Random numbers of a type; integers are small."""
    kind, shape = dtype(type_.dtype), closed_shape(type_.shape)
    if kind.is_float:
        drawn: Array = rng.standard_normal(shape).astype(kind.numpy)
        return drawn
    low, high = integer_range(kind)
    return rng.integers(max(low, -_SMALL), min(high, _SMALL), shape, endpoint=True).astype(
        kind.numpy
    )
