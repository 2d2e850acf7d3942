"""The systems to compare with: their names, how to install them, and how they run a model in
float32 on a number of threads.

Peers are no dependencies: each is imported when it loads its first model.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

import numpy as np
from onnx import helper

from ...runtime.arrays import Array
from ...runtime.machine.timing import Call
from ...tir.errors import TilewrightError, known_names
from ..errors import UsageError

if TYPE_CHECKING:
    from onnxruntime import OrtValue

_ERRORS_ONLY = 3  # the log level of ONNX Runtime
_OWN = 1  # how NumPy calls its own element types, of `dtype.isbuiltin`


class PeerMissing(TilewrightError, ImportError):
    """A peer is not installed."""


class PeerFailed(TilewrightError, RuntimeError):
    """A peer cannot run a model."""


@dataclass(frozen=True, slots=True)
class PeerSession:
    """A model with bound inputs: `call` runs it, `outputs` returns those of the last run, `bind`
    takes inputs of other sizes.
    """

    call: Call
    outputs: Callable[[], dict[str, Array]]
    bind: Callable[[Mapping[str, Array]], None] | None = None


class Peer(Protocol):
    """A system that runs ONNX models. requirement: its package for pip."""

    @property
    def name(self) -> str: ...

    @property
    def requirement(self) -> str: ...

    def is_installed(self) -> bool: ...

    def version(self) -> str: ...

    def settings(self, threads: int) -> Mapping[str, str]:
        """Its options, as its users would write them."""

    def load(
        self,
        model: str | bytes,
        inputs: Mapping[str, Array],
        outputs: Sequence[str],
        threads: int,
    ) -> PeerSession:
        """Load a model from its file or its bytes and bind the inputs. Raises: anything."""


@dataclass(frozen=True, slots=True)
class Package:
    """A peer in a package whose import name is its name for pip."""

    name: str
    requirement: str

    def is_installed(self) -> bool:
        return find_spec(self.requirement) is not None

    def version(self) -> str:
        return version(self.requirement)


@dataclass(frozen=True, slots=True)
class OnnxRuntime(Package):
    """ONNX Runtime on its CPU provider; inputs and outputs are bound."""

    name: str = "onnxruntime"
    requirement: str = "onnxruntime"

    def settings(self, threads: int) -> Mapping[str, str]:
        return {"intra_op_num_threads": str(threads), "inter_op_num_threads": "1"}

    def load(
        self,
        model: str | bytes,
        inputs: Mapping[str, Array],
        outputs: Sequence[str],
        threads: int,
    ) -> PeerSession:
        import onnxruntime  # an optional dependency

        options = onnxruntime.SessionOptions()
        for key, value in self.settings(threads).items():
            setattr(options, key, int(value))
        options.log_severity_level = _ERRORS_ONLY
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        held: dict[str, OrtValue] = {}

        def bind(arrays: Mapping[str, Array]) -> None:
            for name, array in arrays.items():
                if array.dtype.isbuiltin == _OWN:
                    binding.bind_cpu_input(name, array)
                    continue
                code = helper.np_dtype_to_tensor_dtype(array.dtype)
                make = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
                held[name] = make(array, code)
                binding.bind_ortvalue_input(name, held[name])
            for name in outputs:  # anew: one of another shape is allocated again
                binding.bind_output(name)

        bind(inputs)
        return PeerSession(
            lambda: session.run_with_iobinding(binding),
            lambda: dict(zip(outputs, map(_array_of, binding.get_outputs()), strict=True)),
            bind,
        )


def _array_of(value: OrtValue) -> Array:
    """A copy of the elements, of a type of ml_dtypes where NumPy has none."""
    kind = helper.tensor_dtype_to_np_dtype(value.element_type())
    if kind.isbuiltin == _OWN:
        return np.array(value.numpy())
    memory = (ctypes.c_uint8 * value.tensor_size_in_bytes()).from_address(value.data_ptr())
    return np.frombuffer(bytes(memory), kind).reshape(value.shape())


@dataclass(frozen=True, slots=True)
class OpenVino(Package):
    """OpenVINO on its CPU plug-in, in float32; inputs are bound, outputs are not copied."""

    name: str = "openvino"
    requirement: str = "openvino"

    def settings(self, threads: int) -> Mapping[str, str]:
        return {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": str(threads),
            "PERFORMANCE_HINT": "LATENCY",
        }

    def load(
        self,
        model: str | bytes,
        inputs: Mapping[str, Array],
        outputs: Sequence[str],
        threads: int,
    ) -> PeerSession:
        import openvino  # an optional dependency

        core = openvino.Core()
        compiled = core.compile_model(core.read_model(model), "CPU", self.settings(threads))
        request = compiled.create_infer_request()

        def bind(arrays: Mapping[str, Array]) -> None:
            for name, array in arrays.items():
                request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

        bind(inputs)
        return PeerSession(
            lambda: request.infer(share_outputs=True),
            lambda: {name: request.get_tensor(name).data for name in outputs},
            bind,
        )


PEERS: dict[str, Peer] = {peer.name: peer for peer in (OnnxRuntime(), OpenVino())}


def installed() -> tuple[Peer, ...]:
    """The peers that are installed."""
    return tuple(peer for peer in PEERS.values() if peer.is_installed())


def choose_peers(names: Iterable[str]) -> tuple[Peer, ...]:
    """The peers of these names, without duplicates.

    Raises: UsageError for an unknown name; PeerMissing.
    """
    wanted = tuple(dict.fromkeys(names))
    for name in wanted:
        if name not in PEERS:
            raise UsageError(
                f"--against: there is no peer '{name}'; the peers are: {known_names(name, PEERS)}.",
                code="cli-peer",
            )
    found = tuple(PEERS[name] for name in wanted)
    missing = [peer for peer in found if not peer.is_installed()]
    if missing:
        listed = ", ".join(f"'{peer.name}'" for peer in missing)
        needed = " ".join(peer.requirement for peer in missing)
        raise PeerMissing(
            f"bench: {listed} {'is' if len(missing) == 1 else 'are'} not installed.",
            code="cli-peer-missing",
            hints=(
                f"python -m pip install {needed}",
                'python -m pip install -e ".[peers]" in the clone installs all peers.',
            ),
        )
    return found


def load_peer(
    peer: Peer,
    model: str | bytes,
    inputs: Mapping[str, Array],
    outputs: Sequence[str],
    threads: int,
) -> PeerSession:
    """Load a model in a peer, and run it once.

    Raises: PeerFailed.
    """
    try:
        session = peer.load(model, inputs, outputs, threads)
        session.call()
    except Exception as error:  # of any class
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise PeerFailed(
            f"bench: {peer.name} {peer.version()} cannot run this model: {reason}",
            code="cli-peer-fails",
        ) from error
    return session
