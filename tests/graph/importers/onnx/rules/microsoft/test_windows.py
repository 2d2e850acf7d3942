"""Convolution and pooling with activations fused in, or with the channels last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Contributed,
    check_contributed,
    drawn,
    feeds_of,
    model_of,
    random,
    run_onnxruntime,
)
from tilewright.graph.types import Array

FOLLOWING: Mapping[str, Sequence[float]] = {
    "Clip": (-0.2, 0.4),
    "HardSigmoid": (0.2, 0.4),
    "HardSwish": (),
    "LeakyRelu": (0.2,),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
}


def test_an_activation_and_a_summand_follow_a_convolution() -> None:
    x, w, b = random(1, 1, 3, 7, 8), random(2, 4, 3, 3, 3), random(3, 4)
    check_contributed(
        *(
            Contributed(
                "FusedConv",
                (x, w, b),
                {"activation": name, "pads": [1, 1, 1, 1]}
                | ({"activation_params": list(numbers)} if numbers else {}),
            )
            for name, numbers in FOLLOWING.items()
        ),
        Contributed(
            "FusedConv",
            (x, w, b, random(4, 1, 4, 4, 4)),
            {"activation": "Relu", "auto_pad": "SAME_UPPER", "strides": [2, 2]},
        ),
        Contributed(
            "FusedConv",
            (random(5, 1, 4, 7, 8), random(6, 4, 2, 3, 3), None, random(4, 1, 4, 3, 4)),
            {"group": 2, "dilations": [2, 2], "kernel_shape": [3, 3]},
        ),
    )


def convolved(x: Array, *others: Array, **attributes: list[int]) -> Array:
    """What onnxruntime's Conv makes of data whose channels come last."""
    data = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    node = Contributed("Conv", (data, *others), attributes, domain="")
    (y,) = run_onnxruntime(model_of((node,)), feeds_of((node,))).values()
    return np.ascontiguousarray(y.transpose(0, 2, 3, 1))


def test_channels_may_come_last() -> None:
    x, w, b = random(1, 1, 7, 8, 3), random(2, 4, 3, 3, 3), random(3, 4)
    z, y = random(4, 1, 3, 6, 4), convolved(x, w, b, strides=[2, 1])
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    check_contributed(  # onnxruntime has a kernel of the pooling alone
        Contributed("NhwcConv", (x, w, b), {"strides": [2, 1]}, expected=(y,)),
        Contributed(
            "NhwcFusedConv",
            (x, w, b, z),
            {"strides": [2, 1], "activation": "Relu"},
            expected=(np.maximum(y + z, 0),),
        ),
        Contributed("NhwcMaxPool", (drawn(5, "uint8", 1, 7, 8, 3),), pool),
        Contributed("NhwcMaxPool", (drawn(6, "int8", 1, 7, 8, 3),), {**pool, "ceil_mode": 1}),
    )


def test_the_pads_of_a_transposed_convolution_are_an_input() -> None:
    x, w, b = random(1, 1, 3, 5, 5), random(2, 3, 2, 3, 3), random(3, 2)
    check_contributed(
        Contributed(
            "ConvTransposeWithDynamicPads",
            (x, w, np.array([1, 0, 1, 2]), b),
            {"strides": [2, 2], "output_padding": [1, 0]},
            constants=(2,),
        )
    )
