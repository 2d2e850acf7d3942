"""graph/kernels/joined_groups.py: several groups as one, with zeros for what they do not share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.ir.ir import Graph
from tilewright.graph.kernels.algorithms import ALGORITHMS
from tilewright.graph.kernels.fused_kernel import FusedKernel, KernelOperand, KernelStep
from tilewright.graph.kernels.joined_groups import JoinedConv, as_joined
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.convolution import Conv, IntegerConv
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.types import TensorType
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...isas import HERE
from ..passes.quantised import Quantised

HOW = {"strides": (2, 1), "pads": (1, 0, 2, 1), "dilations": (1, 2), "layout": "NHWC", "zero": 7}


def kernel(groups: int, outputs: int, *, constant: bool = True, channels: int = 2) -> FusedKernel:
    op = IntegerConv(groups=groups, layout="NHWC")
    operands = (
        KernelOperand("x", TensorType("uint8", (1, 5, 5, groups * channels))),
        KernelOperand("w", TensorType("int8", (3, 3, channels, outputs)), constant),
    )
    return FusedKernel(operands, (KernelStep(op, (0, 1)), KernelStep(Relu(), (2,))))


@pytest.mark.parametrize(
    ("groups", "size", "lanes", "joined"),
    [
        (32, 4, 16, 4),
        (32, 4, 8, 2),
        (32, 4, 4, None),
        (32, 8, 16, 2),
        (32, 16, 16, None),
        (6, 6, 4, 2),
        (6, 6, 16, 6),
        (9, 1, 4, 9),
        (3, 80, 16, None),
        (1, 4, 16, None),
    ],
)
def test_the_fewest_groups_are_joined_that_fill_vectors(
    groups: int, size: int, lanes: int, joined: int | None
) -> None:
    fused = kernel(groups, groups * size)
    found = as_joined(fused, lanes)
    if joined is None:
        assert found is None
        return
    assert found is not None
    first, *rest = found.steps
    assert first.op == JoinedConv(groups=groups, layout="NHWC", joined=joined)
    assert first.inputs == (0, 1)
    assert tuple(rest) == fused.steps[1:]
    assert found.types == fused.types
    assert as_joined(found, lanes) is None


def test_only_constant_weights_of_integers_that_lie_by_pixels_are_joined() -> None:
    fused = kernel(8, 16)
    first, after = fused.steps
    assert as_joined(fused, 4) is not None
    assert as_joined(kernel(8, 16, constant=False), 4) is None
    channels_first = KernelStep(replace(first.op, layout="NCHW"), first.inputs)
    assert as_joined(replace(fused, steps=(channels_first, after)), 4) is None
    floats = KernelStep(Conv(groups=8, layout="NHWC"), first.inputs)
    assert as_joined(replace(fused, steps=(floats, after)), 4) is None


def test_it_is_for_cpus_and_keeps_the_bits() -> None:
    names = [name for name in ALGORITHMS if name.startswith("joined")]
    assert names == ["joined-4", "joined-8", "joined-16"]
    for name, lanes in zip(names, (4, 8, 16), strict=True):
        algorithm = ALGORITHMS[name]
        found = algorithm.admit(kernel(32, 64), Target.parse("c:avx2"), True, None)
        assert found is not None
        assert found == as_joined(kernel(32, 64), lanes)
        assert algorithm.admit(kernel(32, 64), Target.parse("cuda:sm_90a"), False, None) is None


def function(joined: int, groups: int, channels: int, size: int) -> PrimFunc:
    x = te.placeholder((2, 6, 5, groups * channels), "uint8", name="x")
    w = te.placeholder((3, 2, channels, groups * size), "int8", name="w", constant=True)
    op = JoinedConv(groups=groups, joined=joined, **HOW)  # type: ignore[arg-type]  # by field
    return te.func(x, w, *op.express(x, w, name="y"), name="joined")


@pytest.mark.parametrize(
    ("joined", "groups", "channels", "size"),
    [(2, 4, 3, 2), (4, 4, 2, 2), (3, 6, 1, 5), (1, 2, 2, 3)],
)
@pytest.mark.parametrize("extreme", [False, True])
def test_joined_groups_have_the_sums_of_their_own(
    joined: int, groups: int, channels: int, size: int, extreme: bool
) -> None:
    rng = np.random.default_rng(0)
    func = function(joined, groups, channels, size)
    x = rng.integers(0, 256, func.inputs[0].shape).astype(np.uint8)
    w = rng.integers(-128, 128, func.constants[0].shape).astype(np.int8)
    if extreme:
        x, w = np.full_like(x, 255), np.full_like(w, -128)
    (expected,) = IntegerConv(groups=groups, **HOW).reference(x, w)  # type: ignore[arg-type]
    found = tw.build(func, "python", constants={"w": w})(x)
    np.testing.assert_array_equal(found, expected)


def network(groups: int, channels: int, size: int) -> Graph:
    net = Quantised(3)
    x = net.input("x", TensorType("uint8", (1, groups * channels, 9, 8)))
    op = IntegerConv(pads=(1, 1, 1, 1), groups=groups, zero=9)
    net.add(op, x, net.bytes_of("w", "int8", groups * size, channels, 3, 3), output="y")
    return net.finish(("y",))


@pytest.mark.needs_cc
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("extreme", [False, True])
def test_an_engine_joins_groups_where_that_is_cheaper(target: str, extreme: bool) -> None:
    graph = network(8, 4, 4)
    engine = tw.compile(graph, target, cache=False)
    x = np.random.default_rng(1).integers(0, 256, (1, 32, 9, 8)).astype(np.uint8)
    if extreme:
        x = np.full_like(x, 255)
    (conv,) = (node.op for node in graph.nodes)
    (expected,) = conv.reference(x, np.asarray(graph.constants["w"]))
    np.testing.assert_array_equal(engine(x), expected)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("c:avx512+vnni", "in groups of 16 outputs"),
        ("c:avx2+vnni", "in groups of 8 outputs"),
        ("c:neon+i8mm", ""),
    ],
)
def test_prices_choose_how_many_are_joined(target: str, words: str) -> None:
    planned = plan_model(network(32, 4, 4), Target.parse(target), check=False)
    titles = [decision.chosen.title for decision in planned.decisions]
    (title,) = (one for one in titles if "IntegerConv" in one)
    assert title.removeprefix("IntegerConv").strip() == words
