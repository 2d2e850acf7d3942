"""What operators declare of themselves is true, and who declares nothing is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tests.graph.ops.operators import Sample, samples
from tilewright.graph.errors import OperatorError
from tilewright.graph.kernels.collapse import collapsed
from tilewright.graph.kernels.fused_kernel import FusedKernel, KernelOperand, KernelStep
from tilewright.graph.kernels.winograd import Winograd
from tilewright.graph.ops.arithmetic import Add, Sub
from tilewright.graph.ops.base import InlineCost, Operator, OperatorRole, Permutation, Permuted
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.functions import Cast, Exp, Floor
from tilewright.graph.ops.movement import Concat, Identity, Reshape, Transpose
from tilewright.graph.ops.registry import OPERATORS
from tilewright.graph.ops.spatial import is_spatial
from tilewright.graph.types import (
    Array,
    Splat,
    inverse,
    permutation_to_first,
)

PERMUTATIONS = ((0, 2, 1), (2, 0, 1), (1, 0))


def those(chosen: Callable[[Sample], object]) -> pytest.MarkDecorator:
    """For each sample that is chosen."""
    found = [sample for sample in samples() if chosen(sample)]
    assert found
    return pytest.mark.parametrize("sample", found, ids=str)


def of(role: OperatorRole) -> pytest.MarkDecorator:
    """For each sample of a role."""
    return those(lambda sample: sample.op.role is role)


def splats(sample: Sample) -> list[Splat]:
    """What a sample reads, 1 everywhere."""
    return [Splat(1, type_.dtype, type_.shape) for type_ in sample.types]


def permuted(sample: Sample) -> Iterator[tuple[Permutation, Permuted]]:
    """The operator on operands of one rank that are permuted, where it says what it becomes."""
    for permutation in PERMUTATIONS:
        if {array.ndim for array in sample.arrays} == {len(permutation)}:
            moved = sample.op.permute_axes(permutation)
            if moved is not None:
                yield permutation, moved


def fused_of(sample: Sample) -> FusedKernel:
    operands = tuple(KernelOperand(f"x{n}", type_) for n, type_ in enumerate(sample.types))
    return FusedKernel(operands, (KernelStep(sample.op, tuple(range(len(operands)))),))


def result(op: Operator, *arrays: Array) -> Array:
    (y,) = op.reference(*arrays)
    return y


def same(got: Array, expected: Array) -> None:
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_there_is_a_sample_of_every_operator() -> None:
    assert {type(sample.op) for sample in samples()} == set(OPERATORS)


def test_an_operator_that_declares_nothing_is_refused() -> None:
    with pytest.raises(OperatorError) as caught:

        class Silent(Operator):
            """It has no role."""

    assert str(caught.value) == (
        "OperatorError: operators: Silent does not declare role; expected what tw.Operator asks of "
        "every operator of its role. [operator-undeclared]\n"
        "  Hint: tw.OperatorRole says which roles there are; GENERAL promises nothing."
    )


@pytest.mark.parametrize(
    ("role", "lacking"),
    [
        (OperatorRole.ELEMENTWISE, "element"),
        (OperatorRole.MOVEMENT, "rearranges"),
        (OperatorRole.SPATIAL, "layout, channels_last, operands_last, in_place"),
    ],
)
def test_an_operator_that_lacks_what_its_role_needs_is_refused(
    role: OperatorRole, lacking: str
) -> None:
    with pytest.raises(OperatorError) as caught:
        type("Half", (Operator,), {"role": role})
    assert caught.value.message == (
        f"operators: Half does not declare {lacking}; expected what tw.Operator asks of every "
        "operator of its role."
    )


def test_an_operator_with_several_outputs_promises_nothing_about_one() -> None:
    with pytest.raises(OperatorError) as caught:
        type("Two", (Operator,), {"role": OperatorRole.ROWWISE, "output_count": 2})
    assert str(caught.value) == (
        "OperatorError: operators: Two has 2 outputs; expected one, or the role GENERAL. "
        "[operator-outputs]"
    )


@pytest.mark.parametrize("sample", samples(), ids=str)
def test_each_says_how_many_outputs_it_has(sample: Sample) -> None:
    count = sample.op.output_count
    assert len(sample.op.infer(sample.types)) == len(sample.op.reference(*sample.arrays)) == count


def test_what_is_made_of_an_operator_inherits_what_it_declares() -> None:
    assert Winograd.role is OperatorRole.SPATIAL
    assert Winograd.operand_names == Conv.operand_names == ("x", "w", "bias")


@of(OperatorRole.ELEMENTWISE)
def test_an_elementwise_operator_works_in_any_order_of_elements(sample: Sample) -> None:
    y = result(sample.op, *sample.arrays)
    whole = [np.broadcast_to(array, y.shape).reshape(-1) for array in sample.arrays]
    np.testing.assert_array_equal(result(sample.op, *whole), y.reshape(-1))


@of(OperatorRole.ROWWISE)
def test_a_rowwise_operator_gives_each_row_of_its_first_input_alone(sample: Sample) -> None:
    x, *rest = sample.arrays
    other = x.copy()
    other[0] = x[0, ::-1]
    before, after = result(sample.op, x, *rest), result(sample.op, other, *rest)
    assert before.shape == x.shape
    np.testing.assert_array_equal(before[1:], after[1:])
    assert not np.array_equal(before[0], after[0])


@of(OperatorRole.MOVEMENT)
def test_a_movement_gives_elements_of_its_input_or_the_same_in_every_call(sample: Sample) -> None:
    x, *rest = sample.arrays
    y, doubled = result(sample.op, x, *rest), result(sample.op, 2 * x, *rest)
    given = [array.reshape(-1) for array in sample.arrays if array.dtype == x.dtype]
    moved = np.isin(y, np.concatenate(given))
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y[~moved], doubled[~moved])
    if sample.op.rearranges:
        assert moved.all()


@of(OperatorRole.SPATIAL)
def test_a_spatial_operator_gives_the_same_with_channels_last(sample: Sample) -> None:
    op = sample.op
    assert is_spatial(op)
    expected, arrays = result(op, *sample.arrays), list(sample.arrays)
    rank, moved = arrays[0].ndim, op.channels_last()
    for n, permutation in enumerate(op.operands_last(rank)):
        arrays[n] = arrays[n].transpose(permutation)
    assert (op.layout, moved.layout) == ("NCHW", "NHWC")
    same(result(moved, *arrays).transpose(permutation_to_first(rank)), expected)
    in_place = moved.in_place()
    if in_place is not None:
        y = result(in_place, sample.arrays[0], *arrays[1:])
        same(y.transpose(permutation_to_first(rank)), expected)


@those(lambda sample: sample.op.is_view(sample.types))
def test_a_view_has_the_bytes_of_its_input(sample: Sample) -> None:
    assert result(sample.op, *sample.arrays).tobytes() == sample.arrays[0].tobytes()


@those(lambda sample: sample.op.unchanged_input(len(sample.arrays), lambda *_: True) is not None)
def test_an_input_that_is_said_to_be_the_result_is_it(sample: Sample) -> None:
    """Where any one of the inputs is a constant of 0 or 1."""
    for constant in ((n, number) for n in range(len(sample.arrays)) for number in (0, 1)):
        arrays = list(sample.arrays)
        arrays[constant[0]] = np.full_like(arrays[constant[0]], constant[1])
        found = sample.op.unchanged_input(len(arrays), lambda *asked, c=constant: asked == c)
        y = result(sample.op, *arrays)
        if found is not None and y.size == arrays[found].size and y.dtype == arrays[found].dtype:
            np.testing.assert_array_equal(y.reshape(-1), arrays[found].reshape(-1))


@those(lambda sample: sample.op.fold_splats(splats(sample)) is not None)
def test_splats_become_the_splat_that_is_said(sample: Sample) -> None:
    y = result(sample.op, *(np.array(splat.array()) for splat in splats(sample)))
    np.testing.assert_array_equal(y, np.full_like(y, sample.op.fold_splats(splats(sample))))


@those(lambda sample: sample.op.commutative)
def test_two_inputs_may_change_places_where_they_are_said_to(sample: Sample) -> None:
    assert len(sample.arrays) == 2
    y = result(sample.op, *sample.arrays)
    np.testing.assert_array_equal(result(sample.op, *sample.arrays[::-1]), y)


@those(lambda sample: any(permuted(sample)))
def test_an_operator_on_permuted_operands_is_what_it_says(sample: Sample) -> None:
    for permutation, moved in permuted(sample):
        arrays = [array.transpose(inverse(permutation)) for array in sample.arrays]
        y = result(moved.operator, *arrays).transpose(moved.permutation)
        same(y, result(sample.op, *sample.arrays))


@those(lambda sample: collapsed(fused_of(sample)) != fused_of(sample))
def test_an_operator_on_joined_axes_gives_the_same_elements(sample: Sample) -> None:
    small = collapsed(fused_of(sample))
    shapes = [operand.type.shape for operand in small.operands]
    arrays = [array.reshape(s) for array, s in zip(sample.arrays, shapes, strict=True)]
    y = result(small.steps[0].op, *arrays)
    assert y.shape == small.result.shape
    same(y.reshape(-1), result(sample.op, *sample.arrays).reshape(-1))


def test_an_operator_takes_in_the_one_before_it_where_both_are_one() -> None:
    assert Reshape((6,)).absorb(Reshape((2, 3))) == Reshape((6,))
    assert Transpose((1, 2, 0)).absorb(Transpose((0, 2, 1))) == Transpose((2, 1, 0))
    assert Transpose((1, 0)).absorb(Reshape((2, 3))) is None
    assert Concat(0).absorb(Concat(0)) is None


def test_only_a_cast_to_floats_depends_on_the_precision_of_floats() -> None:
    assert Cast("float32").at_precision("float64") == Cast("float64")
    assert Cast("int32").at_precision("float64") == Cast("int32")
    assert Exp().at_precision("float64") == Exp()


def test_only_what_is_elementwise_adds_to_an_expression() -> None:
    assert Sub().inline_cost(("float32", "float32")) == InlineCost(1, (1, 1))
    assert Identity().inline_cost(("float32",)) == InlineCost(0, (0,))


def test_an_operator_that_rounds_to_whole_numbers_takes_bits_or_signs_decides() -> None:
    assert {kind.__name__ for kind in OPERATORS if kind.decides} == {
        "BitCast",
        "Ceil",
        "Floor",
        "Forest",
        "Mod",
        "Round",
        "RoundQuotient",
        "Sign",
    }
    assert Floor().decides
    assert not Add().decides
