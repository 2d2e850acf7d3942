"""The nine light models, compiled: the stored outputs, and float64 on random weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.ir import make_graph
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.samples import samples
from tilewright.runtime.machine.host import host_target

from .accuracy import error

pytestmark = pytest.mark.needs_cc

SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in samples.LIGHT_MODELS]


def with_output(model: onnx.ModelProto, tensor: str) -> onnx.ModelProto:
    """The model with one more output."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    if tensor not in {output.name for output in copy.graph.output}:
        copy.graph.output.append(helper.make_tensor_value_info(tensor, TensorProto.FLOAT, None))
    return copy


@pytest.mark.parametrize("name", SLOW)
def test_random_weights_give_what_float64_gives(name: str) -> None:
    sample = samples.random_model(name)
    model = with_output(sample.model, sample.logits)
    engine = compile(model, cache=False)
    one, two = (engine.run(sample.inputs, threads=n) for n in (1, 2))
    expected = evaluate(import_onnx(model), sample.inputs)
    errors = {output: error(one[output], array) for output, array in expected.items()}
    deviation = float(expected[sample.logits].std())
    plan, report = engine.memory_plan, engine.explain()
    print(f"{name}: logits deviate by {deviation:.2f}; errors {errors}; {plan}; {report.proofs}")
    assert 1 <= deviation <= 10
    assert max(errors.values()) <= 1e-5
    for output, array in one.items():
        np.testing.assert_array_equal(array, two[output])
    assert set(report.proofs) == {"proved"}
    assert {kernel.check for kernel in report.kernels} == {"ok"}
    assert plan.lower_bound_bytes is not None
    assert plan.arena_bytes <= 1.05 * plan.lower_bound_bytes


@pytest.mark.parametrize("name", SLOW)
def test_the_stored_output_is_matched(name: str) -> None:
    sample = samples.light_model(name)
    got = compile(sample.model, cache=False).run(sample.inputs)
    for output, expected in sample.outputs.items():
        np.testing.assert_allclose(got[output], expected, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("name", SLOW)
def test_every_stored_tensor_is_what_float64_gives(name: str) -> None:
    sample = samples.random_model(name)
    graph, _ = optimise(import_onnx(sample.model))
    planned = plan_model(graph, replace(host_target(), kind="null"), passes=())
    parts = [part for decision in planned.decisions for part in decision.chosen.parts]
    stored = [value for part in parts for value in part.group.outputs]
    inputs = {value: graph.types[value] for value in graph.inputs}
    outputs = dict.fromkeys((*graph.outputs, *stored))
    watched = make_graph(graph.name, inputs, outputs, graph.nodes, graph.constants)
    engine = compile(watched, passes=())
    launches = len(planned.lowered.program.launches)
    assert sum(len(kernel.labels) for kernel in engine.explain().kernels) == launches
    got, expected = engine.run(sample.inputs), evaluate(watched, sample.inputs)
    worst = max(stored, key=lambda value: error(got[value], expected[value]))
    print(
        f"{name}: {len(stored)} tensors, worst '{worst}': {error(got[worst], expected[worst]):.3g}"
    )
    assert error(got[worst], expected[worst]) <= 1e-5
