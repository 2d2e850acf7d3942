"""Whatever a model calls its parts: it is refused, or what `save` writes `load` reads and runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tilewright.driver.load import load
from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ops.activation import Relu
from tilewright.graph.types import TensorType
from tilewright.runtime.engine.format import EngineFileError

NAMES = (
    "plain",
    "a b",
    "n" * 1024,
    "\u00fcn\u00efc\u00f6de \U0001f600" * 30,
    "new\nline\rreturn\ttab",
    "\0nul",
    "\x1b[2J\x1b]0;title\a",
    "\u202eright to left\u2066",
    "*/ int x; /*",
    "??/ trigraph \\",
    "int",
    "../../etc/passwd",
    "quote \" and ' and `",
    "{0} %s $HOME",
    "[1, 2]",
    "\u2028\u2029\x85",
)
PARTS = ("graph", "node", "input", "output", "constant")


def named_model(**names: str) -> ModelProto:
    """y = relu(x + c), parts of it called as `names` say."""
    called = {part: names.get(part, f"own_{part}") for part in PARTS}
    c = numpy_helper.from_array(np.array([1, -2, 3], np.float32), called["constant"])
    graph = helper.make_graph(
        [
            helper.make_node("Add", [called["input"], called["constant"]], ["s"], name="first"),
            helper.make_node("Relu", ["s"], [called["output"]], name=called["node"]),
        ],
        called["graph"],
        [helper.make_tensor_value_info(called["input"], TensorProto.FLOAT, [3])],
        [helper.make_empty_tensor_value_info(called["output"])],
        [c],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check_saved(model: ModelProto | object, path: Path, target: str, names: dict[str, str]) -> None:
    engine = compile(model, target, cache=False)  # type: ignore[arg-type]
    x, y = names.get("input", "own_input"), names.get("output", "own_output")
    again = load(engine.save(path))
    array = np.array([-4, 5, -1], np.float32)
    assert again.run({x: array})[y].tolist() == [0, 3, 2]
    assert again.name == engine.name
    assert str(again.explain()) == str(engine.explain())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", PARTS)
def test_what_save_writes_load_reads_whatever_a_part_is_called(part: str, tmp_path: Path) -> None:
    for number, name in enumerate(NAMES):
        check_saved(named_model(**{part: name}), tmp_path / f"{number}.twe", "python", {part: name})


@pytest.mark.needs_cc
def test_compiled_engines_too(tmp_path: Path) -> None:
    count = len(NAMES)
    for number, name in enumerate(NAMES[2:9]):
        others = (NAMES[(number + k) % count] + str(k) for k in range(1, 5))
        names = dict(zip(PARTS, (name, *(other[:1024] for other in others)), strict=True))
        check_saved(named_model(**names), tmp_path / f"{number}.twe", "c", names)


def test_the_name_of_a_model_is_cut(tmp_path: Path) -> None:
    model = named_model(graph="g" * 100_000)
    assert import_onnx(model).name == "g" * 200
    check_saved(model, tmp_path / "long.twe", "python", {})


@pytest.mark.parametrize("part", PARTS[1:])
def test_other_names_that_are_too_long_are_refused(part: str) -> None:
    with pytest.raises(ModelError) as caught:
        import_onnx(named_model(**{part: "n" * 1025}))
    assert str(caught.value) == (
        f"ModelError: model: the name '{'n' * 40}...' has 1025 characters; expected at most 1024. "
        "[onnx-name]"
    )


@pytest.mark.needs_cc
def test_what_load_would_refuse_is_not_written(tmp_path: Path) -> None:
    builder = GraphBuilder("long")
    x = builder.input("x" * 5000, TensorType("float32", (3,)))
    engine = compile(builder.finish((builder.add(Relu(), x, output="y"),)), "c", cache=False)
    with pytest.raises(EngineFileError) as caught:
        engine.save(tmp_path / "long.twe")
    first = str(caught.value)
    assert first.startswith("EngineFileError: engine file: 'long' cannot be kept: json: program.")
    assert first.endswith("expected a text of at most 4096 characters. [engine-file-unreadable]")
    assert not list(tmp_path.iterdir())


def test_a_label_of_many_nodes_is_cut_where_it_is_written(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", [f"v{n}"], [f"v{n + 1}"], name=f"{n}" + "n" * 1000)
        for n in range(80)
    ]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [3])],
        [helper.make_empty_tensor_value_info("v80")],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    assert isinstance(model, onnx.ModelProto)
    engine = load(compile(model, "python", cache=False).save(tmp_path / "chain.twe"))
    assert engine.run({"v0": np.array([-1, 0, 2], np.float32)})["v80"].tolist() == [0, 0, 2]
