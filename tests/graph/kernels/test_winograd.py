"""graph/kernels/winograd.py: the same sums by fewer multiplications: values, exactness, what it is
not for, how its rule schedules it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tilewright.graph.compile import compile
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.kernels.express import express
from tilewright.graph.kernels.fused_kernel import FusedKernel, fused_kernel_of
from tilewright.graph.kernels.groups import FusionGroup
from tilewright.graph.kernels.winograd import TRANSFORMS, as_winograd, expected_error
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Sub
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.plan.choose import choose
from tilewright.graph.plan.fusion import fuse
from tilewright.graph.plan.pricing import Pricer
from tilewright.graph.types import TensorType
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.schedule import Schedule
from tilewright.tir.dtype import FLOAT64
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.error_bound import reference
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target

from ...schedule.rule_checks import Answered, check

pytestmark = pytest.mark.sampled(10)

TARGETS = ["c:scalar", "c:avx2", "c:avx512"]
PLAIN = Conv(pads=(1, 1, 1, 1), layout="NHWC")


def network(
    data: Sequence[int], outputs: int, op: Conv = PLAIN, kernel: int = 3, *, fixed: bool = True
) -> Graph:
    """relu(conv(x) + r), with a bias."""
    builder = GraphBuilder("net")
    rng = np.random.default_rng(0)
    x = builder.input("x", TensorType("float32", tuple(data)))
    shape = (kernel, kernel, data[-1] // op.groups, outputs)
    if op.layout == "NCHW":
        shape = (outputs, data[1] // op.groups, kernel, kernel)
    weights = rng.integers(-3, 4, shape).astype("float32")
    w = (
        builder.constant("w", weights)
        if fixed
        else builder.input("w", TensorType("float32", shape))
    )
    bias = builder.constant("b", rng.integers(-3, 4, outputs).astype("float32"))
    y = builder.add(op, x, w, bias)
    r = builder.input("r", builder.types[y])
    return builder.finish((builder.add(Relu(), builder.add(Add(), y, r)),))


def fused_in(graph: Graph) -> FusedKernel:
    return fused_kernel_of(graph, FusionGroup(graph.nodes))[0]


def function(data: Sequence[int], outputs: int, op: Conv = PLAIN, *, results: int = 2) -> PrimFunc:
    """The convolution by Winograd's algorithm."""
    found = as_winograd(fused_in(network(data, outputs, op)), results)
    assert found is not None
    return express(found)


@pytest.mark.parametrize("results", TRANSFORMS)
def test_no_transform_of_data_or_results_rounds_its_factors(results: int) -> None:
    matrices = TRANSFORMS[results].matrices
    for row in (*matrices.data, *matrices.result):
        assert all(Fraction(float(np.float32(float(x)))) == x for x in row)


SIZES = pytest.mark.parametrize(
    ("data", "pads"),
    [
        ((1, 8, 8, 4), (1, 1, 1, 1)),
        ((2, 7, 5, 3), (1, 1, 1, 1)),
        ((1, 6, 9, 2), (0, 0, 0, 0)),
        ((1, 5, 4, 2), (2, 0, 1, 2)),
        ((1, 1, 1, 2), (1, 1, 1, 1)),
        ((1, 3, 1, 1), (0, 2, 0, 0)),
    ],
)


@SIZES
def test_four_results_give_what_the_convolution_gives_but_for_rounding(
    data: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    fused = fused_in(network(data, 5, replace(PLAIN, pads=pads)))
    found = as_winograd(fused, 4)
    assert found is not None
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(o.type.shape).astype("float32") for o in fused.operands]
    both = (express(fused), express(found))
    (direct,), (fast,) = (evaluate(func, arrays, FLOAT64).values() for func in both)
    np.testing.assert_allclose(fast, direct, rtol=0, atol=1e-6 * np.abs(direct).max())
    (rounded,) = evaluate(both[1], arrays).values()
    np.testing.assert_allclose(rounded, direct, rtol=0, atol=1e-5 * np.abs(direct).max())


@SIZES
def test_integers_give_exactly_what_the_convolution_gives(
    data: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    fused = fused_in(network(data, 5, replace(PLAIN, pads=pads)))
    found = as_winograd(fused)
    assert found is not None
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-9, 10, o.type.shape).astype("float32") for o in fused.operands]
    (direct,), (fast,) = (evaluate(express(f), arrays).values() for f in (fused, found))
    np.testing.assert_array_equal(fast, direct)


@pytest.mark.parametrize(
    "graph",
    [
        network((1, 4, 4, 2), 3, replace(PLAIN, strides=(2, 2))),
        network((1, 4, 4, 2), 3, replace(PLAIN, strides=(1, 2))),
        network((1, 6, 6, 2), 3, replace(PLAIN, dilations=(2, 2))),
        network((1, 4, 4, 2), 4, replace(PLAIN, groups=2)),
        network((1, 4, 4, 2), 3, replace(PLAIN, pads=(2, 2, 2, 2)), kernel=5),
        network((1, 4, 4, 2), 3, replace(PLAIN, pads=(0, 0, 0, 0)), kernel=1),
        network((1, 2, 4, 4), 3, replace(PLAIN, layout="NCHW")),
        network((1, 4, 4, 2), 3, fixed=False),
    ],
    ids=["stride", "one stride", "dilated", "grouped", "5x5", "1x1", "NCHW", "weights that change"],
)
def test_other_convolutions_have_no_such_form(graph: Graph) -> None:
    assert as_winograd(fused_in(graph)) is None


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("data", "outputs"), [((1, 6, 6, 16), 16), ((2, 5, 7, 5), 3), ((1, 9, 4, 18), 20)]
)
@pytest.mark.parametrize("results", TRANSFORMS)
def test_its_schedule_is_right(
    data: tuple[int, ...], outputs: int, results: int, target: str
) -> None:
    func = function(data, outputs, results=results)
    assert rule_for(func).name == "winograd"
    check(func, target, atol=1e-30 if results == 2 else 1e-3)  # of some hundreds


@pytest.mark.parametrize("together", [0, 1, 2])
def test_rows_of_tiles_pass_through_all_stages_together_or_each_stage_runs_alone(
    together: int,
) -> None:
    decisions = Answered({"rows of tiles together of winograd_products": together})
    sch = check(function((1, 8, 8, 16), 16), "c:avx512", decisions)
    roots = [tuple(loop.name for loop in sch.loops(name)) for name in sch.blocks()]
    tiles = next(name for name in sch.blocks() if name.endswith("_tiles"))
    products = next(name for name in sch.blocks() if name.endswith("_products"))
    shared = sch.loops(tiles)[1] == sch.loops(products)[1]
    assert shared == bool(together), roots


@pytest.mark.parametrize(("batch", "together"), [(6, True), (1, True), (6, False)])
def test_rows_of_tiles_copy_what_they_read_of_many_images_and_its_border(
    batch: int, together: bool
) -> None:
    caches = replace(Target.parse("c:avx512"), l2_bytes=(32 if together else 8) << 10)
    sch = check(function((batch, 6, 6, 16), 16), caches)
    border = next(name for name in sch.blocks() if name.endswith("_pad"))
    tiles = next(name for name in sch.blocks() if name.endswith("_tiles"))
    shared = sch.loops(border)[0] == sch.loops(tiles)[0]
    assert shared == (batch > 1 and together)


def test_transforms_stay_in_registers_and_keep_the_vectors_of_the_channels() -> None:
    text = str(default_schedule(function((1, 8, 8, 16), 16), Target.parse("c:avx512")).func)
    assert 'winograd_rows = alloc(float32[4, 1, 4, 10, 16], "register")' in text
    assert 'winograd_joined = alloc(float32[2, 4, 1, 4, 4, 16], "register")' in text


def test_the_schedule_does_not_depend_on_names() -> None:
    func = function((1, 8, 8, 16), 32)
    renamed = parse(str(func).replace("winograd", "other"))
    target = Target.parse("c:avx512")
    one, two = (default_schedule(f, target) for f in (func, renamed))
    assert str(one.func).replace("winograd", "other") == str(two.func)


def test_a_long_convolution_is_cheaper_so_but_a_strict_build_sums_as_it_is_written() -> None:
    graph = network((1, 28, 28, 64), 64)
    target = Target.parse("c:avx512")
    titles = [
        choose(graph, fuse(graph).groups, Pricer(target, strict=strict))[0].chosen.title
        for strict in (False, True)
    ]
    assert titles == ["Conv+Add+Relu by Winograd", "Conv+Add+Relu"]


def test_tiles_of_four_results_are_asked_only_under_a_tolerance_that_their_error_keeps() -> None:
    graph = network((1, 28, 28, 128), 128)
    target = Target.parse("c:avx512")
    found = as_winograd(fused_in(graph), 4)
    assert found is not None
    error = expected_error(found)
    assert 1e-7 < error < 4e-6
    for tolerance, title in (
        (None, "Conv+Add+Relu by Winograd"),
        (error / 2, "Conv+Add+Relu by Winograd"),
        (error, "Conv+Add+Relu by Winograd F(4x4)"),
    ):
        pricer = Pricer(target, tolerance=tolerance)
        assert choose(graph, fuse(graph).groups, pricer)[0].chosen.title == title


def test_the_points_of_four_results_keep_the_error_near_that_of_the_direct_sum() -> None:
    """Of the usual points 0, 1, -1, 2, -2 it is some eight times that of the direct sum."""
    fused = fused_in(network((1, 12, 12, 64), 32))
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(o.type.shape).astype("float32") for o in fused.operands]
    four = as_winograd(fused, 4)
    assert four is not None
    direct, fast = (reference(express(f), arrays).outputs[0].spread for f in (fused, four))
    assert fast < 4 * direct


class Quick:
    """A source to which tiles of four results take no time."""

    def schedule(self, func: PrimFunc, target: Target) -> Schedule | None:
        return None

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        return 0.0 if any(b.shape[:2] == (6, 6) for b in func.allocations) else None


@pytest.mark.slow
@pytest.mark.needs_cc
def test_an_engine_within_a_tolerance_says_what_it_measured_and_keeps_bits_and_bound() -> None:
    graph = network((2, 10, 10, 32), 32)
    engine = compile(graph, schedules=Quick(), tolerance=1e-5)
    notes = engine.explain().notes
    assert notes[0].startswith(f"tolerance 1e-05: {graph.outputs[0]}: error ")
    assert notes[0].endswith(" of the allowed, measured beside the reference in float64")
    assert any(
        re.fullmatch(r"rounds more: .*: expected error \d\.\de-0[67] of its largest result", note)
        for note in notes
    )
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    assert set(engine.explain().proofs) == {"proved"}
    rng = np.random.default_rng(2)
    one = {n: rng.standard_normal((1, 10, 10, 32), dtype="float32") for n in graph.inputs}
    inputs = {name: np.repeat(array, 2, axis=0) for name, array in one.items()}
    results = [engine.run(inputs, threads=n)[graph.outputs[0]] for n in (1, 2, 3)]
    assert len({row.tobytes() for result in results for row in result}) == 1
    assert engine.verify(inputs)


@pytest.mark.slow
@pytest.mark.needs_cc
def test_where_an_output_is_off_by_more_the_engine_is_built_without_what_rounds_more() -> None:
    builder = GraphBuilder("cancelling")  # what is lost by adding 1e6 to the sums is 1e-4 of them
    x = builder.input("x", TensorType("float32", (1, 10, 10, 32)))
    rng = np.random.default_rng(0)
    w = builder.constant("w", rng.integers(-3, 4, (3, 3, 32, 32)).astype("float32"))
    large = builder.constant("large", np.array([1e6], np.float32))
    high = builder.add(Add(), builder.add(PLAIN, x, w), large)
    graph = builder.finish((builder.add(Sub(), high, large),))
    engine = compile(graph, schedules=Quick(), tolerance=1e-5)
    notes = engine.explain().notes
    assert " with 1 kernel(s) that round more; built without them: " in notes[0]
    assert not [note for note in notes if note.startswith("rounds more")]
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}


@pytest.mark.needs_cc
def test_an_engine_has_equal_bits_for_any_number_of_threads_and_every_row() -> None:
    rng = np.random.default_rng(2)
    graph = network((3, 14, 14, 32), 32)
    engine = compile(graph, cache=False)
    assert "by Winograd" in str(engine.explain())
    one = {n: rng.standard_normal((1, 14, 14, 32), dtype="float32") for n in graph.inputs}
    inputs = {name: np.repeat(array, 3, axis=0) for name, array in one.items()}
    results = [engine.run(inputs, threads=n)[graph.outputs[0]] for n in (1, 2, 3)]
    assert len({row.tobytes() for result in results for row in result}) == 1
    assert engine.verify(inputs)
    strict = compile(graph, cache=False, strict=True)
    assert "by Winograd" not in str(strict.explain())
    difference = np.abs(strict.run(inputs)[graph.outputs[0]] - results[0]).max()
    assert 0 < difference < 1e-5 * np.abs(results[0]).max()
