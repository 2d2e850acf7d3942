"""What an operator is: a frozen value with a shape rule, a NumPy meaning, a tensor expression.

The three stand side by side in one file per family. `reference` is the meaning: it computes in the
dtype of its inputs, so that called with float64 it is the oracle. `express` says the same in the
language of kernels.

What passes ask of an operator is a property of its class, too, and nobody keeps a list of
operators: the `role` says what fusion, layouts and expressions may take for granted, and each
method below it has an answer that is right for an operator of which nothing more is known. A class
without what its role needs is refused when it is defined.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, Literal, NoReturn

import numpy as np

from ...tir.dtype import FLOAT32, INT32, DType
from ...tir.expr import Expr
from ...tir.sizes import largest, size_of
from ...tir.te.te import Tensor
from ..errors import ModelError, OperatorError
from ..types import FLOATS, Array, Shape, Splat, TensorType, is_only_stored, numpy_type, type_of

Layout = Literal["NCHW", "NHWC"]
Number = float | int | bool
Permutation = tuple[int, ...]
Runs = tuple[tuple[int, ...], ...]


class OperatorRole(Enum):
    """Of which elements of the inputs an operator makes one element of its result. One with several
    outputs is GENERAL: what the other roles promise is a promise about the only result.
    """

    ELEMENTWISE = auto()  # of those that NumPy's broadcasting aligns with it
    ROWWISE = auto()  # of its row of the first input, which has the shape of the result
    MOVEMENT = auto()  # of one, which stays as it is; or of none: it is the same in every call
    SPATIAL = auto()  # of those near it, in data with channels and spatial axes
    GENERAL = auto()  # of any: a product, a reduction, a ranking, a scan


# what a class of each role has besides
_NEEDED: dict[OperatorRole, tuple[str, ...]] = {
    OperatorRole.ELEMENTWISE: ("element",),
    OperatorRole.MOVEMENT: ("rearranges",),
    OperatorRole.SPATIAL: ("layout", "channels_last", "operands_last", "in_place"),
}


@dataclass(frozen=True, slots=True)
class ReferenceWork:
    """What NumPy has to do for `reference`, counted before it is done.

    held: elements that lie in memory at once, at most. steps: elements that are touched one by one;
    a multiply-add of a matrix product, which goes in blocks, counts as a sixteenth of one.
    """

    held: int
    steps: int


@dataclass(frozen=True, slots=True)
class InlineCost:
    """What an operator adds to an expression that it is a part of. levels: how far it is above the
    elements that it reads; reads: how often it reads each of them.
    """

    levels: int
    reads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Permuted:
    """An operator on operands with permuted axes; `permutation` makes of its result what it was."""

    operator: Operator
    permutation: Permutation


@dataclass(frozen=True, slots=True)
class JoinableAxes:
    """How the axes of a result may be joined with their neighbours, as the memory is the same.

    kinds: of each axis; only axes of one kind are joined. source: where each stands in the
    operands; only neighbours there are joined. kept: those that stay though they have one element;
    other axes of one element go.
    """

    kinds: tuple[bool, ...]
    source: Permutation
    kept: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Operator(ABC):
    """One operator with its attributes as typed fields.

    output_count: how many outputs it has. `infer`, `reference` and `express` give a tuple with an
    entry for each, in one order; what a method below says of the result is asked where there is
    one.
    operand_names: how kernels call the operands that it reads. rearranges: whether each element of
    the result is an element of an input, of whichever, so that inputs of one number give that
    number. commutative: whether its two inputs may change places. decides: whether it makes a great
    difference of a small one, though it gives floats. checks_indices: whether an index out of
    range refuses a run. is_of_levels: whether its numbers are scales and zeros, of which each layer
    of a model has its own, so that kernels take them as operands. widens: whether its expression
    reads what is stored in few bits as it is, and widens that where it computes with it.
    """

    role: ClassVar[OperatorRole]
    output_count: ClassVar[int] = 1
    operand_names: ClassVar[tuple[str, ...]] = ("x",)
    rearranges: ClassVar[bool]
    commutative: ClassVar[bool] = False
    decides: ClassVar[bool] = False
    checks_indices: ClassVar[bool] = False
    is_of_levels: ClassVar[bool] = False
    widens: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        role = getattr(cls, "role", None)
        needed = ("role",) if role is None else _NEEDED.get(role, ())
        if lacking := [name for name in needed if not hasattr(cls, name)]:
            raise OperatorError(
                f"operators: {cls.__name__} does not declare {', '.join(lacking)}; expected "
                "what tw.Operator asks of every operator of its role.",
                code="operator-undeclared",
                hints=("tw.OperatorRole says which roles there are; GENERAL promises nothing.",),
            )
        if cls.output_count > 1 and role is not OperatorRole.GENERAL:
            raise OperatorError(
                f"operators: {cls.__name__} has {cls.output_count} outputs; expected one, or the "
                "role GENERAL.",
                code="operator-outputs",
            )

    @abstractmethod
    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The types of the outputs. Raises: ModelError when the inputs do not fit."""

    @abstractmethod
    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        """The outputs, computed by NumPy in the dtype of the inputs, which `infer` accepts."""

    def compute(self, *arrays: Array) -> tuple[Array, ...]:
        """The outputs of `reference`, where bfloat16, which NumPy lacks, is computed in float32 and
        rounded once.
        """
        types = tuple(map(type_of, arrays))
        if self.role is OperatorRole.MOVEMENT or all(t.dtype != "bfloat16" for t in types):
            return self.reference(*arrays)
        pairs = zip(arrays, types, strict=True)
        wide = (a.astype(np.float32) if t.dtype == "bfloat16" else a for a, t in pairs)
        made = self.at_precision("float32").reference(*wide)
        results = zip(made, self.infer(types), strict=True)
        return tuple(array.astype(numpy_type(type_.dtype), copy=False) for array, type_ in results)

    def facts(self, types: tuple[TensorType, ...]) -> tuple[Expr, ...]:
        """What `express` takes for granted of sizes that a run decides (`tir/analysis/facts.py`).
        types: of its inputs.
        """
        return ()

    @abstractmethod
    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        """The outputs as tensor expressions, each another tensor, some of which may read others;
        `name` begins the name of every stage.
        """

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        """What `reference` takes on inputs of these types, which `infer` accepts: by default the
        inputs, the outputs, and as much as these for what lies between.
        """
        given = sum(largest(type_.elements) for type_ in types)
        made = sum(largest(type_.elements) for type_ in self.infer(types))
        return ReferenceWork(given + 2 * made, given + made)

    @property
    def title(self) -> str:
        """The operator's name, as printed."""
        return type(self).__name__

    def is_view(self, types: tuple[TensorType, ...]) -> bool:
        """Whether the result has the bytes of the first input, under whatever shape."""
        return False

    def unchanged_input(self, count: int, is_all: Callable[[int, int], bool]) -> int | None:
        """The number of the input, of `count`, whose elements are those of the result; None where
        there is none. is_all(n, number): whether input n is a constant with that number everywhere.
        """
        return None

    def absorb(self, before: Operator) -> Operator | None:
        """The one operator that does what `before` does and then this one; None where there is
        none.
        """
        return None

    def fold_splats(self, splats: Sequence[Splat]) -> Number | None:
        """The number everywhere in the result where each input is a splat; None where there is
        none, or where that is not known.
        """
        same = self.role is OperatorRole.MOVEMENT and self.rearranges
        return splats[0].value if same and len({splat.value for splat in splats}) == 1 else None

    def at_precision(self, dtype: str) -> Operator:
        """The operator where every float is one of `dtype`."""
        return self

    def inline_cost(self, dtypes: tuple[str, ...]) -> InlineCost:
        """What it adds to an expression, on elements of these types. What is not elementwise is no
        part of one.
        """
        return InlineCost(0, (0,) * len(dtypes))

    def permute_axes(self, permutation: Permutation) -> Permuted | None:
        """The operator for operands of one rank, axis d of which has become axis permutation[d];
        None where it wants them as they were.
        """
        return None

    def joinable_axes(self, shape: Shape) -> JoinableAxes | None:
        """How axes of a result of that shape may be joined; None: they stay as they are."""
        return None

    def join_axes(self, runs: Runs) -> Operator:
        """The operator where each run of axes of the result has become one."""
        return self


def refuse(operator: Operator, problem: str, *, code: str) -> NoReturn:
    """Raise a ModelError that starts with the operator's name."""
    raise ModelError(f"{operator.title}: {problem}.", code=code)


def listed(types: tuple[TensorType, ...]) -> str:
    """The types in one line."""
    return ", ".join(map(str, types)) if types else "none"


def check_arity(
    operator: Operator, types: tuple[TensorType, ...], least: int, most: int | None
) -> None:
    """Refuse when the number of inputs is not between `least` and `most` (None: no upper bound)."""
    if least <= len(types) and (most is None or len(types) <= most):
        return
    expected = (
        f"{least}"
        if least == most
        else f"{least} or more"
        if most is None
        else f"{least} to {most}"
    )
    refuse(operator, f"takes {expected} inputs, got {len(types)}: {listed(types)}", code="op-arity")


def check_same_dtype(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse inputs of different element types."""
    if len({type_.dtype for type_ in types}) > 1:
        refuse(
            operator, f"inputs must have one element type, got {listed(types)}", code="op-dtypes"
        )


def check_float(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse inputs that are not floating-point numbers of one type."""
    check_same_dtype(operator, types)
    if types[0].dtype not in FLOATS:
        refuse(
            operator,
            f"expected float16, bfloat16, float32 or float64, got {_called(types[0].dtype)}",
            code="op-float",
        )


def check_number(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse inputs that are not numbers of one type."""
    check_same_dtype(operator, types)
    kind = types[0].dtype
    if kind == "bool" or is_only_stored(kind):
        refuse(operator, f"expected numbers, got {_called(kind)}", code="op-number")


def check_integer(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse inputs that are not integers of one type."""
    check_same_dtype(operator, types)
    kind = types[0].dtype
    if types[0].is_float or kind == "bool" or is_only_stored(kind):
        refuse(operator, f"expected integers, got {_called(kind)}", code="op-integer")


def _called(dtype: str) -> str:
    return f"{dtype}, which is only stored" if is_only_stored(dtype) else dtype


def check_bool(operator: Operator, types: tuple[TensorType, ...]) -> None:
    """Refuse inputs that are not truth values."""
    if wrong := [type_ for type_ in types if type_.dtype != "bool"]:
        refuse(operator, f"expected bool, got {wrong[0].dtype}", code="op-bool")


def normal_axis(operator: Operator, axis: int, rank: int) -> int:
    """`axis` counted from the front. Raises: ModelError when it lies outside -rank .. rank-1."""
    if -rank <= axis < rank:
        return axis % rank
    refuse(operator, f"axis {axis} lies outside {-rank} .. {rank - 1}", code="op-axis")


def product_work(base: ReferenceWork, multiply_adds: int) -> ReferenceWork:
    """`base` with a matrix product."""
    return ReferenceWork(base.held, base.steps + multiply_adds // 16)


def lowest(dtype: str) -> float | int:
    """The identity of max: -inf, or the least integer."""
    return float("-inf") if dtype in FLOATS else int(np.iinfo(dtype).min)


def highest(dtype: str) -> float | int:
    """The identity of min: inf, or the greatest integer."""
    return float("inf") if dtype in FLOATS else int(np.iinfo(dtype).max)


def computed_type(kind: DType) -> DType:
    """The type in which kernels compute with numbers of a type."""
    if not kind.is_storage:
        return kind
    return FLOAT32 if kind.is_float else INT32


def shape_of(tensor: Tensor) -> Shape:
    """The shape of a tensor of the expression language."""
    return tuple(map(size_of, tensor.extents))


def tensor_type(tensor: Tensor) -> TensorType:
    """The type of a tensor of the expression language."""
    return TensorType(str(tensor.dtype), shape_of(tensor))
