"""tw.compile from end to end: small models, options refused, limits, wrong kernels and wrong
passes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from tilewright.driver.build_program import build_program
from tilewright.driver.check.program import ProgramCheckError
from tilewright.graph import compile_model
from tilewright.graph.compile import MemoryLimitError, compile
from tilewright.graph.compile_model import UntunedError
from tilewright.graph.errors import ModelError
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, rebuilt
from tilewright.graph.ops.activation import Relu, Sigmoid
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.functions import Cast
from tilewright.graph.ops.logic import Less, Where
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.softmax import Softmax
from tilewright.graph.options import OptionError
from tilewright.graph.passes import pipeline
from tilewright.graph.plan import pricing
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.samples import samples
from tilewright.graph.types import Splat, TensorType, array_of, owned
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.machine.host import CPU_VARIABLE, can_compile, host_target
from tilewright.runtime.machine.memory import process_memory
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.rules.products.contraction import ContractionRule
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.text.size import bytes_text

needs_cc = pytest.mark.needs_cc


def network() -> Graph:
    """relu(conv1x1(x) + r), NHWC, square weights."""
    rng = np.random.default_rng(0)
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (1, 6, 6, 16)))
    r = builder.input("r", TensorType("float32", (1, 6, 6, 16)))
    w = builder.constant("w", rng.standard_normal((1, 1, 16, 16)).astype("float32"))
    y = builder.add(Add(), builder.add(Conv(layout="NHWC"), x, w), r)
    return builder.finish((builder.add(Relu(), y, output="y"),))


@dataclass(frozen=True)
class Times:
    """A source that knows a time for each function name that it lists."""

    known: tuple[tuple[str, float], ...]

    def schedule(self, func: PrimFunc, target: Target) -> Schedule | None:
        return None

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        return dict(self.known).get(func.name)


def launched(engine: Engine) -> list[str]:
    return [kernel.name for kernel in engine.explain().kernels]


@needs_cc
def test_a_small_model_is_compiled_checked_and_verified() -> None:
    sample = samples.tiny_model()
    stages: list[str] = []
    engine = compile(sample.model, cache=False, progress=stages.append)
    assert stages == ["import", "plan", "build"]
    report = engine.explain()
    assert launched(engine) == [
        "conv_relu",
        "maxpool",
        "gemm",
        "softmax",
    ]
    assert set(report.proofs) == {"proved"}
    assert {kernel.check for kernel in report.kernels} == {"ok"}
    assert "fused: Conv+Relu: conv, relu" in report.notes
    assert engine.memory_plan.arena_bytes == engine.memory_plan.lower_bound_bytes
    assert engine.verify(sample.inputs)
    one, two = (engine.run(sample.inputs, threads=n)["classes"] for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.isa
@pytest.mark.needs_cc
def test_an_open_target_is_this_machine_s() -> None:
    engine = compile(network(), Target("c", threads=2), cache=False)
    usual = compile(network(), replace(host_target(), threads=2), cache=False)
    assert engine.parts.artifact.target == usual.parts.artifact.target
    assert engine.source == usual.source


@pytest.mark.isa
@pytest.mark.needs_cc
def test_an_engine_that_this_cpu_does_not_run_is_not_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(CPU_VARIABLE, "scalar")
    monkeypatch.setattr(compile_model, "rounding_more", lambda planned: ("winograd",))
    target = next(one for one in ("c:avx2", "c:neon") if can_compile(Target.parse(one)))
    engine = compile(network(), target, tolerance=1e-3)
    reason = "which this machine lacks; it has scalar"
    assert f"tolerance 0.001: not measured: {reason}" in engine.explain().notes
    assert {k.check for k in engine.explain().kernels} == {f"not run: for {target}, {reason}"}


def test_the_interpreter_serves_where_there_is_no_compiler() -> None:
    sample = samples.tiny_model()
    engine = compile(sample.model, "python", cache=False)
    assert engine.verify(sample.inputs)


@needs_cc
def test_measured_times_flip_fusion_and_algorithm_and_the_results_stay() -> None:
    rng = np.random.default_rng(1)
    feeds = {n: rng.standard_normal((1, 6, 6, 16)).astype("float32") for n in "xr"}
    sources = (
        Times((("conv_add_relu", 1e-9),)),
        Times((("matmul_add_relu", 1e-9),)),
        Times((("conv", 1e-9), ("add_relu", 1e-9))),
    )
    engines = [compile(network(), schedules=source) for source in sources]
    assert [launched(engine) for engine in engines] == [
        ["conv_add_relu"],
        ["matmul_add_relu"],
        ["conv", "add_relu"],
    ]
    results = [engine.run(feeds)["y"] for engine in engines]
    for engine, result in zip(engines, results, strict=True):
        assert engine.verify(feeds)
        np.testing.assert_allclose(result, results[0], rtol=1e-5, atol=1e-6)


@dataclass(frozen=True)
class Permuted:
    """A wrong pass: it exchanges the input and output channels of a square convolution."""

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        turned = {
            name: owned(array_of(value).swapaxes(-1, -2)) for name, value in graph.constants.items()
        }
        return rebuilt(graph, graph.nodes, turned)


@needs_cc
def test_a_permuted_weight_axis_fails_the_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing compares what a pass made, as with ours and verify="kernels"."""
    monkeypatch.setattr(pipeline, "is_ours", lambda kind: True)
    engine = compile(network(), passes=(Permuted(),), verify="kernels")
    assert not engine.verify()


@needs_cc
def test_a_pass_that_changes_results_is_undone() -> None:
    engine = compile(network(), passes=(Permuted(),), verify="all")
    assert engine.verify()
    (note,) = [n for n in engine.explain().notes if n.startswith("pass ")]
    assert note.startswith(f"pass Permuted of '{__name__}.Permuted': undone; 'conv' differs by ")


@needs_cc
def test_a_fused_kernel_that_fails_its_check_is_taken_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []

    def failing(*arguments: object, **options: object) -> Engine:
        calls.append(arguments)
        if len(calls) == 1:
            raise ProgramCheckError("net", {"conv_add_relu": "planted"})
        return build_program(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(compile_model, "build_program", failing)
    source = Times((("conv_add_relu", 1e-9),))
    engine = compile(network(), schedules=source)
    assert launched(engine) == ["conv", "add", "relu"]
    assert engine.explain().notes[0] == (
        "kernel 'conv_add_relu' was taken apart: check: 1 function(s) of 'net' have wrong kernels: "
        "'conv_add_relu': planted"
    )
    assert engine.verify()


@needs_cc
def test_a_fused_kernel_whose_rule_is_refused_is_taken_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    apply = ContractionRule.apply

    def refused(self: ContractionRule, sch: Schedule, target: Target) -> None:
        if len(sch.func.blocks) > 1:
            raise ScheduleError("split: planted.", code="split-cover")
        apply(self, sch, target)

    monkeypatch.setattr(ContractionRule, "apply", refused)
    engine = compile(network(), schedules=Times((("conv_add_relu", 1e-9),)))
    assert launched(engine) == ["conv", "add", "relu"]
    assert engine.explain().notes[0] == (
        "kernel 'conv_add_relu' was taken apart: program: function 'conv_add_relu' of 'net' should "
        "be taken apart: rule 'contraction' gave way: split: planted. [split-cover]"
    )
    assert engine.verify()


@needs_cc
def test_one_operator_whose_rule_is_refused_is_scheduled_in_a_plainer_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(self: ContractionRule, sch: Schedule, target: Target) -> None:
        raise ScheduleError("split: planted.", code="split-cover")

    monkeypatch.setattr(ContractionRule, "apply", refused)
    engine = compile(network(), cache=False)
    assert engine.verify()
    notes = [note for note in engine.explain().notes if "gave way" in note]
    assert notes[-1] == (
        "kernel 'conv': rule 'contraction' gave way: split: planted. [split-cover]; it is "
        "scheduled by rule 'reduction'"
    )


def test_what_cannot_be_scheduled_has_no_price_and_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(func: PrimFunc, target: Target, *, strict: bool, allow: object) -> float:
        if len(func.blocks) == 3:
            raise ScheduleError("split: planted.", code="split-cover")
        return 1.0

    monkeypatch.setattr(pricing, "estimate", refused)
    planned = plan_model(network(), Target.parse("c:avx2"), check=False)
    (decision,) = planned.decisions
    assert len(decision.chosen.parts) == 2
    assert str(decision.alternatives[0]) == "Conv+Add+Relu: refused: split: planted. [split-cover]"


def test_a_kernel_that_cannot_be_taken_apart_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(program: object, *_: object, **__: object) -> Engine:
        raise ProgramCheckError("net", {f.name: "planted" for f in program.functions})  # type: ignore[attr-defined]

    monkeypatch.setattr(compile_model, "build_program", failing)
    with pytest.raises(ProgramCheckError):
        compile(network(), "c:avx2")


def test_options_that_are_not_there_yet_are_refused() -> None:
    for option in ({"precision": "int8"}, {"effort": "best"}, {"deterministic": "batch"}):
        with pytest.raises(OptionError):
            compile(network(), **option)  # type: ignore[arg-type]


def test_other_models_are_refused() -> None:
    with pytest.raises(ModelError) as caught:
        compile(3)
    assert str(caught.value) == (
        "ModelError: compile: the model is a int; expected the path or the bytes of an ONNX file "
        "or of an archive of torch.export, or a ModelProto. [compile-model]\n"
        "  Hint: torch.export.save(torch.export.export(module, inputs), 'model.pt2') writes one.\n"
        "  Hint: a function of JAX is compiled with args=(...), arrays like those that it takes."
    )


def test_functions_without_a_tuned_schedule_are_refused_where_that_is_asked_for() -> None:
    for schedules in (None, lambda func, target: default_schedule(func, target)):
        with pytest.raises(UntunedError) as caught:
            compile(network(), "c:avx512", schedules=schedules, require_tuned=True)
        assert str(caught.value) == (
            "UntunedError: compile: 1 of 1 functions have no tuned schedule. [compile-untuned]\n"
            "  conv_add_relu x 1: default\n"
            "  Hint: tune the functions of tw.tasks(model), or leave out require_tuned=True.\n"
            "  Hint: `tilewright tune MODEL --log LOG` tunes a model; `tilewright log check MODEL "
            "--log LOG` says why each of them is not tuned."
        )
        assert [kernel.name for kernel in caught.value.coverage.gaps] == ["conv_add_relu"]


@needs_cc
def test_tuned_schedules_are_used() -> None:
    def tuned(func: PrimFunc, target: Target) -> Schedule:
        schedule = default_schedule(func, target)
        schedule.origin = "tuned"
        return schedule

    engine = compile(network(), schedules=tuned, require_tuned=True)
    assert engine.tuning.counts == {"tuned": 1}
    assert engine.tuning.gaps == ()


class EmptyLog:
    """A log that holds nothing."""

    def schedule(self, func: PrimFunc, target: Target) -> Schedule | None:
        return None

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        return None

    def reason(self, func: PrimFunc, target: Target) -> str:
        return "the log has no trial of it"


@needs_cc
def test_a_log_that_is_not_used_is_named_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    compile(network(), schedules=EmptyLog())
    assert [record.getMessage() for record in caplog.records] == [
        "1 of 1 kernels of 'net' have no schedule that was tuned here: the log has no trial of it"
    ]


@needs_cc
def test_more_memory_than_allowed_is_refused() -> None:
    with pytest.raises(MemoryLimitError) as caught:
        compile(network(), "c:scalar", max_bytes=1000, max_contexts=3)
    lines = str(caught.value).splitlines()
    assert lines[0] == (
        "MemoryLimitError: compile: 3 context(s) of 'net' take 1 KiB; expected at most 1000 B. "
        "[compile-memory]"
    )
    assert lines[1].startswith("  Note: weights 1 KiB (shared) + ")
    assert lines[2:] == ["  Hint: raise max_bytes, or lower max_contexts."]
    assert compile(network(), "c:scalar", max_bytes=1 << 20, max_contexts=3).max_contexts == 3


@needs_cc
def test_a_diamond_behind_an_anchor_is_one_kernel() -> None:
    """relu of v * sigmoid(v), v = conv1x1(x) + r"""
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (1, 6, 6, 16)))
    weights = np.random.default_rng(0).standard_normal((1, 1, 16, 16)).astype("float32")
    v = builder.add(Add(), builder.add(Conv(layout="NHWC"), x, builder.constant("w", weights)), x)
    y = builder.add(Relu(), builder.add(Mul(), v, builder.add(Sigmoid(), v)), output="y")
    graph = builder.finish((y,))
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 6, 6, 16)).astype("float32")}
    expected = evaluate(graph, feeds)["y"]
    engine = compile(graph, cache=False)
    assert launched(engine) == ["conv_add_2_more_relu"]
    for one in (engine, compile(graph, "python", cache=False)):
        np.testing.assert_allclose(one.run(feeds)["y"], expected, rtol=1e-5, atol=1e-5)


@needs_cc
def test_what_follows_an_anchor_may_have_another_element_type() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (48, 32)))
    mask = builder.input("mask", TensorType("bool", (1, 48)))
    zero = builder.constant("zero", Splat(0.0, "float32", ()))
    for name in "abc":
        weights = np.random.default_rng(ord(name)).integers(-3, 4, (32, 48)).astype("float32")
        builder.add(MatMul(), x, builder.constant(f"w{name}", weights), output=f"x{name}")
    builder.add(Less(), "xa", zero, output="a")
    builder.add(Cast("int32"), "xb", output="b")
    builder.add(Where(), mask, "xc", zero, output="c")
    graph = builder.finish(("a", "b", "c"))
    rng = np.random.default_rng(1)
    feeds = {
        "x": rng.integers(-3, 4, (48, 32)).astype("float32"),
        "mask": rng.random((1, 48)) < 0.5,
    }
    got, expected = compile(graph, cache=False).run(feeds), evaluate(graph, feeds)
    for name in graph.outputs:
        np.testing.assert_array_equal(got[name], expected[name])


@needs_cc
def test_scale_and_mask_before_a_softmax_are_one_kernel_with_it() -> None:
    """softmax of x * 0.125 + mask, and what follows it; rows that end in part of a vector"""
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (2, 3, 5, 37)))
    mask = builder.input("mask", TensorType("float32", (2, 1, 1, 37)))
    scaled = builder.add(Mul(), x, builder.constant("scale", Splat(0.125, "float32", ())))
    rows = builder.add(Softmax((3,)), builder.add(Add(), scaled, mask))
    graph = builder.finish((builder.add(Mul(), rows, x, output="y"),))
    rng = np.random.default_rng(1)
    feeds = {
        "x": rng.standard_normal((2, 3, 5, 37)).astype("float32"),
        "mask": np.where(rng.random((2, 1, 1, 37)) < 0.3, -1e9, 0).astype("float32"),
    }
    expected = evaluate(graph, feeds)["y"]
    engine = compile(graph, cache=False)
    assert launched(engine) == ["mul_add_softmax_mul"]
    for one in (engine, compile(graph, "python", cache=False)):
        np.testing.assert_allclose(one.run(feeds)["y"], expected, rtol=1e-5, atol=1e-6)


def test_the_end_of_memory_is_told_with_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*_: object) -> None:
        raise MemoryError("Unable to allocate 32.0 TiB")

    monkeypatch.setattr("tilewright.graph.compile_model.compile_model", greedy)
    with pytest.raises(MemoryLimitError) as caught:
        compile(samples.tiny_model().model, "python", cache=False)
    assert str(caught.value) == (
        "MemoryLimitError: compile: no memory is left; this process may take "
        f"{bytes_text(process_memory())}. [compile-no-memory]\n"
        '  Hint: verify="kernels" does not evaluate the model in float64 beside each pass.'
    )
    assert isinstance(caught.value, MemoryError)
