"""Engines whose products have operands of 16 bits: values, what is said of them, what is kept."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from tilewright.driver.load import load
from tilewright.graph.compile import compile
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.matmul import Gemm, MatMul
from tilewright.graph.ops.movement import Reshape
from tilewright.graph.ops.pooling import MaxPool
from tilewright.graph.precision.halves import PrecisionError
from tilewright.graph.reference.compare import relative_rms
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.samples import samples
from tilewright.graph.types import Array, TensorType, owned
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.machine.host import CPU_VARIABLE, why_not_run
from tilewright.tir.dim import Dim
from tilewright.tir.sizes import size_of
from tilewright.tir.target.target import Target

from ...exported import exported
from ...isas import HERE

pytestmark = pytest.mark.needs_cc

PAIRS = Target.parse("c:avx512+bf16")  # at its nominal rate, which multiplies pairs of bfloat16
TARGETS = [name for name in (str(PAIRS), *HERE) if why_not_run(Target.parse(name)) is None]
rng = np.random.default_rng(0)


def weights(*shape: int) -> Array:
    numbers = rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))
    return owned(numbers.astype(np.float32))


def classifier(rows: int = 1, width: int = 384, classes: int = 64) -> Graph:
    """Two layers of which the second adds what it reads, and a layer of classes."""
    builder = GraphBuilder("classifier")
    x = builder.input("x", TensorType("float32", (rows, width)))
    w0, w1 = (builder.constant(f"w{n}", weights(width, width)) for n in range(2))
    r = builder.add(Relu(), builder.add(MatMul(), x, w0, output="m0", name="fc0"), output="r")
    s = builder.add(Add(), builder.add(MatMul(), r, w1, output="m1", name="fc1"), r, output="s")
    w2 = builder.constant("w2", owned(np.ascontiguousarray(weights(width, classes).T)))
    bias = builder.constant("b", weights(classes))
    y = builder.add(Gemm(trans_b=True), s, w2, bias, output="logits", name="fc2")
    return builder.finish((y,))


def images() -> Graph:
    """Convolutions of 3x3 and 1x1 windows with bias, a residual sum, a pooling, classes."""
    builder = GraphBuilder("images")
    x = builder.input("x", TensorType("float32", (1, 16, 10, 10)))
    shapes = {"w0": (32, 16, 3, 3), "w1": (32, 32, 1, 1), "w2": (32, 32, 3, 3)}
    w = {name: builder.constant(name, weights(*shape)) for name, shape in shapes.items()}
    b = builder.constant("b", weights(32))
    a = builder.add(Relu(), builder.add(Conv(pads=(1, 1, 1, 1)), x, w["w0"], b, name="conv0"))
    c = builder.add(Relu(), builder.add(Conv(), a, w["w1"], b, name="conv1"))
    d = builder.add(Conv(pads=(1, 1, 1, 1), strides=(2, 2)), c, w["w2"], name="conv2")
    e = builder.add(Relu(), builder.add(Add(), d, builder.add(MaxPool((2, 2), (2, 2)), a)))
    flat = builder.add(Reshape((1, 800)), e)
    y = builder.add(MatMul(), flat, builder.constant("w3", weights(800, 10)), name="fc")
    return builder.finish({"logits": y})


ALL = {
    "classifier": ("fc0", "fc1", "fc2"),
    "images": ("conv0", "conv1", "conv2", "fc"),
}
MODELS = {"classifier": classifier, "images": images}


def beside_floats(engine: Engine, graph: Graph, seed: int = 1) -> tuple[float, bool]:
    """The relative rms of the logits, and whether the first class of each row is the model's."""
    given = engine.random_inputs(seed)
    got, wanted = engine.run(given)["logits"], evaluate(graph, given)["logits"]
    return relative_rms(got, wanted), bool(np.all(got.argmax(-1) == wanted.argmax(-1)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize("target", TARGETS)
def test_named_products_are_off_by_what_rounding_their_operands_is(
    target: str, kind: str, model: str
) -> None:
    graph = MODELS[model]()
    engine = compile(graph, target, precision=dict.fromkeys(ALL[model], kind), cache=False)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    assert engine.explain().whole.startswith("ok")
    assert len(engine.explain().precision.rounded) == len(ALL[model])
    assert engine.verify()
    error, same = beside_floats(engine, graph)
    assert same
    step = 2**-8 if kind == "bfloat16" else 2**-11
    assert step / 10 < error < min(1e-2, 4 * step)


def test_pairs_of_bfloat16_are_multiplied_where_the_processor_does_it() -> None:
    engine = compile(images(), PAIRS, precision="bfloat16", cache=False)
    report, plain = engine.explain(), compile(images(), PAIRS, cache=False).explain()
    assert any(one.precision == "data and weights in bfloat16" for one in report.precision.rounded)
    assert any(kernel.rule == "dots" for kernel in report.kernels)
    # rounding runs in the kernels that make the data
    assert len(report.order) == len(plain.order)
    assert "_mm512_dpbf16_ps(" in str(engine.source)
    assert "dpbf16" not in str(compile(images(), HERE[0], cache=False).source)


def test_windows_that_reach_past_an_image_multiply_pairs_too() -> None:
    asked = {"conv2": "bfloat16"}
    report = compile(images(), PAIRS, precision=asked, verify="off", cache=False).explain()
    (layer,) = report.precision.rounded
    assert layer.precision == "data and weights in bfloat16"
    assert [k.rule for k in report.kernels if "halfconv" in k.name] == ["dots"]


def test_a_few_rows_get_weights_of_16_bits_and_many_rows_stay_float32() -> None:
    one = compile(classifier(1, 1024), "c:avx2", precision="float16", verify="off", cache=False)
    assert len(one.explain().precision.rounded) == 3
    many = compile(classifier(256), "c:avx2", precision="float16", verify="off", cache=False)
    assert many.explain().precision.rounded == ()
    (one,) = (layer for layer in many.explain().precision.layers if layer.layer == "fc1")
    assert (one.precision, one.reason) == ("float32", "not clearly faster in float16")
    assert one.times is not None
    assert one.times.is_estimate
    assert one.times.narrow > 0.9 * one.times.floats
    plain = compile(classifier(256), "c:avx2", verify="off", cache=False)
    assert [k.name for k in many.explain().kernels] == [k.name for k in plain.explain().kernels]


def test_open_sizes_are_priced_at_the_usual_ones() -> None:
    batch = Dim("batch", low=1, high=8, typical=2)
    builder = GraphBuilder("open")
    x = builder.input("x", TensorType("float32", (size_of(batch), 512)))
    w = builder.constant("w", weights(512, 512))
    graph = builder.finish({"logits": builder.add(MatMul(), x, w, name="fc")})
    engine = compile(graph, HERE[0], precision="float16", cache=False)
    (one,) = engine.explain().precision.rounded
    assert (one.layer, one.precision) == ("fc", "weights in float16")
    for rows in (1, 5, 8):
        given = {"x": rng.standard_normal((rows, 512)).astype(np.float32)}
        assert engine.verify(given)


def test_the_error_beside_the_model_in_float64_is_said() -> None:
    engine = compile(classifier(), HERE[0], precision={"fc0": "float16"}, cache=False)
    (line,) = engine.explain().precision.accuracy
    assert line.startswith("beside the model in float64, 'logits' is off by 0.000")
    assert line.endswith(" of its root mean square, on random data")


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_verify_allows_what_was_declared_and_no_more(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data in bfloat16 explain some thousandths of the largest logit, weights alone nothing."""
    for target, kind in ((TARGETS[0], "bfloat16"), (HERE[0], "float16")):
        precision = dict.fromkeys(ALL["classifier"], kind)
        engine = compile(classifier(16), target, precision=precision, cache=False)
        given = engine.random_inputs(3)
        right = engine.run(given)
        assert engine.verify(given)
        off = {name: array + share * np.abs(array).max() for name, array in right.items()}
        monkeypatch.setattr(engine, "run", lambda inputs, off=off: off)
        assert not engine.verify(given)


def test_weights_of_16_bits_alone_are_held_to_what_float32_is() -> None:
    engine = compile(classifier(), HERE[0], precision={"fc1": "float16"}, cache=False)
    (output,) = engine.verify().outputs
    assert output.rounding is None
    assert output.share < 1
    assert output.error < 1e-5 * 10


@pytest.mark.parametrize("target", TARGETS[:2])
def test_a_saved_engine_keeps_what_was_rounded(tmp_path: Path, target: str) -> None:
    precision = dict.fromkeys(ALL["classifier"], "bfloat16")
    engine = compile(classifier(), target, precision=precision, cache=False)
    engine.save(tmp_path / "half.twe")
    twin = load(tmp_path / "half.twe")
    report = engine.explain()
    assert len(report.precision.rounded) == len(precision)
    assert twin.explain().precision == report.precision
    assert twin.explain().allow == report.allow == ("vdpbf16ps",)
    assert str(report.precision) in str(twin.explain())
    given = engine.random_inputs(2)
    np.testing.assert_array_equal(twin.run(given)["logits"], engine.run(given)["logits"])
    assert twin.verify(given)


@pytest.mark.skipif(HERE[0] == "c:scalar", reason="nothing is lesser than this machine")
def test_an_engine_that_is_built_anew_keeps_what_was_rounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precision = dict.fromkeys(ALL["classifier"], "bfloat16")
    engine = compile(classifier(), HERE[0], precision=precision, cache=False)
    engine.save(tmp_path / "half.twe")
    monkeypatch.setenv(CPU_VARIABLE, "scalar")
    twin = load(tmp_path / "half.twe")
    report = twin.explain()
    assert any(note.startswith("built anew") for note in report.notes)
    assert report.precision.rounded
    assert (report.precision, report.allow) == (engine.explain().precision, ("vdpbf16ps",))
    assert twin.verify()


@pytest.mark.skipif(HERE[0] == "c:scalar", reason="nothing is lesser than this machine")
def test_a_variant_that_is_built_anew_keeps_what_was_rounded_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = GraphBuilder("open")
    batch = Dim("batch", low=1, high=64, typical=32)
    x = builder.input("x", TensorType("float32", (size_of(batch), 256)))
    w = builder.constant("w", weights(256, 64))
    graph = builder.finish({"logits": builder.add(MatMul(), x, w, name="fc")})
    how = {"precision": {"fc": "float16"}, "verify": "off", "specialise": [{"batch": 1}]}
    engine = compile(graph, HERE[0], cache=False, **how)  # type: ignore[call-overload]
    engine.save(tmp_path / "half.twe")
    monkeypatch.setenv(CPU_VARIABLE, "scalar")
    whole, anew = engine.explain(), load(tmp_path / "half.twe").explain()
    (before,), (after,) = whole.variants, anew.variants
    assert after[1].precision == before[1].precision != whole.precision
    assert anew.precision == whole.precision


def test_a_file_holds_weights_of_16_bits_alone(tmp_path: Path) -> None:
    sizes = {}
    for name, precision in (
        ("wide", "float32"),
        ("half", dict.fromkeys(ALL["classifier"], "float16")),
    ):
        engine = compile(classifier(), HERE[0], precision=precision, cache=False)
        engine.save(tmp_path / name)
        sizes[name] = (tmp_path / name).stat().st_size
    assert sizes["half"] < 0.6 * sizes["wide"]


@pytest.mark.parametrize("target", TARGETS)
def test_exported_c_gives_the_bits_of_the_engine(tmp_path: Path, target: str) -> None:
    precision = dict.fromkeys(ALL["images"], "bfloat16")
    engine = compile(images(), target, precision=precision, cache=False, verify="off")
    library, weights = exported(engine, tmp_path)
    given = engine.random_inputs(1)
    made = np.empty((1, 10), np.float32)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (given["x"], made)]
    run = library[f"{engine.name}_run"]
    assert run(weights, *pointers, None, 1) == 0
    np.testing.assert_array_equal(made, engine.run(given)["logits"])


def test_the_cache_tells_precisions_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    model = samples.tiny_model().model
    products = [n.name or n.output[0] for n in model.graph.node if n.op_type in ("Conv", "Gemm")]
    found = []
    for precision in ("float32", {products[-1]: "float16"}, {products[-1]: "bfloat16"}):
        for _ in range(2):
            stages: list[str] = []
            engine = compile(model, HERE[0], precision=precision, progress=stages.append)
            found.append(("build" in stages, engine.explain().precision.rounded))
    built, said = zip(*found, strict=True)
    assert built == (True, False) * 3
    assert [len(one) for one in said] == [0, 0, 1, 1, 1, 1]
    assert said[2] == said[3] != said[4]


def test_names_that_are_no_products_are_refused_by_compile() -> None:
    with pytest.raises(PrecisionError, match=r"precision names 'fc9'.*'fc0'.*\[precision-name\]"):
        compile(classifier(), HERE[0], precision={"fc9": "bfloat16"}, cache=False)
