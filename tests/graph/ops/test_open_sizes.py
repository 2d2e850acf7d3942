"""Every operator whose sizes a run decides: where it takes them, its function at any choice of them
is that of closed sizes; where it does not, it says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.graph.ops.operators import Sample, samples
from tilewright.driver.build import prove
from tilewright.graph.errors import ModelError
from tilewright.graph.ir.at_sizes import operator_at
from tilewright.graph.ops.base import Operator
from tilewright.graph.types import Array, Shape, TensorType
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.verdict import PROVED
from tilewright.tir.analysis.specialise import specialise
from tilewright.tir.dim import Dim
from tilewright.tir.errors import IRError
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.sizes import SizeError, shape_in, size_in, size_of
from tilewright.tir.te import te

# what an operator says that needs a number where a run decides
REFUSED = {
    "roi-parts",
    "roi-spans",
    "batch-norm-channels",
    "block-matmul-shape",
    "boxes-shape",
    "conv-bias",
    "conv-channels",
    "find-most",
    "gemm-inner",
    "heads-fit",
    "kept-types",
    "matmul-shape",
    "op-broadcast",
    "overlap-types",
    "reshape-count",
    "round-blocks-shape",
    "rounded-blocks-shape",
    "scatter-nd-shape",
    "roi-align-shape",
    "rotation-fit",
    "sample-shape",
    "size-axis",
    "size-divisor",
    "size-open",
    "size-undecided",
    "slice-bounds",
}


def opened(sample: Sample) -> Iterator[tuple[int, tuple[TensorType, ...]]]:
    """The sample with one size of its inputs decided by a run, on each axis that has it."""
    for number in sorted({n for a in sample.arrays for n in a.shape if n > 1}):
        size = size_of(Dim("n", low=1, high=number + 5, typical=number))
        yield (
            number,
            tuple(
                TensorType(t.dtype, tuple(size if n == number else n for n in t.shape))
                for t in sample.types
            ),
        )


def function(op: Operator, types: tuple[TensorType, ...]) -> PrimFunc:
    given = [te.placeholder(t.shape, t.dtype, name=f"x{n}") for n, t in enumerate(types)]
    made = op.express(*given, name="y")
    told = {dim for tensor in given for dim in tensor.dims}
    sizes = [dim for dim in te.dims_of_tensors(*made) if dim not in told]
    return replace(te.func(*given, *made, name="f", sizes=sizes), facts=op.facts(types))


def attempt(
    op: Operator, types: tuple[TensorType, ...]
) -> tuple[tuple[TensorType, ...], PrimFunc] | str:
    """What an operator makes of open sizes, or the code of its refusal."""
    try:
        return op.infer(types), function(op, types)
    except (ModelError, SizeError, IRError) as refusal:
        return refusal.code or ""


def at(func: PrimFunc, values: Mapping[Dim, int]) -> PrimFunc:
    return specialise(func, {dim: size_in(size_of(dim), values) for dim in func.dims})


def drawn(sample: Sample, shapes: tuple[Shape, ...]) -> list[Array]:
    """The arrays of a sample, each repeated or cut to another shape."""
    return [
        np.resize(array, shape).astype(array.dtype)  # type: ignore[arg-type]
        for array, shape in zip(sample.arrays, shapes, strict=True)
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sample", samples(), ids=str)
def test_an_operator_is_at_any_choice_what_it_is_of_closed_sizes(sample: Sample) -> None:
    for number, types in opened(sample):
        (dim,) = {d for t in types for s in t.shape if not isinstance(s, int) for d in s.dims}
        found = attempt(sample.op, types)
        if isinstance(found, str):
            assert found in REFUSED
            continue
        made, func = found
        assert prove(Schedule(func)).status == PROVED, number
        for chosen in (number, number + 3, 1):
            values = {dim: chosen}
            closed = tuple(TensorType(t.dtype, shape_in(t.shape, values)) for t in types)
            op = operator_at(sample.op, values)
            try:
                wanted_types = op.infer(closed)
            except ModelError:
                assert chosen != number  # an attribute of the sample was for its own size
                continue
            assert [shape_in(t.shape, values) for t in made] == [t.shape for t in wanted_types]
            arrays = drawn(sample, tuple(t.shape for t in closed))
            with np.errstate(all="ignore"):
                wanted = op.reference(*arrays)
                computed = evaluate(at(func, values), arrays)
            for one, other in zip(wanted, computed.values(), strict=False):
                np.testing.assert_allclose(
                    other.astype(np.float64), one.astype(np.float64), rtol=1e-4, atol=1e-5
                )
