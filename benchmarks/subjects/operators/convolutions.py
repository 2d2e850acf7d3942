"""Convolutions in NCHW: of residual networks, grouped, dilated, of few channels, over one and three
axes, transposed.
"""

from __future__ import annotations

from collections.abc import Sequence

from .subject import Subject, fixed, normal

Sizes = tuple[int, ...]


def _title(kernel: Sizes, channels: Sizes, sizes: Sizes, more: Sequence[str]) -> str:
    by = "x".join(map(str, kernel))
    over = "x".join(map(str, sizes))
    return ", ".join((f"{by} {channels[0]}>{channels[1]} over {over}", *more))


def _conv(
    kernel: Sizes,
    channels: Sizes,
    sizes: Sizes,
    *,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    pad: int | None = None,
    batch: int = 1,
) -> Subject:
    """pad: by default what keeps the sizes."""
    n = len(kernel)
    pads = [(taps - 1) * dilation // 2 if pad is None else pad for taps in kernel]
    said = (
        ("/", stride, 1),
        ("dilated ", dilation, 1),
        ("groups ", groups, 1),
        ("batch ", batch, 1),
    )
    more = [f"{word}{value}" for word, value, usual in said if value != usual]
    attributes = (
        f"strides={[stride] * n}, dilations={[dilation] * n}, group={groups}, pads={pads + pads}"
    )
    draws = {
        "x": normal(batch, channels[0], *sizes),
        "w": fixed(normal(channels[1], channels[0] // groups, *kernel)),
        "b": fixed(normal(channels[1])),
    }
    name = f"Conv {_title(kernel, channels, sizes, more)}"
    return Subject(name, f"y = Conv <{attributes}> (x, w, b)", draws)


def _transposed(
    kernel: Sizes, channels: Sizes, sizes: Sizes, stride: int, pad: int, groups: int = 1
) -> Subject:
    n = len(kernel)
    more = [f"/{stride}", *([f"groups {groups}"] if groups > 1 else [])]
    attributes = f"strides={[stride] * n}, group={groups}, pads={[pad] * (2 * n)}"
    draws = {
        "x": normal(1, channels[0], *sizes),
        "w": fixed(normal(channels[0], channels[1] // groups, *kernel)),
        "b": fixed(normal(channels[1])),
    }
    name = f"ConvTranspose {_title(kernel, channels, sizes, more)}"
    return Subject(name, f"y = ConvTranspose <{attributes}> (x, w, b)", draws)


RESIDUAL = (
    _conv((7, 7), (3, 64), (224, 224), stride=2),
    _conv((1, 1), (64, 256), (56, 56)),
    _conv((1, 1), (256, 64), (56, 56)),
    _conv((1, 1), (512, 2048), (7, 7)),
    _conv((1, 1), (256, 512), (56, 56), stride=2),
    _conv((3, 3), (64, 64), (56, 56)),
    _conv((3, 3), (128, 128), (28, 28)),
    _conv((3, 3), (512, 512), (7, 7)),
    _conv((3, 3), (128, 128), (56, 56), stride=2),
    _conv((3, 3), (256, 256), (28, 28), stride=2),
    _conv((3, 3), (512, 512), (14, 14), stride=2),
    _conv((3, 3), (256, 256), (28, 28), stride=2, batch=8),
)
OTHER_CONVOLUTIONS = (
    _conv((3, 3), (3, 64), (224, 224)),
    _conv((3, 3), (3, 32), (224, 224), stride=2),
    _conv((16, 16), (3, 768), (224, 224), stride=16, pad=0),
    _conv((3, 3), (1, 1), (512, 512)),
    _conv((5, 5), (1, 16), (128, 128)),
    _conv((3, 3), (64, 3), (256, 256)),
    _conv((1, 1), (64, 1), (256, 256)),
    _conv((3, 3), (256, 256), (33, 33), dilation=12),
    _conv((3, 3), (128, 128), (56, 56), dilation=2),
    _conv((7, 7), (64, 64), (56, 56)),
    _conv((7, 1), (128, 128), (17, 17)),
    _conv((11, 11), (3, 64), (224, 224), stride=4, pad=2),
    _conv((3, 3), (128, 128), (56, 56), groups=32),
    _conv((3, 3), (64, 64), (56, 56), groups=2),
    _conv((1, 1), (240, 240), (28, 28), groups=3),
)
DEPTHWISE = (
    _conv((3, 3), (32, 32), (112, 112), groups=32),
    _conv((3, 3), (96, 96), (112, 112), groups=96, stride=2),
    _conv((5, 5), (240, 240), (28, 28), groups=240),
    _conv((7, 7), (96, 96), (56, 56), groups=96),
    _conv((31, 31), (128, 128), (28, 28), groups=128),
    _conv((3, 3), (128, 128), (56, 56), groups=128, dilation=2),
    _conv((3, 3), (64, 128), (56, 56), groups=64),
    _conv((31,), (256, 256), (1000,), groups=256),
)
OTHER_AXES = (
    _conv((3,), (80, 384), (3000,)),
    _conv((3,), (384, 384), (3000,), stride=2),
    _conv((15,), (1, 64), (16000,)),
    _conv((10,), (1, 512), (16000,), stride=5, pad=0),
    _conv((3,), (64, 128), (4000,), dilation=16),
    _conv((3, 3, 3), (16, 32), (16, 56, 56)),
    _conv((3, 3, 3), (3, 64), (8, 112, 112), stride=2),
    _conv((1, 3, 3), (64, 64), (8, 28, 28)),
    _conv((3, 1, 1), (64, 64), (8, 28, 28)),
)
TRANSPOSED = (
    _transposed((2, 2), (128, 64), (28, 28), 2, 0),
    _transposed((4, 4), (128, 64), (28, 28), 2, 1),
    _transposed((3, 3), (64, 64), (28, 28), 2, 1),
    _transposed((3, 3), (64, 64), (56, 56), 1, 1),
    _transposed((4, 4), (64, 3), (64, 64), 2, 1),
    _transposed((4, 4), (64, 64), (28, 28), 2, 1, groups=64),
    _transposed((16,), (256, 128), (200,), 8, 4),
    _transposed((2, 2, 2), (64, 32), (8, 14, 14), 2, 0),
)
