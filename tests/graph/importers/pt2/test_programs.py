"""Archives behind tw.compile: open sizes, what cannot be imported, what must not be forgotten."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.pt2.importer import import_pt2
from tilewright.graph.ops.attention import Attention
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate

Golden = Callable[[str, str], None]
MODELS = Path(__file__).parents[1] / "aten" / "models"


def test_one_engine_for_all_sizes() -> None:
    path = MODELS / "small.pt2"
    engine = tw.compile(path, cache=False)
    (tokens,) = engine.inputs
    assert tokens.name == "tokens"
    with pytest.raises(ValueError, match="1 to 8"):
        engine.run({"tokens": np.zeros((9, 4), np.int64)})
    with np.load(path.with_suffix(".npz")) as arrays:
        for n in range(3):
            found = engine.run({"tokens": arrays[f"in{n}"]})
            for m, array in enumerate(found.values()):
                np.testing.assert_allclose(array, arrays[f"out{n}_{m}"], rtol=2e-5, atol=2e-6)


def test_closed_by_the_exporters_symbol_or_by_the_input() -> None:
    graph = import_pt2(MODELS / "small.pt2", shapes={"tokens": (3, (2, 8, 16))})
    rows, words = graph.types["tokens"].shape
    assert rows == 3
    assert (words.low, words.high) == (2, 16)  # type: ignore[union-attr]
    symbol = words.dim.name  # type: ignore[union-attr]
    assert import_pt2(MODELS / "small.pt2", shapes={symbol: 4}).types["tokens"].shape[1] == 4


def test_attention_is_found_with_its_heads() -> None:
    graph, _ = optimise(import_pt2(MODELS / "small.pt2"))
    found = [node.op for node in graph.nodes if isinstance(node.op, Attention)]
    assert [op.heads for op in found] == [2]


def test_bytes_are_read_like_a_path() -> None:
    path = MODELS / "small.pt2"
    assert (
        str(import_pt2(path.read_bytes())).partition("(")[2]
        == str(import_pt2(path)).partition("(")[2]
    )


def test_who_saves_another_model_under_the_name_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes((MODELS / "small.pt2").read_bytes())
    words = import_pt2(path).constants["words.weight"]
    assert isinstance(words, np.ndarray)
    before = words.copy()
    with open(path, "r+b") as file:  # as torch.export.save does
        file.truncate(0)
    assert np.array_equal(words, before)
    assert not words.flags.writeable


@pytest.mark.parametrize(
    "name",
    ["counts", "writes_before", "writes_dropped", "writes_input", "writes_view", "unknown"],
)
def test_refusals(name: str, golden: Golden) -> None:
    with pytest.raises(UnsupportedOperator) as caught:
        tw.compile(MODELS / f"{name}.pt2")
    golden(f"errors/pt2_{name}.txt", str(caught.value))


def test_sizes_outside_of_what_was_exported(golden: Golden) -> None:
    with pytest.raises(ModelError) as caught:
        import_pt2(MODELS / "small.pt2", shapes={"tokens": (1, (1, 8, 64))})
    golden("errors/pt2_range.txt", str(caught.value))


def test_views_of_what_was_written_are_views_of_the_new_value() -> None:
    x = np.random.default_rng(0).standard_normal((3, 3), np.float32)
    graph = import_pt2(MODELS / "writes_seen.pt2")
    turned, flat = evaluate(graph, {graph.inputs[0]: x}, dtype=None).values()
    np.testing.assert_allclose(turned, (x * 2 + 1).T, rtol=1e-6)
    np.testing.assert_allclose(flat, (x * 2 + 1).reshape(1, 9), rtol=1e-6)


def test_a_name_that_was_written_to_is_the_new_value() -> None:
    """torch 2.13 reads what the operator gave; another exporter may read what it wrote to."""
    path = MODELS.parent / "views.pt2"
    made = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("models/model.json"):
                program = json.loads(data)
                written, reader = program["graph_module"]["graph"]["nodes"][1:3]
                target = written["inputs"][0]["arg"]["as_tensor"]["name"]
                assert reader["inputs"][0]["arg"]["as_tensor"]["name"] == written["name"]
                reader["inputs"][0]["arg"]["as_tensor"]["name"] = target
                data = json.dumps(program).encode()
            new.writestr(name, data)
    graph = import_pt2(made.getvalue())
    with np.load(path.with_suffix(".npz")) as arrays:
        given = {name: arrays[f"in{n}"] for n, name in enumerate(graph.inputs)}
        expected = arrays["out000"]
    found = evaluate(graph, given)
    np.testing.assert_allclose(found[graph.outputs[0]], expected)


def test_an_input_may_be_a_constant() -> None:
    tokens = np.zeros((2, 6), np.int64)
    graph = import_pt2(MODELS / "small.pt2", constants={"tokens": tokens})
    assert graph.inputs == ()
