"""Which types the operands of an operation may have; each refusal says the way out."""

from __future__ import annotations

from .dtype import INT64, DType
from .errors import IRError
from .number import common_type, integer_range

_COMPARISONS = {"LT": "a comparison by <", "LE": "a comparison by <="}


def truth_value_error(kind: str) -> IRError:
    """The error for a node of class `kind` that Python asks for its truth."""
    shown = _COMPARISONS.get(kind, f"'{kind}'")
    return IRError(
        f"expression: {shown} has no truth value until a kernel runs; expected no `if`, `and`, "
        "`or`, `not` or `a < b < c` of Python on it.",
        code="expr-bool",
        hints=(
            "te.select(condition, a, b) is a if condition else b.",
            "te.all_of(a, b) is and, te.any_of(a, b) or, te.logical_not(a) not, te.eq(a, b) ==.",
        ),
    )


def check_computable(operation: str, kind: DType) -> None:
    """Raise IRError for a type that is only loaded, stored and converted."""
    if kind.is_storage:
        wider = "float32" if kind.is_float else "int32"
        raise IRError(
            f"{operation}: the operands have type {kind}, which is only stored; expected a type "
            "to compute with.",
            code="expr-storage",
            hints=(f"te.cast(x, '{wider}') holds its values; te.cast(y, '{kind}') converts back.",),
        )


def check_same(operation: str, a: DType, b: DType) -> None:
    """Raise IRError unless both operands have one type."""
    if a != b:
        raise IRError(
            f"{operation}: the operands have types {a} and {b}; expected one type.",
            code="expr-types",
            hints=_conversions(a, b),
        )


def _conversions(a: DType, b: DType) -> tuple[str, ...]:
    """How operands of two types come to have one."""
    if a.scalar == b.scalar:  # they differ in lanes, which no definition has
        return ()
    common = common_type(a, b)
    kind = common or INT64
    which = "one of them" if kind in (a, b) else "both"
    most = integer_range(INT64)[1]
    loss = "" if common else f"; what lies above {most} wraps around"
    return (f"te.cast(x, '{kind}') converts {which}{loss}.",)


def check_numbers(operation: str, a: DType, b: DType) -> None:
    """Raise IRError unless both operands are numbers of one type."""
    if a is b is INT64:  # most are indices
        return
    check_same(operation, a, b)
    check_computable(operation, a)
    if a.is_bool:
        raise IRError(
            f"{operation}: the operands have type bool; expected numbers.",
            code="expr-bool-operand",
            hints=(
                "te.all_of and te.any_of combine truth values; te.cast(x, 'int32') makes 0 and 1.",
            ),
        )


def check_floats(operation: str, a: DType, b: DType) -> None:
    """Raise IRError unless both operands are floats of one type: what '/' is for."""
    check_same(operation, a, b)
    check_computable(operation, a)
    if not a.is_float:
        raise IRError(
            f"{operation}: '/' is for floats, got {a}.",
            code="expr-divide",
            hints=("use // for integers.",),
        )


def check_integers(operation: str, a: DType, b: DType) -> None:
    """Raise IRError unless both operands are integers of one type."""
    check_same(operation, a, b)
    check_computable(operation, a)
    if not a.is_integer:
        raise IRError(f"{operation}: expected integers, got {a}.", code="expr-floor")


def check_bits(operation: str, a: DType, b: DType) -> None:
    """Raise IRError unless both operands are integers of one type: their bits are meant."""
    check_same(operation, a, b)
    check_computable(operation, a)
    if not a.is_integer:
        raise IRError(
            f"{operation}: expected integers, got {a}.",
            code="expr-bits",
            hints=("te.cast(x, 'int32') converts it.",),
        )


def check_divisor(operation: str, is_zero: bool) -> None:
    """Raise IRError for a divisor that is known to be 0."""
    if is_zero:
        raise IRError(f"{operation}: the divisor is 0.", code="expr-zero")


def check_shift_count(count: int | None, kind: DType) -> None:
    """Raise IRError for a count that is known (not None) and shifts every bit out, or is
    negative.
    """
    if count is not None and not 0 <= count < kind.bits:
        raise IRError(
            f"shift: the count is {count}; expected 0 to {kind.bits - 1} for {kind}.",
            code="expr-shift",
        )


def check_function(function: str, kind: DType) -> None:
    """Raise IRError unless the argument of an elementary function is a float."""
    check_computable(f"te.{function}", kind)
    if not kind.is_float:
        raise IRError(
            f"te.{function}: the argument has type {kind}; expected a float.",
            code="te-float",
            hints=("te.cast(x, 'float32') converts it.",),
        )
