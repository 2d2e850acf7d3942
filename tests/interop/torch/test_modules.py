"""tw.compile of modules of torch, and of ExportedPrograms, without a file between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")

from tilewright.graph.errors import ModelError  # noqa: E402
from tilewright.graph.importers.fx.exported import program_of  # noqa: E402
from tilewright.graph.importers.fx.tensors import ArrayReader  # noqa: E402

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]


class Words(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Two inputs, a tied weight, a view of a weight and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(20, 8)
        self.out = torch.nn.Linear(8, 20, bias=False)
        self.out.weight = self.words.weight
        self.register_buffer("shift", torch.arange(16.0)[::2])

    def forward(self, tokens: Any, scale: Any) -> Any:
        return self.out(self.words(tokens) * scale + self.shift)


@pytest.fixture
def model() -> Words:
    torch.manual_seed(0)
    return Words().eval()


TOKENS, SCALE = torch.randint(0, 20, (2, 6)), torch.randn(6, 8)


def values(model: Words) -> Any:
    with torch.no_grad():
        return model(TOKENS, SCALE)


def test_a_module_is_followed_with_example_inputs(model: Words) -> None:
    engine = tw.compile(model, args=(TOKENS,), kwargs={"scale": SCALE})
    assert [spec.name for spec in engine.inputs] == ["tokens", "scale"]
    got = engine(TOKENS, SCALE)
    np.testing.assert_allclose(got, values(model), rtol=1e-5, atol=1e-5)
    assert engine.name == "Words"


def test_an_engine_keeps_the_weights_that_it_was_made_with(model: Words) -> None:
    engine, expected = tw.compile(model, args=(TOKENS, SCALE)), values(model)
    with torch.no_grad():
        model.words.weight.zero_()
    np.testing.assert_allclose(engine(TOKENS, SCALE), expected, rtol=1e-5, atol=1e-5)
    assert engine.verify()


def test_shapes_leave_sizes_of_a_module_open(model: Words) -> None:
    shapes = {"tokens": ((1, 2, 8), 6)}
    engine = tw.compile(model, args=(TOKENS, SCALE), shapes=shapes)
    for batch in (1, 3, 8):
        tokens = torch.randint(0, 20, (batch, 6))
        with torch.no_grad():
            expected = model(tokens, SCALE)
        np.testing.assert_allclose(engine(tokens, SCALE), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:No complete tensor:UserWarning")  # of torch's, on views
def test_an_exported_program_is_what_its_archive_holds(model: Words, tmp_path: Path) -> None:
    exported, path = torch.export.export(model, (TOKENS, SCALE)), tmp_path / "model.pt2"
    torch.export.save(exported, path)
    of_object, of_file = tw.compile(exported), tw.compile(path)
    assert of_object.source == of_file.source
    assert np.array_equal(of_object(TOKENS, SCALE), of_file(TOKENS, SCALE))
    assert of_object.memory_plan.weights_bytes == of_file.memory_plan.weights_bytes


def test_a_second_compile_finds_the_engine(model: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    tw.compile(model, args=(TOKENS, SCALE))
    built: list[object] = []
    monkeypatch.setattr(
        "tilewright.graph.compile_model.compile_model", lambda *args: built.append(args)
    )
    assert tw.compile(model, args=(TOKENS, SCALE)).name == "Words"
    assert not built
    with torch.no_grad():
        model.words.weight.mul_(2)
    with pytest.raises(AttributeError):  # what builds is not there
        tw.compile(model, args=(TOKENS, SCALE))
    assert len(built) == 1


def test_weights_of_16_bits(model: Words) -> None:
    model = model.to(torch.bfloat16)
    scale = SCALE.to(torch.bfloat16)
    engine = tw.compile(model, args=(TOKENS, scale))
    with torch.no_grad():
        theirs = model(TOKENS, scale).float()
        exact = model.float()(TOKENS, scale.float())
    ours = engine.run({"tokens": TOKENS, "scale": _bits(scale)})["linear"].astype("f4")
    error = (torch.from_numpy(ours) - exact).abs().max()
    assert 0 < error <= 1.5 * (theirs - exact).abs().max()


def _bits(tensor: Any) -> Any:
    """The elements as NumPy has them, with the type of ml_dtypes."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    return tensor.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)


def refused(model: Any, **given: Any) -> Any:
    with pytest.raises(ModelError) as caught:
        tw.compile(model, **given)
    return caught.value


def test_a_module_without_inputs_is_refused(model: Words) -> None:
    assert refused(model).code == "module-args"


def test_a_module_in_training_mode_is_refused(model: Words) -> None:
    assert refused(model.train(), args=(TOKENS, SCALE)).code == "module-training"


def test_shapes_of_no_argument_are_refused(model: Words) -> None:
    given = {"args": (TOKENS, SCALE), "shapes": {"words": (1, 2)}}
    assert refused(model, **given).code == "module-shapes"


def test_a_module_without_elements_is_refused(model: Words) -> None:
    error = refused(model.to("meta"), args=(TOKENS.to("meta"), SCALE.to("meta")))
    assert error.code == "torch-tensor"
    assert "load_state_dict" in str(error)


def test_tensors_that_are_no_plain_ones_are_refused_with_the_way_out() -> None:
    wrapped = type("Int8Tensor", (torch.Tensor,), {"__module__": "torchao.quantization"})
    for tensor, hint in (
        (torch.ones(2).as_subclass(wrapped), "torchao.utils.unwrap_tensor_subclass(model) makes"),
        (torch.ones(2, 2).to_sparse(), "tensor.to_dense() makes one."),
        (torch.ones(2).to(torch.float8_e8m0fnu), "model.to(torch.float32)"),
    ):
        with pytest.raises(ModelError) as caught:
            ArrayReader().read("weight 'w'", tensor)
        assert hint in str(caught.value)


def test_a_program_that_changes_a_buffer_is_refused() -> None:
    class Counting(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x: Any) -> Any:
            self.seen.add_(x)
            return self.seen * 2

    error = refused(Counting().eval(), args=(torch.ones(3),))
    assert "seen" in str(error) or "buffer" in str(error)


def test_a_view_of_a_weight_and_tied_weights_are_read(model: Words) -> None:
    exported = torch.export.export(model, (TOKENS, SCALE))
    program = program_of(exported)
    arrays = {program.buffers[key]: one for key, one in program.constants.items()}
    assert arrays["words.weight"] is arrays["out.weight"]
    np.testing.assert_array_equal(arrays["shift"], np.arange(16.0)[::2])


class Doubled(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Takes two inputs, of which one has twice as many rows, and one more."""

    def forward(self, x: Any, y: Any) -> Any:
        return x.repeat(2, 1) + y[1:]


def doubled() -> Any:
    rows = torch.export.Dim("rows", min=1, max=32)
    given = torch.randn(3, 4), torch.randn(7, 4)
    return torch.export.export(
        Doubled().eval(), given, dynamic_shapes={"x": {0: rows}, "y": {0: 2 * rows + 1}}
    )


def test_a_size_may_be_computed_from_others() -> None:
    engine = tw.compile(doubled())
    for rows in (1, 5, 32):
        x, y = torch.randn(rows, 4), torch.randn(2 * rows + 1, 4)
        np.testing.assert_allclose(engine(x, y), Doubled()(x, y), rtol=1e-6)
    with pytest.raises(ValueError, match="argument-sizes"):
        engine(torch.randn(3, 4), torch.randn(8, 4))
    closed = tw.compile(doubled(), shapes={"x": (4, 4)})
    assert [spec.shape for spec in closed.inputs] == [(4, 4), (9, 4)]


def test_a_size_that_others_contradict_is_refused() -> None:
    error = refused(doubled(), shapes={"x": (4, 4), "y": (8, 4)})
    assert error.code == "aten-derived-size"
