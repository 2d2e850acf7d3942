"""No verb sends a terminal anything but text, whatever a model or a log calls its parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.autotune.samples import trial, workload
from tilewright.autotune.log.file import LogWriter
from tilewright.cli.guarded import GuardedOutput
from tilewright.graph.samples.samples import tiny_model

from .conftest import Command, Done

ESC = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e\x85\x00\r\x0b\u2028"


def is_text(done: Done) -> bool:
    return all(c.isprintable() or c in "\n\t" for c in done.out + done.err)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with every name made hostile."""
    model = tiny_model().model
    graph = model.graph
    graph.name = f"g{ESC}"
    for node in graph.node:
        node.name = f"{node.name}{ESC}"
        node.input[:] = [name and f"{name}{ESC}" for name in node.input]
        node.output[:] = [name and f"{name}{ESC}" for name in node.output]
    for item in (*graph.input, *graph.output, *graph.initializer):
        item.name = f"{item.name}{ESC}"
    path = tmp_path_factory.mktemp("models") / "hostile.onnx"
    onnx.save(model, path)
    return path


def refused_models(folder: Path) -> list[Path]:
    """Models that are refused by messages with names in them."""
    x = helper.make_tensor_value_info(f"x{ESC}", TensorProto.FLOAT, ["n" + ESC, 4])
    y = helper.make_empty_tensor_value_info(f"y{ESC}")
    nodes = {
        "unknown": helper.make_node("F" + ESC, [x.name], [y.name], ESC, domain=ESC),
        "undefined": helper.make_node("Relu", ["ghost" + ESC], [y.name], ESC),
        "open": helper.make_node("Relu", [x.name], [y.name], ESC),
        "attribute": helper.make_node("Relu", [x.name], [y.name], ESC, **{"a" + ESC: 1}),
        "rank": helper.make_node("MatMul", [x.name, "w" + ESC], [y.name], ESC),
    }
    weights = numpy_helper.from_array(np.ones((5, 2), np.float32), "w" + ESC)
    x.type.tensor_type.shape.dim[0].dim_value = 3
    bare = helper.make_empty_tensor_value_info(x.name)
    bare.type.tensor_type.elem_type = TensorProto.FLOAT
    paths = []
    for name, node in nodes.items():
        given = bare if name == "open" else x
        graph = helper.make_graph([node], "g" + ESC, [given], [y], [weights])
        opset = helper.make_opsetid("", 17)
        path = folder / f"{name}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
        paths.append(path)
    return paths


def write_log(path: Path) -> None:
    """Trials of a function, by a compiler and on a processor, with such names."""
    made = trial(1, outcome="crashed")
    there = replace(made.conditions, cpu=f"cpu{ESC}", compiler=f"cc{ESC}")
    with LogWriter(path) as writer:
        writer.append(replace(workload(), name=f"scaled{ESC}"), trial(0))
        writer.append(replace(made, conditions=there, text=f"what{ESC}"))


@pytest.mark.needs_cc
def test_no_verb_shows_anything_but_text(
    tilewright: Command, hostile: Path, tmp_path: Path
) -> None:
    engine, log = tmp_path / "m.twe", tmp_path / "log.jsonl"
    write_log(log)
    commands = [
        ("explain", hostile),
        ("run", hostile, "--check"),
        ("compile", hostile, "-o", engine),
        ("explain", engine),
        ("run", engine, "--json"),
        ("explain", engine, "--json"),
        ("export-c", hostile, "-o", tmp_path / "out"),
        ("log", "show", log),
        ("log", "check", hostile, "--log", log),
        ("log", "best", log),
        ("log", "export", log),
        ("log", "watch", log, "--seconds", "0"),
    ]
    for command in commands:
        done = tilewright(*command)
        assert is_text(done), command
        if command[0] in ("explain", "run", "compile"):
            assert done.code == 0, done.err
    assert "owned" in tilewright("explain", hostile).out


def test_no_error_shows_anything_but_text(tilewright: Command, tmp_path: Path) -> None:
    for path in refused_models(tmp_path):
        for verb in ("explain", "run"):
            done = tilewright(verb, path)
            assert done.code in (2, 3)
            assert is_text(done), path
            assert "\\x1b]0;owned" in done.err, path


def test_on_a_terminal_our_own_colours_pass_and_no_others() -> None:
    class Terminal:
        def __init__(self) -> None:
            self.text = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            self.text += text
            return len(text)

    terminal = Terminal()
    guarded = GuardedOutput(terminal)  # type: ignore[arg-type]
    guarded.write("\x1b[1mstrong\x1b[0m \x1b[5mblinking\x1b[2J\n")
    assert terminal.text == "\x1b[1mstrong\x1b[0m \\x1b[5mblinking\\x1b[2J\n"
