"""Matrix products with what is fused into them, against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Contributed,
    check_contributed,
    random,
    refusal,
)

FOLLOWING: Mapping[str, Mapping[str, float]] = {
    "Celu": {"activation_alpha": 0.6},
    "Elu": {"activation_alpha": 0.7},
    "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4},
    "LeakyRelu": {"activation_alpha": 0.2},
    "Relu": {},
    "Selu": {"activation_alpha": 1.5, "activation_gamma": 1.1},
    "Sigmoid": {},
    "Softplus": {},
    "Softsign": {},
    "Tanh": {},
    "ThresholdedRelu": {"activation_alpha": 0.3},
}


def test_operands_are_turned_before_they_are_multiplied() -> None:
    x = random(1, 2, 3, 4)
    check_contributed(
        Contributed("FusedMatMul", (x, random(2, 2, 5, 4)), {"transB": 1, "alpha": 0.3}),
        Contributed("FusedMatMul", (x, random(2, 2, 3, 5)), {"transA": 1}),
        Contributed("FusedMatMul", (random(3, 4), random(2, 2, 4, 5)), {"transA": 1}),
        Contributed("FusedMatMul", (x, random(4, 3, 4, 5)), {"transBatchA": 1}),
        Contributed("FusedMatMul", (x, random(4, 3, 2, 5)), {"transBatchA": 1, "transA": 1}),
        Contributed(
            "FusedMatMul", (random(5, 2, 6, 3, 4), random(6, 4, 2, 6, 5)), {"transBatchB": 1}
        ),
        Contributed(
            "FusedMatMul",
            (random(5, 2, 6, 3, 4), random(6, 5, 2, 6, 4)),
            {"transBatchB": 1, "transB": 1},
        ),
        Contributed("TransposeMatMul", (x, random(2, 2, 5, 4)), {"transB": 1}),
    )


def test_activations_follow_a_gemm() -> None:
    a, b, c = random(1, 3, 4), random(2, 4, 5), random(3, 5)
    check_contributed(
        Contributed("FusedGemm", (a, b), {"activation": "Relu", "alpha": 0.5}),
        *(
            Contributed("FusedGemm", (a, b, c), {"activation": name, "beta": 2.0, **numbers})
            for name, numbers in FOLLOWING.items()
        ),
    )


def test_products_without_a_kernel_on_a_cpu_are_what_their_schemas_say() -> None:
    a, b, c = random(1, 2, 3, 4), random(2, 2, 4, 5), random(3, 5)
    y = a @ b + c
    tanh = np.tanh(0.7978845608 * (y + 0.044715 * y**3))
    check_contributed(
        Contributed(
            "FusedMatMulActivation",
            (a, b),
            {"activation": "Relu", "alpha": 0.5},
            expected=(np.maximum(a @ b / 2, 0),),
        ),
        Contributed("GemmFastGelu", (a, b, c), expected=(y * (1 + tanh) / 2,)),
    )


def test_an_activation_that_is_not_known_is_refused_with_those_that_are() -> None:
    a, b = random(1, 3, 4), random(2, 4, 5)
    assert refusal(Contributed("FusedGemm", (a, b), {"activation": "Sine"})) == (
        "UnsupportedOperator: model: 1 of 1 nodes cannot be imported. [onnx-unsupported]\n"
        "  in the model:\n"
        "    node 'node0': FusedGemm of com.microsoft opset 1: activation is 'Sine'; known are "
        "Celu, Clip, Elu, HardSigmoid, HardSwish, LeakyRelu, Relu, Selu, Sigmoid, Softplus, "
        "Softsign, Tanh, ThresholdedRelu"
    )
