"""cli/constants.py: the values of inputs, read and handed on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tilewright.cli.constants import constants_of
from tilewright.cli.errors import UsageError

from .conftest import Command

SUMS = """<ir_version: 9, opset_import: ["" : 17]>
    sums (float[2, 3] x, int64[1] axes) => (float[n, 1] y) { y = ReduceSum (x, axes) }
"""
HINT = "\n  Hint: --constants k=5, --constants axes=[1], or --constants mask=@mask.npy."


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sum over axes that are an input."""
    path = tmp_path_factory.mktemp("models") / "sums.onnx"
    onnx.save(onnx.parser.parse_model(SUMS), path)
    return path


def test_values_are_json_or_files(tmp_path: Path) -> None:
    np.save(tmp_path / "mask.npy", np.array([True, False]))
    texts = ["k=5", "axes=[1]", "a=[[1, 2.5]]", "b=true", f"mask=@{tmp_path / 'mask.npy'}"]
    found = constants_of(texts)
    mask = found.pop("mask")
    assert found == {"k": 5, "axes": [1], "a": [[1, 2.5]], "b": True}
    np.testing.assert_array_equal(mask, [True, False])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("axes", "NAME=VALUE"),
        ("=1", "NAME=VALUE"),
        ("axes=", "numbers in JSON"),
        ("axes=(1,)", "numbers in JSON"),
        ('axes="1"', "numbers in JSON"),
    ],
)
def test_what_is_no_value_is_refused(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        constants_of([text])
    assert str(caught.value) == (
        f"UsageError: --constants: cannot read '{text}'; expected {expected}. [cli-constants]{HINT}"
    )


def test_a_value_is_given_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        constants_of(["k=1", "k=2"])
    assert str(caught.value) == (
        "UsageError: --constants: 'k' is given twice; expected one value for each input. "
        "[cli-constants-twice]"
    )
    path = tmp_path / "arrays.npz"
    np.savez(path, k=np.zeros(1))
    with pytest.raises(UsageError) as caught:
        constants_of([f"k=@{path}"])
    assert str(caught.value) == (
        f"UsageError: --constants: '{path}' is no file of one array; expected .npy, no pickles. "
        "[cli-constants-file]\n  Hint: np.save('mask.npy', array) writes one."
    )


def test_commands_hand_them_on(tilewright: Command, sums: Path) -> None:
    done = tilewright("run", sums, "--constants", "axes=[1]", "--target", "python", "--json")
    assert done.code == 0
    found = json.loads(done.out)
    assert [one["name"] for one in found["inputs"]] == ["x"]
    assert found["outputs"][0]["shape"] == [2, 1]
    done = tilewright("explain", sums, "--constants", "axis=[1]")
    assert (done.code, done.out) == (2, "")
    assert "there is no input 'axis'; known are 'axes', 'x'" in done.err
    done = tilewright("run", "--load-engine", "sums.twe", "--constants", "axes=[1]")
    assert (done.code, "--constants is given with the engine" in done.err) == (2, True)


@pytest.mark.needs_cc
def test_tuning_and_its_log_have_them(tilewright: Command, sums: Path) -> None:
    given = (sums, "--constants", "axes=[1]", "--log", "sums.jsonl")
    done = tilewright("tune", *given, "--trials", "1")
    assert done.code == 0
    assert "--constants axes=[1]" in " ".join(done.out.split())  # wherever the line is broken
    done = tilewright("log", "check", *given, "--json")
    assert len(json.loads(done.out)["kernels"]) == 1


def test_peers_read_a_model_that_has_them(tilewright: Command, sums: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the comparison with ONNX Runtime needs it")
    given = ("--constants", "axes=[0]", "--target", "python", "--iterations", "0")
    done = tilewright("bench", sums, "--against", "onnxruntime", *given)
    assert (done.code, "equal; y: error" in done.out) == (0, True)
