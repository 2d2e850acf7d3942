"""cli/reduce.py: the verb, from its arguments to the files that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import onnx

from .conftest import Command


def test_the_small_model_and_its_inputs_are_written(tilewright: Command, tiny: Path) -> None:
    line = "! grep -q Relu {model}"
    done = tilewright("reduce", tiny, "--command", line, "-o", "small.onnx")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("fails      status 1\nnodes      1 of 6: Relu\ntrials     ")
    assert done.out.endswith("; nothing more can go\nwritten    small.onnx\n           small.npz\n")
    assert [node.op_type for node in onnx.load("small.onnx").graph.node] == ["Relu"]
    done = tilewright("reduce", tiny, "--command", line, "-o", "small.onnx", "--json")
    found = json.loads(done.out)
    assert (found["nodes"], found["operators"], found["done"]) == (1, ["Relu"], True)
    done = tilewright("verify", "small.onnx", "--against", "reference", "--inputs", "small.npz")
    assert done.code == 0


def test_a_refusal_is_reduced_by_its_code(tilewright: Command, unknown_model: Path) -> None:
    given = ("--fails-with", "onnx-unsupported", "-o", "small.onnx", "--json")
    done = tilewright("reduce", unknown_model, *given)
    assert json.loads(done.out)["outcome"] == "error onnx-unsupported"


def test_what_cannot_be_reduced_is_a_usage_error(tilewright: Command, tiny: Path) -> None:
    done = tilewright("reduce", tiny, "--command", "false", "-o", "small.onnx")
    assert (done.code, done.out, done.err) == (
        2,
        "",
        "UsageError: reduce: --command 'false' names no model; expected {model} in it. "
        "[cli-reduce-command]\n  Hint: --command 'python check.py {model}'\n",
    )
    done = tilewright("reduce", tiny, "--command", "cat {model}", "-o", "small.onnx")
    assert (done.code, "[reduce-no-failure]" in done.err) == (2, True)
    assert not Path("small.onnx").exists()
    done = tilewright("reduce", tiny, "--command", "x", "--fails-with", "y", "-o", "small.onnx")
    assert (done.code, "not allowed with argument" in done.err) == (2, True)
    done = tilewright("reduce", tiny)
    assert (done.code, "-o/--output" in done.err) == (2, True)
