"""DFT, STFT and what goes with them, against NumPy and ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.onnx_reference import agree, model_of
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, Floats

Random = Callable[..., Floats]
Refused = Callable[..., str]
# products, factors of products, convolutions with a chirp; odd and even
LENGTHS = (1, 2, 7, 60, 256, 257, 288, 1000, 1009, 2047, 4096)


def spectrum(x: Array, **attributes: int) -> Array:
    """What a DFT along axis 1 gives."""
    model = model_of("DFT", {"x": x}, opset=17, axis=1, **attributes)
    (y,) = evaluate(import_onnx(model), {"x": x}, dtype=None).values()
    assert y.dtype == x.dtype
    return y


def near(found: Array, wanted: Array) -> None:
    """Whether two spectra agree to some roundings of float32."""
    largest = float(np.abs(wanted).max())
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * largest)


def pairs(numbers: Array) -> Array:
    return np.stack([np.real(numbers), np.imag(numbers)], -1)


@pytest.mark.parametrize("length", LENGTHS)
def test_spectra_are_those_of_numpy(random_array: Random, length: int) -> None:
    real, both = random_array(1, 2, length, 1), random_array(2, 2, length, 2)
    numbers = both[..., 0] + 1j * both[..., 1].astype(np.float64)
    whole = np.fft.fft(real[..., 0].astype(np.float64))
    near(spectrum(real), pairs(whole))
    near(spectrum(real, onesided=1), pairs(whole[:, : length // 2 + 1]))
    near(spectrum(both), pairs(np.fft.fft(numbers)))
    near(spectrum(both, inverse=1), pairs(np.fft.ifft(numbers)))
    if length > 1:
        half = numbers[:, : length // 2 + 1]
        found = spectrum(pairs(half).astype(np.float32), inverse=1, onesided=1)
        near(found[..., 0], np.fft.irfft(half, 2 * (half.shape[1] - 1)))


def test_a_spectrum_of_float64_is_as_good(random_array: Random) -> None:
    for length in (100, 1000, 1009):
        x = random_array(1, 2, length, 1, dtype="float64")
        wanted = pairs(np.fft.fft(x[..., 0]))
        largest = float(np.abs(wanted).max())
        np.testing.assert_allclose(spectrum(x), wanted, rtol=0, atol=1e-14 * largest)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize(("length", "parts"), [(12, 1), (300, 2), (521, 1), (2048, 1)])
def test_engines_transform_as_the_reference_does(
    random_array: Random, length: int, parts: int
) -> None:
    x = random_array(1, 2, length, 3, parts)
    agree("DFT", {"x": x}, opset=17, axis=1, engine=True)


@pytest.mark.parametrize("length", [4, 9])
def test_a_signal_is_cut_or_zeros_follow_it(random_array: Random, length: int) -> None:
    inputs = {"x": random_array(1, 2, 3, 6, 1), "length": np.array(length), "axis": np.array(-2)}
    for onesided in (0, 1):
        agree("DFT", inputs, opset=20, constants=("length", "axis"), onesided=onesided)
    half = {**inputs, "x": random_array(1, 2, 3, 5, 2)}
    agree("DFT", half, opset=20, constants=("length", "axis"), onesided=1, inverse=1)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("windowed", [False, True])
def test_frames_agree_with_the_reference(random_array: Random, windowed: bool) -> None:
    inputs = {
        "x": random_array(1, 2, 130, 1),
        "step": np.array(7),
        "window": np.hanning(16).astype(np.float32) if windowed else None,
        "length": np.array(16),
    }
    names = ("step", "length")
    for onesided in (0, 1):
        agree("STFT", inputs, opset=17, constants=names, onesided=onesided, engine=True)


@pytest.mark.parametrize("operator", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows_are_constants(operator: str, periodic: int) -> None:
    for size in (1, 8, 11):
        inputs = {"size": np.array(size)}
        model = model_of(operator, inputs, opset=17, constants=("size",), periodic=periodic)
        (y,) = evaluate(import_onnx(model), {}, dtype=None).values()
        n = 2 * np.pi * np.arange(size) / max(1, size - 1 + periodic)
        shares = {"HannWindow": (0.5, 0.5), "HammingWindow": (25 / 46, 21 / 46)}
        a, b = shares.get(operator, (0.42, 0.5))
        last = 0.08 * np.cos(2 * n) if operator == "BlackmanWindow" else 0
        np.testing.assert_allclose(y, a - b * np.cos(n) + last, atol=1e-7)


def mel(bins: int) -> dict[str, Array | None]:
    return {
        "bins": np.array(bins),
        "length": np.array(128),
        "rate": np.array(16000),
        "low": np.array(80.0, np.float32),
        "high": np.array(7600.0, np.float32),
    }


def test_mel_weights_agree_with_the_reference() -> None:
    inputs = mel(20)
    agree("MelWeightMatrix", inputs, opset=17, constants=tuple(inputs))


SIGNAL = np.zeros((2, 8, 1), np.float32)
REFUSALS = [
    (
        "DFT",
        {"x": np.zeros((2, 8, 3), np.float32)},
        {},
        "(DFT) has the signal float32[2, 8, 3]; expected [..., 1] or [..., 2] of floating-point "
        "numbers. [onnx-dft-signal]",
    ),
    (
        "DFT",
        {"x": SIGNAL},
        {"axis": 2},
        "(DFT) transforms axis 2 of float32[2, 8, 1], which holds the parts of complex numbers. "
        "[onnx-dft-axis]",
    ),
    (
        "DFT",
        {"x": SIGNAL, "length": np.array(0)},
        {},
        "(DFT) transforms 0 elements; expected one or more. [onnx-dft-length]",
    ),
    (
        "STFT",
        {"x": SIGNAL, "step": np.array(2), "window": np.zeros(9, np.float32)},
        {},
        "(STFT) cuts frames of 9 elements, 2 apart, with windows of [9] from float32[2, 8, 1]; "
        "expected [batch, n, 1 or 2] of at least a frame. [onnx-stft]",
    ),
    (
        "HannWindow",
        {"size": np.array(-1)},
        {},
        "(HannWindow) has size -1; expected 0 or more. [onnx-window-size]",
    ),
    (
        "MelWeightMatrix",
        mel(0),
        {},
        "(MelWeightMatrix) has 0 bins of 128 elements at 16000 Hz from 80 to 7600 Hz; expected "
        "positive numbers and edges up to half of the rate. [onnx-mel]",
    ),
]


@pytest.mark.parametrize(("operator", "inputs", "attributes", "text"), REFUSALS)
def test_what_does_not_fit_is_refused(
    refused_node: Refused,
    operator: str,
    inputs: dict[str, Array],
    attributes: dict[str, int],
    text: str,
) -> None:
    names = tuple(name for name in inputs if name != "x")
    found = refused_node(operator, inputs, opset=17, constants=names, **attributes)
    assert found == f"ModelError: model: node 'the_node' {text}"
