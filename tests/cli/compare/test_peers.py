"""cli/compare/peers.py: which peers there are, what they are told, what is said of one that is
missing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.cli.compare.peers import (
    PEERS,
    PeerFailed,
    PeerMissing,
    choose_peers,
    installed,
    load_peer,
)
from tilewright.cli.errors import UsageError

from ..fake_peer import FakePeer


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakePeer]:
    """Two peers in place of ours, the second not installed."""
    made = {peer.name: peer for peer in (FakePeer("near"), FakePeer("far", "far-peer", here=False))}
    monkeypatch.setattr("tilewright.cli.compare.peers.PEERS", made)
    return made


def test_the_peers_are_chosen_by_name_in_that_order_each_once(peers: dict[str, FakePeer]) -> None:
    peers["far"].here = True
    assert choose_peers(["far", "near", "far"]) == (peers["far"], peers["near"])


def test_a_name_that_no_peer_has_is_a_usage_error_that_lists_the_peers() -> None:
    with pytest.raises(UsageError) as caught:
        choose_peers(["onnxruntime", "openvin"])
    assert str(caught.value) == (
        "UsageError: --against: there is no peer 'openvin'; the peers are: 'openvino', "
        "'onnxruntime'. [cli-peer]"
    )


def test_a_missing_peer_is_named_with_the_command_that_installs_it(
    peers: dict[str, FakePeer],
) -> None:
    with pytest.raises(PeerMissing) as caught:
        choose_peers(["near", "far"])
    assert str(caught.value) == (
        "PeerMissing: bench: 'far' is not installed. [cli-peer-missing]\n"
        "  Hint: python -m pip install far-peer\n"
        '  Hint: python -m pip install -e ".[peers]" in the clone installs all peers.'
    )
    peers["near"].here = False
    with pytest.raises(PeerMissing, match=r"'near', 'far' are not installed(.|\n)*fake-peer far-p"):
        choose_peers(["near", "far"])


def test_installed_peers_are_those_that_are_here(peers: dict[str, FakePeer]) -> None:
    assert installed() == (peers["near"],)


def test_a_peer_that_is_not_here_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.cli.compare.peers.find_spec", lambda name: None)
    assert installed() == ()


def test_what_a_peer_raises_becomes_one_error() -> None:
    peer = FakePeer(refusal=ValueError("Sign of float16 is not implemented\nat node 3"))
    with pytest.raises(PeerFailed) as caught:
        load_peer(peer, "model.onnx", {}, (), 1)
    assert str(caught.value) == (
        "PeerFailed: bench: fake 9.9 cannot run this model: Sign of float16 is not implemented "
        "[cli-peer-fails]"
    )
    peer.refusal = KeyError()
    with pytest.raises(PeerFailed, match="cannot run this model: KeyError"):
        load_peer(peer, "model.onnx", {}, (), 1)


def test_the_extra_peers_brings_every_peer(root: Path) -> None:
    text = (root / "setup.cfg").read_text(encoding="utf-8")
    extra = text.partition("\npeers =\n")[2].partition("\nplots =")[0].split()
    assert [line.partition(">=")[0] for line in extra] == [p.requirement for p in PEERS.values()]


def test_onnxruntime_runs_a_model_on_bound_arrays(tiny: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the comparison with ONNX Runtime needs it")
    peer = PEERS["onnxruntime"]
    assert peer.settings(2) == {"intra_op_num_threads": "2", "inter_op_num_threads": "1"}
    image = np.random.default_rng(5).standard_normal((1, 3, 8, 8), dtype=np.float32)
    session = peer.load(str(tiny), {"image": image}, ("classes",), 1)
    session.call()
    first = session.outputs()["classes"].copy()
    assert first.shape == (1, 10)
    assert first.sum() == pytest.approx(1, rel=1e-5)
    image[...] *= 2
    session.call()
    assert not np.array_equal(session.outputs()["classes"], first)
    assert peer.version()[0].isdigit()


class FakeOpenVino:
    """What we use of the module, and what it was told."""

    def __init__(self) -> None:
        self.told: dict[str, object] = {}
        self.tensors: dict[str, object] = {}
        self.runs: list[bool] = []

    def module(self) -> SimpleNamespace:
        request = SimpleNamespace(
            set_tensor=self.tensors.__setitem__,
            infer=lambda *, share_outputs: self.runs.append(share_outputs),
            get_tensor=lambda name: SimpleNamespace(data=np.ones(2)),
        )
        compiled = SimpleNamespace(create_infer_request=lambda: request)
        core = SimpleNamespace(read_model=lambda model: f"read {model}")

        def compile_model(model: str, device: str, settings: Mapping[str, str]) -> SimpleNamespace:
            self.told = {"model": model, "device": device, **settings}
            return compiled

        core.compile_model = compile_model
        tensor = lambda array, *, shared_memory: (array, shared_memory)  # noqa: E731
        return SimpleNamespace(Core=lambda: core, Tensor=tensor)


def test_openvino_is_held_to_float32_and_to_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeOpenVino()
    monkeypatch.setitem(sys.modules, "openvino", fake.module())
    image = np.zeros(2)
    session = PEERS["openvino"].load("m.onnx", {"image": image}, ("classes",), 3)
    session.call()
    assert fake.told == {
        "model": "read m.onnx",
        "device": "CPU",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": "3",
        "PERFORMANCE_HINT": "LATENCY",
    }
    assert fake.tensors == {"image": (image, True)}
    assert fake.runs == [True]
    assert list(session.outputs()) == ["classes"]


def test_openvino_runs_a_model(tiny: Path) -> None:
    pytest.importorskip("openvino", reason="the extra `peers` brings it")
    image = np.random.default_rng(5).standard_normal((1, 3, 8, 8), dtype=np.float32)
    session = PEERS["openvino"].load(str(tiny), {"image": image}, ("classes",), 1)
    session.call()
    assert session.outputs()["classes"].sum() == pytest.approx(1, rel=1e-5)
