"""A plan is taken apart where a kernel is wrong; the light models, planned and evaluated."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.plan.plan import Planned, apart, plan_model
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.samples import samples
from tilewright.graph.types import Splat, TensorType
from tilewright.tir.program.evaluate import evaluate_program
from tilewright.tir.target.target import Target

TARGET = Target.parse("c:avx512")
MODELS = [
    pytest.param(name, marks=() if name == "squeezenet" else pytest.mark.slow)
    for name in samples.LIGHT_MODELS
]
# launches, fused groups with more than one node
SHAPE = {
    "bvlc_alexnet": (15, 7),
    "densenet121": (242, 121),
    "inception_v1": (84, 57),
    "inception_v2": (94, 69),
    "resnet50": (57, 49),
    "shufflenet": (75, 33),
    "squeezenet": (39, 26),
    "vgg19": (26, 18),
    "zfnet512": (15, 7),
}


def network() -> Planned:
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (1, 6, 6, 8)))
    w = builder.constant("w", Splat(0.25, "float32", (1, 1, 8, 8)))
    a = builder.add(Relu(), builder.add(Add(), builder.add(Conv(layout="NHWC"), x, w), x))
    return plan_model(builder.finish((a,)), TARGET, passes=())


def test_a_wrong_kernel_is_replaced_by_its_parts() -> None:
    planned = network()
    (function,) = planned.lowered.program.functions
    smaller = apart(planned, (function.name,))
    assert [func.name for func in smaller.lowered.program.functions] == ["conv", "add", "relu"]
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 6, 6, 8)).astype("float32")}
    for plan in (planned, smaller):
        (y,) = evaluate_program(plan.lowered.program, feeds, plan.lowered.constants).values()
        (expected,) = evaluate(planned.graph, feeds).values()
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_a_kernel_of_one_node_cannot_be_taken_apart() -> None:
    smaller = apart(network(), (network().lowered.program.functions[0].name,))
    assert apart(smaller, ("conv",)) is smaller
    assert apart(smaller, ()).lowered.program.functions == smaller.lowered.program.functions


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_light_model_is_planned_near_the_bound_and_computes_its_outputs(name: str) -> None:
    sample = samples.random_model(name)
    graph = import_onnx(sample.model)
    planned = plan_model(graph, TARGET)
    launches = planned.lowered.program.launches
    fused = [p for d in planned.decisions for p in d.chosen.parts if len(p.group.nodes) > 1]
    assert (len(launches), len(fused)) == SHAPE[name]
    assert {report.verdict for report in planned.passes} <= {"equal", "unchanged"}
    assert planned.lowered.plan.excess <= 0.05
    got = evaluate_program(planned.lowered.program, sample.inputs, planned.lowered.constants)
    for output, expected in evaluate(graph, sample.inputs).items():
        assert np.abs(got[output] - expected).max() <= 1e-5 * np.abs(expected).max()
