"""cli/verify.py: the verb, from its arguments to its exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from onnx.reference.ops.op_relu import Relu

from .conftest import Command

REFERENCE = ("--against", "reference", "--target", "python")


def test_a_model_that_is_equal_ends_with_0(tilewright: Command, tiny: Path) -> None:
    done = tilewright("verify", tiny, *REFERENCE, "--intermediates", "--seeds", "2")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^against +the reference of onnx \S+, 2 runs$", done.out, re.MULTILINE)
    assert re.search(
        r"^classes  float32\[1, 10\]  \S+ +\S+ +\S+  \[0, \d\], seed \d  \S+  \S+ +0$",
        done.out,
        re.MULTILINE,
    )
    assert "inside     6 values within compared; none differs" in done.out
    assert done.out.endswith("result     equal within bounds\n")


def test_a_difference_ends_with_1_and_names_its_node(
    tilewright: Command, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Relu._run
    monkeypatch.setattr(Relu, "_run", lambda self, x: (right(self, x)[0] + np.float32(0.1),))
    done = tilewright("verify", tiny, *REFERENCE, "--intermediates", "--json")
    found = json.loads(done.out)
    assert (done.code, found["equal"], found["runs"]) == (1, False, 3)
    assert found["outputs"][0]["equal"] is False
    first = found["inside"]["first"]
    assert (first["operator"], first["kept"], first["alone"]["equal"]) == ("Relu", True, False)
    assert first["inputs"][0]["shape"] == [1, 4, 8, 8]
    done = tilewright("verify", tiny, *REFERENCE, "--rtol", "1e6")
    assert (done.code, "result     equal within bounds" in done.out) == (0, True)
    done = tilewright("verify", tiny, *REFERENCE, "--intermediates")
    assert (done.code, "result     different" in done.out) == (1, True)
    assert "(Relu): the first differing value of an engine" in done.out


def test_an_engine_is_compared_with_its_model(tilewright: Command, tiny: Path) -> None:
    assert tilewright("compile", tiny, "--target", "python", "-o", "tiny.twe").code == 0
    image = np.full((1, 3, 8, 8), 0.5, np.float32)
    np.savez("in.npz", image=image)
    given = ("tiny.twe", "--against", "reference", "--inputs", "in.npz")
    done = tilewright("verify", *given, "--model", tiny)
    assert (done.code, "1 run\n" in done.out) == (0, True)
    done = tilewright("verify", *given)
    assert (done.code, done.out, done.err) == (
        2,
        "",
        "UsageError: verify: 'tiny.twe' is an engine, which other systems cannot run; expected its "
        "model, too. [cli-verify-model]\n  Hint: tilewright verify tiny.twe --model MODEL.onnx\n",
    )
    done = tilewright("verify", *given, "--model", tiny, "--intermediates")
    assert (done.code, done.out, done.err) == (
        2,
        "",
        "UsageError: verify: --intermediates is given with the engine 'tiny.twe'; expected a "
        "model, of which engines that keep values within can be compiled. [cli-verify-inside]\n",
    )


def test_what_contradicts_is_a_usage_error(tilewright: Command) -> None:
    done = tilewright("verify", "a.onnx", "--model", "b.onnx", "--against", "reference")
    assert (done.code, done.out, done.err) == (
        2,
        "",
        "UsageError: verify: --model is given with 'a.onnx', which is no engine; expected one of "
        "both. [cli-verify-both]\n",
    )
    done = tilewright("verify", "a.onnx", "--against", "tensorrt")
    assert (done.code, "invalid choice: 'tensorrt'" in done.err) == (2, True)
    done = tilewright("verify", "a.onnx", "--seeds", "0")
    assert (done.code, "'0' is below 1" in done.err) == (2, True)


def test_without_onnxruntime_it_says_how_to_install_it(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.graph.verification.systems.find_spec", lambda name: None)
    done = tilewright("verify", "a.onnx")
    assert (done.code, done.out) == (4, "")
    assert "Hint: python -m pip install onnxruntime" in done.err
