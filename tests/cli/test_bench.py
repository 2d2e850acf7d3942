"""cli/bench.py: the verb, from its arguments to its exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tilewright.cli.bench import _allowed
from tilewright.cli.compare.comparison import Tolerance
from tilewright.cli.compare.peers import PEERS
from tilewright.cli.conditions import conditions

from .conftest import Command
from .fake_peer import FakePeer

INTERPRETED = ("--target", "python", "--iterations", "0")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakePeer:
    """A peer beside the real ones."""
    peer = FakePeer()
    monkeypatch.setitem(PEERS, "fake", peer)
    return peer


def test_equal_outputs_end_with_0(tilewright: Command, tiny: Path, fake: FakePeer) -> None:
    done = tilewright("bench", tiny, "--against", "fake", *INTERPRETED)
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^model +tiny\(image: float32\[1, 3, 8, 8\]\)", done.out, re.MULTILINE)
    assert re.search(r"fake, \d+ threads?: equal; classes: error \S+ at", done.out)
    assert "allowed: 1e-04 (float32) of an output's largest magnitude" in done.out
    assert "latency" not in done.out


def test_outputs_that_differ_end_with_1_and_are_named(
    tilewright: Command, tiny: Path, fake: FakePeer
) -> None:
    fake.error = 0.02
    done = tilewright("bench", tiny, "--against", "fake", "--target", "python", "--threads", "1")
    assert (done.code, done.err) == (1, "")
    assert "fake, 1 thread: different\n" in done.out
    assert re.search(r"^ +classes: error 0\.02 at \[0, \d\], 2.8e\+02 of the all", done.out, re.M)
    assert "latency" not in done.out
    asked = ("--against", "fake", *INTERPRETED, "--atol", "0.03", "--rtol", "0")
    done = tilewright("bench", tiny, *asked)
    assert (done.code, "allowed: 0.03 + 0 * |ours|" in done.out) == (0, True)


def test_systems_are_timed_in_rounds_at_each_number_of_threads(
    tilewright: Command, tiny: Path, fake: FakePeer
) -> None:
    asked = ("--against", "fake", "--target", "python", "--threads", "1,2", "--iterations", "1")
    done = tilewright("bench", tiny, *asked, "--json")
    found = json.loads(done.out)
    assert (done.code, found["model"], found["equal"]) == (0, "tiny", True)
    assert found["target"] == "python"
    assert found["conditions"]["fake"] == "9.9"
    assert {"cpu", "isa", "compiler", "tilewright", "date"} <= set(found["conditions"])
    assert [block["threads"] for block in found["blocks"]] == [1, 2]
    for block in found["blocks"]:
        systems = block["timing"]["systems"]
        assert [system["system"] for system in systems] == ["tilewright", "fake"]
        assert [len(system["round_medians"]) for system in systems] == [7, 7]
        assert systems[1]["for_us"] == "loss"  # an interpreter against a call that does nothing
        assert block["timing"]["fastest"] == ["fake"]
    assert [threads for threads, _ in fake.loads] == [2, 1, 2]


def test_a_missing_peer_ends_with_4_before_anything_is_compiled(
    tilewright: Command, fake: FakePeer
) -> None:
    fake.here = False
    done = tilewright("bench", "nosuch.onnx", "--against", "fake")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("PeerMissing: bench: 'fake' is not installed.")
    assert "python -m pip install fake-peer" in done.err


def test_an_unknown_peer_is_a_usage_error(tilewright: Command) -> None:
    done = tilewright("bench", "nosuch.onnx", "--against", "onnxruntime,torch")
    assert (done.code, done.out) == (2, "")
    assert "there is no peer 'torch'; the peers are: 'onnxruntime', 'openvino'" in done.err


def test_a_peer_that_cannot_run_the_model_ends_with_3(
    tilewright: Command, tiny: Path, fake: FakePeer
) -> None:
    fake.refusal = RuntimeError("no such operator")
    done = tilewright("bench", tiny, "--against", "fake", *INTERPRETED)
    assert (done.code, done.out) == (3, "")
    assert "fake 9.9 cannot run this model: no such operator" in done.err


def test_an_output_of_another_shape_ends_with_1(
    tilewright: Command, tiny: Path, fake: FakePeer
) -> None:
    fake.axes = 1
    assert tilewright("bench", tiny, "--against", "fake", *INTERPRETED).code == 1


def test_an_engine_is_refused_because_peers_cannot_run_it(
    tilewright: Command, fake: FakePeer
) -> None:
    done = tilewright("bench", "old.twe", "--against", "fake")
    assert (done.code, done.out, done.err) == (
        2,
        "",
        "UsageError: bench: 'old.twe' is an engine; expected a model, which peers run too. "
        "[cli-bench-engine]\n",
    )
    done = tilewright("bench", "net.pt2", "--against", "fake")
    assert (done.code, done.out, done.err) == (
        2,
        "",
        "UsageError: bench: 'net.pt2' is an archive of torch.export, which no peer here runs; "
        "expected an ONNX model. [cli-bench-archive]\n"
        "  Hint: `tilewright run` times it alone.\n",
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            (),
            "UsageError: bench: there is nothing to time the model against; expected --against or "
            "--precision. [cli-bench-alone]\n  Hint: `tilewright run` times it alone.\n",
        ),
        (("--against", "onnxruntime", "--rounds", "6"), "'6' is below 7 rounds"),
        (("--against", "onnxruntime", "--rounds", "x"), "'x' is not a whole number"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(
    arguments: tuple[str, ...], said: str, tilewright: Command
) -> None:
    done = tilewright("bench", "model.onnx", *arguments)
    assert done.code == 2
    assert said in done.err


def test_inputs_are_random_by_seed_or_from_a_file(
    tilewright: Command, tiny: Path, fake: FakePeer
) -> None:
    for seed in "001":
        tilewright("bench", tiny, "--against", "fake", *INTERPRETED, "--seed", seed)
    first, second, other = (inputs["image"] for _, inputs in fake.loads)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    image = np.full((1, 3, 8, 8), 0.5, np.float32)
    np.savez("in.npz", image=image)
    done = tilewright("bench", tiny, "--against", "fake", *INTERPRETED, "--load-inputs", "in.npz")
    assert (done.code, "inputs     in.npz" in done.out) == (0, True)
    np.testing.assert_array_equal(fake.loads[-1][1]["image"], image)


def test_sizes_that_a_model_leaves_open_are_stated_for_peers_too(
    tilewright: Command, open_model: Path, fake: FakePeer
) -> None:
    asked = ("--against", "fake", *INTERPRETED, "--shapes", "batch:3")
    done = tilewright("bench", open_model, *asked)
    assert done.code == 0
    assert fake.loads[0][1]["x"].shape == (3, 4)


@pytest.mark.parametrize(
    ("kinds", "tolerance", "words"),
    [
        (
            (np.float32, ml_dtypes.bfloat16),
            Tolerance(),
            "1e-04 (float32) and 2e-01 (bfloat16) of an output's largest magnitude",
        ),
        (
            (np.float32, np.int64),
            Tolerance(),
            "1e-04 (float32) of an output's largest magnitude; integers are the same",
        ),
        (
            (np.float32,),
            Tolerance(accepted=1e-3),
            "1e-03 (float32) of an output's largest magnitude",
        ),
        ((np.int64,), Tolerance(), "integers are the same"),
        ((np.float32,), Tolerance(rtol=1e-3), "0 + 0.001 * |ours|, element by element"),
    ],
)
def test_what_is_allowed_is_said_for_each_type(
    kinds: tuple[type, ...], tolerance: Tolerance, words: str
) -> None:
    outputs = [SimpleNamespace(dtype=np.dtype(kind)) for kind in kinds]
    assert _allowed(SimpleNamespace(outputs=outputs), tolerance) == words


def test_the_help_names_every_peer(tilewright: Command) -> None:
    done = tilewright("bench", "--help")
    assert all(name in done.out for name in PEERS)


def test_conditions_are_told_without_a_compiler_too(no_compiler: None) -> None:
    assert conditions([FakePeer()])["compiler"] == "none"


@pytest.mark.needs_cc
def test_onnxruntime_agrees_and_is_timed(tilewright: Command, tiny: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the comparison with ONNX Runtime needs it")
    asked = ("--against", "onnxruntime", "--threads", "1", "--iterations", "3", "--duration", "0")
    done = tilewright("bench", tiny, *asked)
    assert (done.code, done.err) == (0, "")
    assert "onnxruntime, 1 thread: equal; classes: error " in done.out
    assert re.search(r"^latency +1 thread: 7 rounds of 3 calls of each system", done.out, re.M)
    assert re.search(r"^ +onnxruntime +[\d.]+ [mu]s +[\d.]+ [mu]s to [\d.]+", done.out, re.M)
    told = r"^ +onnxruntime +([\d.]+ +)?[\d.]+ to [\d.]+ +(win|loss|tie|disturbed)$"
    assert re.search(told, done.out, re.M)
    assert re.search(r"^ +fastest: (tilewright|onnxruntime)", done.out, re.M)
