"""`check_operator` finds what is wrong with an operator, each by a finding of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.graph.errors import OperatorError
from tilewright.graph.ops.base import (
    JoinableAxes,
    Operator,
    Permutation,
    Permuted,
    check_arity,
    check_float,
    shape_of,
)
from tilewright.graph.ops.reduction import divided
from tilewright.graph.types import Array, Shape, Splat, TensorType
from tilewright.tir.expr import Expr

F32 = TensorType("float32", (3, 4))


@tw.operator("tests.check::Damped")
class Damped(tw.Elementwise):
    """An honest operator: x / (1 + by * x * x)."""

    by: float = 0.5

    arity = (1, 1)
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (x / (x * x * self.by + 1.0),)  # type: ignore[operator]

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return x / (x * x * self.by + 1.0)


@tw.operator("tests.check::Means")
class Means(tw.Operator):
    """An honest one that is not elementwise: the means of rows."""

    role = tw.OperatorRole.GENERAL

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        return (TensorType(types[0].dtype, types[0].shape[:-1]),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (x.mean(-1, dtype=x.dtype),)

    def express(self, *tensors: te.Tensor, name: str) -> tuple[te.Tensor, ...]:
        (x,) = tensors
        *rows, size = shape_of(x)
        k = te.reduce_axis(size, name="k")
        total = te.compute(rows, lambda *i: te.sum(x[(*i, k)], axis=k), name=f"{name}_sum")
        return (divided(total, self.count(size), name),)

    def count(self, size: Any) -> Any:
        """By how much sums are divided."""
        return size


# -- one fault in each ---------------------------------------------------------------------------


@tw.operator("tests.check::Untyped")
class Untyped(Damped):
    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (TensorType("float64", types[0].shape),)


@tw.operator("tests.check::Narrow")
class Narrow(Damped):
    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (y,) = Damped.reference(self, *(a.astype(np.float32) for a in arrays))
        return (y.astype(arrays[0].dtype),)


@tw.operator("tests.check::Otherwise")
class Otherwise(Damped):
    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return te.select(x < 0, x, Damped.element(self, x))


@tw.operator("tests.check::Unbounded")
class Unbounded(Damped):
    def element(self, *elements: Expr) -> Expr:
        """Wrong where x is NaN, or large."""
        (x,) = elements
        return te.select(x < 1e20, Damped.element(self, x), te.const(1, x.dtype))


@tw.operator("tests.check::Fixed")
class Fixed(Means):
    def count(self, size: Any) -> Any:
        return 4


@tw.operator("tests.check::Untied")
class Untied(Means):
    """Sums of neighbours, of which nothing says that there are fewer than elements."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        *rows, size = types[0].shape or (0,)
        if not size >= 2:
            raise OperatorError("Untied: it takes two columns.", code="untied")
        return (TensorType(types[0].dtype, (*rows, size - 1)),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (x[..., 1:] + x[..., :-1],)  # type: ignore[operator]

    def express(self, *tensors: te.Tensor, name: str) -> tuple[te.Tensor, ...]:
        (x,) = tensors
        *rows, size = shape_of(x)
        shape = (*rows, size - 1)
        return (te.compute(shape, lambda *i: x[(*i[:-1], i[-1] + 1)] + x[i], name=name),)


@tw.operator("tests.check::Thawed")
class Thawed(Damped):
    pass


Thawed.__setattr__ = object.__setattr__  # type: ignore[method-assign, assignment]


@tw.operator("tests.check::Listed")
class Listed(Damped):
    steps: list[int] = field(default_factory=list)


@tw.operator("tests.check::Alike")
class Alike(Damped):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike)

    def __hash__(self) -> int:
        return 0


@tw.operator("tests.check::Silent")
class Silent(Damped):
    def __repr__(self) -> str:
        return "Silent()"


@tw.operator("tests.check::Carrying")
class Carrying(Damped):
    made: Callable[[float], float] = field(default=lambda x: x)


@tw.operator("tests.check::Careless")
class Careless(Damped):
    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        return (types[0],)


_TIMES = itertools.count()


@tw.operator("tests.check::Restless")
class Restless(Damped):
    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (arrays[0] + np.asarray(next(_TIMES), arrays[0].dtype),)  # type: ignore[operator]


@tw.operator("tests.check::Writing")
class Writing(Damped):
    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        found = Damped.reference(self, x)
        x *= 2  # type: ignore[operator]
        return found


@tw.operator("tests.check::Folding")
class Folding(Damped):
    def fold_splats(self, splats: Any) -> float:
        return 1.0


@tw.operator("tests.check::Rows")
class Rows(Means):
    """Columns, in truth."""

    role = tw.OperatorRole.ROWWISE

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        return types

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (x - x.mean(0, keepdims=True, dtype=x.dtype),)

    def express(self, *tensors: te.Tensor, name: str) -> tuple[te.Tensor, ...]:
        (x,) = tensors
        rows, size = shape_of(x)
        k = te.reduce_axis(rows, name="k")
        total = te.compute((size,), lambda j: te.sum(x[k, j], axis=k), name=f"{name}_sum")
        return (te.compute(shape_of(x), lambda i, j: x[i, j] - total[j] / rows, name=name),)


@tw.operator("tests.check::Turned")
class Turned(Means):
    def permute_axes(self, permutation: Permutation) -> Permuted | None:
        return Permuted(self, tuple(range(len(permutation) - 1)))


@tw.operator("tests.check::Joined")
class Joined(Means):
    """It says that its axes may be joined, and sums the last one."""

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        return types

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (x - x.mean(-1, keepdims=True, dtype=x.dtype),)

    def express(self, *tensors: te.Tensor, name: str) -> tuple[te.Tensor, ...]:
        (x,) = tensors
        (mean,) = Means.express(self, x, name=f"{name}_mean")
        return (te.compute(shape_of(x), lambda *i: x[i] - mean[i[:-1]], name=name),)

    def joinable_axes(self, shape: Shape) -> JoinableAxes | None:
        return JoinableAxes((True,) * len(shape), tuple(range(len(shape))))


@tw.operator("tests.check::Rooted")
class Rooted(Means):
    """The root of the smallest element, in rows most of which have a negative one."""

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (np.sqrt(arrays[0].min(-1)),)

    def express(self, *tensors: te.Tensor, name: str) -> tuple[te.Tensor, ...]:
        (x,) = tensors
        *rows, size = shape_of(x)
        k = te.reduce_axis(size, name="k")
        least = te.compute(rows, lambda *i: te.min(x[(*i, k)], axis=k), name=f"{name}_least")
        return (te.compute(rows, lambda *i: te.sqrt(least[i]) * 2.0, name=name),)


@tw.operator("tests.check::Less")
class Less(tw.Elementwise):
    """Not commutative, and 1 is no neutral number."""

    commutative = True
    takes = "float"

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        a, b = arrays
        return (a - b,)  # type: ignore[operator]

    def element(self, *elements: Expr) -> Expr:
        a, b = elements
        return a - b


@tw.operator("tests.check::Plus")
class Plus(Less):
    commutative = False
    neutral = 1


@tw.operator("tests.check::Seen")
class Seen(Damped):
    def is_view(self, types: tuple[TensorType, ...]) -> bool:
        return True


@tw.operator("tests.check::Typed")
class Typed(Damped):
    to: str = "float32"

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 1, 1)
        check_float(self, types)
        return (TensorType(self.to, types[0].shape),)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (Damped.reference(self, *arrays)[0].astype(self.to),)


@tw.operator("tests.check::Failing")
class Failing(Damped):
    def element(self, *elements: Expr) -> Expr:
        raise KeyError("lost")


class Undeclared(Damped):
    pass


FAULTS: dict[type[Operator], set[str]] = {
    Untyped: {"types"},
    Narrow: {"values"},
    Otherwise: {"values"},
    Unbounded: {"values"},
    Fixed: {"open sizes"},
    Untied: {"kernel"},
    Thawed: {"frozen"},
    Listed: {"hash"},
    Alike: {"equality"},
    Silent: {"text"},
    Carrying: {"pickle"},
    Careless: {"refusals"},
    Restless: {"deterministic"},
    Writing: {"inputs"},
    Folding: {"folding"},
    Rows: {"role"},
    Turned: {"permuted axes"},
    Joined: {"joined axes"},
    Less: {"commutative"},
    Plus: {"unchanged input"},
    Seen: {"view"},
    Typed: {"precision"},
    Failing: {"raises"},
    Undeclared: {"declared"},
}


@pytest.mark.parametrize("kind", [Damped, Means])
def test_nothing_is_found_of_an_honest_operator(kind: type[Operator]) -> None:
    x = np.random.default_rng(1).standard_normal((2, 5), np.float32)
    report = tw.check_operator(kind, [(F32,), (x,)])
    assert report, report
    assert str(report) == f"{kind()!r}, 2 cases: nothing found"
    report.raise_for_findings()


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_is_found_by_a_finding_of_its_own(kind: type[Operator]) -> None:
    inputs = (F32, F32) if issubclass(kind, Less) else (F32,)
    report = tw.check_operator(kind, [inputs])
    assert {finding.kind for finding in report.findings} == FAULTS[kind], report
    assert not report


def test_all_is_said_at_once_with_hints() -> None:
    report = tw.check_operator(Listed, [(F32,)])
    assert str(report) == (
        "Listed(by=0.5, steps=[]), 1 case: 1 finding\n"
        "  hash: hash raises TypeError: unhashable type: 'list'\n"
        "    Hint: fields are numbers, texts and tuples of them: a tuple in place of a list."
    )
    with pytest.raises(OperatorError) as caught:
        report.raise_for_findings()
    assert str(caught.value).splitlines()[:2] == [
        "OperatorError: check_operator: Listed(by=0.5, steps=[]) has 1 findings: hash. "
        "[operator-findings]",
        "  hash: hash raises TypeError: unhashable type: 'list'",
    ]


def test_a_wrong_value_is_shown_with_its_place() -> None:
    report = tw.check_operator(Otherwise, [(np.array([1.0, -2.0], np.float32),)])
    (finding,) = report.findings
    assert finding.problem == (
        "output 0 of express differs from reference by 2 of the largest element on the data of "
        "the case; rounding explains 1e-11; at [1] it is -2, expected -0.666667"
    )
    assert finding.case == "float32[2]"


@pytest.mark.parametrize(
    ("kind", "shape", "data"),
    [(Otherwise, (3, 4), "random data"), (Rooted, (2, 40), "positive data")],
)
def test_other_data_than_that_of_a_case_is_drawn(
    kind: type[Operator], shape: tuple[int, ...], data: str
) -> None:
    """Zeros show nothing."""
    report = tw.check_operator(kind, [(np.zeros(shape, np.float32),)])
    (finding,) = report.findings
    assert f"of the largest element on {data}; rounding explains" in finding.problem


def test_sizes_that_must_be_numbers_are_noted() -> None:
    @tw.operator("tests.check::Four")
    class Four(Means):
        def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
            if types and types[0].shape and types[0].shape[-1] != 4:
                raise OperatorError("Four: it takes four columns.", code="four")
            return Means.infer(self, types)

    report = tw.check_operator(Four, [(F32,)])
    assert {finding.kind for finding in report.findings} <= {"pickle"}  # it is a local class
    assert report.notes == (
        "sizes 4 of float32[3, 4] must be numbers: Four: it takes four columns.",
    )


def test_splats_of_ours_fold() -> None:
    assert Damped().fold_splats([Splat(2.0, "float32", (3,))]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("operator", "cases", "text"),
    [
        (
            Damped,
            [],
            "OperatorError: check_operator: there are no cases for Damped(by=0.5); expected one "
            "at least. [operator-cases]\n"
            '  Hint: tw.check_operator(op, [(tw.TensorType("float32", (2, 3)),)])',
        ),
        (
            Damped,
            [F32],
            "OperatorError: check_operator: case 0 is a TensorType: TensorType(dtype='float32', "
            "shape=(3, 4)); expected a tuple of the inputs, arrays or TensorTypes whose sizes are "
            "numbers. [operator-case]\n"
            "  Hint: (x,) is the case of one input x.",
        ),
        (
            3,
            [(F32,)],
            "OperatorError: check_operator: the operator is 3; expected a value of a subclass of "
            "tw.Operator. [operator-kind]",
        ),
    ],
)
def test_what_cannot_be_tried_is_refused(operator: Any, cases: Any, text: str) -> None:
    with pytest.raises(OperatorError) as caught:
        tw.check_operator(operator, cases)
    assert str(caught.value) == text


def test_a_class_with_fields_wants_a_value() -> None:
    @dataclass(frozen=True)
    class Needy(Damped):
        much: float = field(kw_only=True)

    with pytest.raises(OperatorError) as caught:
        tw.check_operator(Needy, [(F32,)])
    assert str(caught.value) == (
        "OperatorError: check_operator: Needy cannot be made without fields: "
        "test_a_class_with_fields_wants_a_value.<locals>.Needy.__init__() missing 1 required "
        "keyword-only argument: 'much'. [operator-value]\n"
        "  Hint: tw.check_operator(Needy(...), cases)"
    )


def test_a_case_that_is_refused_is_a_finding() -> None:
    report = tw.check_operator(Damped, [(TensorType("int32", (2,)),)])
    (finding,) = report.findings
    assert finding.kind == "case"
    assert "expected float16, bfloat16, float32 or float64, got int32" in finding.problem
