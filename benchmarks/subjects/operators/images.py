"""Operators on images, regions of them, and spectra."""

from __future__ import annotations

import numpy as np

from tilewright.runtime.arrays import Array

from .subject import Draw, Subject, fixed, known, normal, uniform

_IMAGE = normal(1, 64, 56, 56)
_NEAREST = 'mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"'


def _resize(name: str, attributes: str, sizes: tuple[int, ...], to: tuple[int, ...]) -> Subject:
    draws = {"x": normal(*sizes), "s": known(to, "int64")}
    return Subject(name, f"y = Resize <{attributes}> (x, , , s)", draws, 18)


def _pool(operator: str, kernel: int, stride: int, pad: int, channels: int, size: int) -> Subject:
    name = f"{operator} {channels}x{size}x{size}, {kernel}x{kernel}/{stride}"
    attributes = f"kernel_shape={[kernel] * 2}, strides={[stride] * 2}, pads={[pad] * 4}"
    body = f"y = {operator} <{attributes}> (x)"
    return Subject(name, body, {"x": normal(1, channels, size, size)})


def _grid(rows: int, columns: int, mode: str) -> Subject:
    draws = {"x": normal(1, 32, 64, 64), "g": uniform(-1.1, 1.1, 1, rows, columns, 2)}
    body = f'y = GridSample <mode="{mode}"> (x, g)'
    return Subject(f"GridSample {mode} 32x64x64 at {rows}x{columns}", body, draws, 20)


def _rois(rng: np.random.Generator) -> Array:
    corners = rng.uniform(0, 600, (100, 2))
    return np.concatenate([corners, corners + rng.uniform(20, 200, (100, 2))], 1).astype(np.float32)


def _places(rng: np.random.Generator) -> Array:
    """Where a MaxPool of 2 by 2 found each of its results."""
    rows, columns = np.indices((28, 28)) * 2
    steps = rng.integers(0, 2, (2, 1, 64, 28, 28))
    inner = (rows + steps[0]) * 56 + columns + steps[1]
    return np.asarray(inner + np.arange(64).reshape(1, 64, 1, 1) * 56 * 56, np.int64)


SAMPLING = (
    _grid(64, 64, "linear"),
    _grid(64, 64, "nearest"),
    _grid(64, 64, "cubic"),
    Subject(
        "RoiAlign 64x50x50, 100 regions",
        "y = RoiAlign <output_height=7, output_width=7, sampling_ratio=2, spatial_scale=0.0625>"
        "(x, r, b)",
        {"x": normal(1, 64, 50, 50), "r": Draw(_rois), "b": known(np.zeros(100), "int64")},
        16,
    ),
    Subject(
        "DeformConv 64x28x28 by 3x3",
        "y = DeformConv <pads=[1, 1, 1, 1]> (x, w, o)",
        {"x": normal(1, 64, 28, 28), "w": fixed(normal(64, 64, 3, 3)), "o": normal(1, 18, 28, 28)},
        19,
    ),
    Subject(
        "Col2Im 576x784 to 64x28x28",
        "y = Col2Im <pads=[1, 1, 1, 1]> (x, s, k)",
        {"x": normal(1, 576, 784), "s": known([28, 28], "int64"), "k": known([3, 3], "int64")},
        18,
    ),
)
RESIZING = (
    _resize("Resize linear 64x56x56 by 2", 'mode="linear"', (1, 64, 56, 56), (1, 64, 112, 112)),
    _resize(
        "Resize nearest 64x56x56 by 2",
        _NEAREST,
        (1, 64, 56, 56),
        (1, 64, 112, 112),
    ),
    _resize(
        "Resize nearest 32x52x52 by 4",
        _NEAREST,
        (1, 32, 52, 52),
        (1, 32, 208, 208),
    ),
    _resize(
        "Resize nearest 3x480x640 to 224x224",
        _NEAREST,
        (1, 3, 480, 640),
        (1, 3, 224, 224),
    ),
    _resize(
        "Resize linear 64x28x28 to 56x56, corners",
        'mode="linear", coordinate_transformation_mode="align_corners"',
        (1, 64, 28, 28),
        (1, 64, 56, 56),
    ),
    _resize("Resize cubic 3x224x224 by 2", 'mode="cubic"', (1, 3, 224, 224), (1, 3, 448, 448)),
    _resize(
        "Resize linear 3x480x640 to 224x224, antialias",
        'mode="linear", antialias=1',
        (1, 3, 480, 640),
        (1, 3, 224, 224),
    ),
    _resize(
        "Resize cubic 3x480x640 to 224x224, antialias",
        'mode="cubic", antialias=1',
        (1, 3, 480, 640),
        (1, 3, 224, 224),
    ),
)
POOLING = (
    Subject(
        "MaxUnpool 64x28x28 by 2",
        "y = MaxUnpool <kernel_shape=[2, 2], strides=[2, 2]> (x, i)",
        {"x": normal(1, 64, 28, 28), "i": Draw(_places)},
    ),
    Subject(
        "MaxPool with places 64x56x56 by 2",
        "y, i = MaxPool <kernel_shape=[2, 2], strides=[2, 2]> (x)",
        {"x": _IMAGE},
        outputs=("y", "i"),
    ),
    Subject(
        "LpPool 64x56x56 by 3",
        "y = LpPool <kernel_shape=[3, 3], strides=[2, 2]> (x)",
        {"x": _IMAGE},
        18,
    ),
    Subject("GlobalLpPool 64x56x56", "y = GlobalLpPool(x)", {"x": _IMAGE}),
    Subject("Det 1000 of 4x4", "y = Det(x)", {"x": normal(1000, 4, 4)}),
    _pool("MaxPool", 2, 2, 0, 64, 112),
    _pool("MaxPool", 3, 2, 1, 64, 112),
    _pool("MaxPool", 5, 1, 2, 256, 20),
    _pool("MaxPool", 13, 1, 6, 256, 20),
    _pool("AveragePool", 2, 2, 0, 64, 112),
    _pool("AveragePool", 3, 1, 1, 192, 35),
    Subject("GlobalAveragePool 2048x7x7", "y = GlobalAveragePool(x)", {"x": normal(1, 2048, 7, 7)}),
    Subject("GlobalMaxPool 64x56x56", "y = GlobalMaxPool(x)", {"x": _IMAGE}),
    Subject(
        "MaxPool 64x16x28x28 by 2",
        "y = MaxPool <kernel_shape=[2, 2, 2], strides=[2, 2, 2]> (x)",
        {"x": normal(1, 64, 16, 28, 28)},
    ),
    Subject(
        "MaxPool 128x8000 by 4",
        "y = MaxPool <kernel_shape=[4], strides=[4]> (x)",
        {"x": normal(1, 128, 8000)},
    ),
)


def _wave(rng: np.random.Generator) -> Array:
    return rng.standard_normal((1, 16000, 1)).astype(np.float32)


SPECTRA = (
    Subject(
        "DFT 16x512",
        "y = DFT(x, n, a)",
        {"x": normal(16, 512, 1), "n": known(512, "int64"), "a": known(1, "int64")},
        20,
    ),
    Subject(
        "DFT 16x400",
        "y = DFT(x, n, a)",
        {"x": normal(16, 400, 1), "n": known(400, "int64"), "a": known(1, "int64")},
        20,
    ),
    Subject(
        "STFT 16000 by 400, every 160",
        "y = STFT(x, s, w, n)",
        {
            "x": Draw(_wave),
            "s": known(160, "int64"),
            "w": known(np.hanning(400)),
            "n": known(400, "int64"),
        },
        17,
    ),
)
