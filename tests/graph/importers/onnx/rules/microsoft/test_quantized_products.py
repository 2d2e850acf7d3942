"""Products of integers, and of weights in blocks of few bits, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Attribute,
    Contributed,
    check_contributed,
    drawn,
    model_of,
    random,
    refusal,
)
from tests.graph.importers.onnx.rules.microsoft.test_quantized import level, real
from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.block_matmul import BlockMatMul
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, numpy_type

FIVE = real(0.01, 0.02, 0.03, 0.01, 0.02)


def test_products_are_exact_and_scaled_once() -> None:
    a, b = drawn(1, "uint8", 3, 8), drawn(2, "int8", 8, 5)
    zeros = level(3, 1, 2, 0, -1, dtype="int8")
    one = level(-3, dtype="int8")
    check_contributed(
        Contributed(
            "MatMulIntegerToFloat", (a, b, real(0.02), real(0.03), level(7), one, random(3, 5))
        ),
        Contributed(
            "MatMulIntegerToFloat",
            (drawn(1, "uint8", 2, 3, 8), b, real(0.02), FIVE, level(7), zeros),
        ),
        Contributed("MatMulIntegerToFloat", (a, drawn(2, "uint8", 8, 5), real(0.02), real(0.03))),
        Contributed(
            "DynamicQuantizeMatMul", (random(1, 2, 3, 8), b, real(0.03), one, random(3, 5))
        ),
        Contributed("DynamicQuantizeMatMul", (random(1, 3, 8), drawn(2, "uint8", 8, 5), FIVE)),
    )


def test_a_gemm_gives_levels_or_numbers() -> None:
    a, b, c = drawn(1, "uint8", 3, 8), drawn(2, "int8", 5, 8), drawn(3, "int16", 5)
    whole = c.astype(np.int32)
    first = (a, real(0.02), level(7), b, real(0.01), level(3, dtype="int8"), whole)
    check_contributed(
        Contributed("QGemm", (*first, real(0.9), level(100)), {"transB": 1}),
        Contributed("QGemm", first, {"transB": 1, "alpha": 0.5}),
        Contributed(
            "QGemm",
            (
                a.T.copy(),
                real(0.02),
                level(7),
                b.T.copy(),
                FIVE,
                level(3, 1, 2, 0, -1, dtype="int8"),
            ),
            {"transA": 1},
        ),
    )


def test_a_convolution_has_its_channels_first_or_last() -> None:
    to, bias = (real(0.9), level(100)), drawn(3, "int16", 4).astype(np.int32)
    check_contributed(
        Contributed(
            "QLinearConv",
            (
                *(drawn(1, "uint8", 1, 7, 8, 3), real(0.02), level(7)),
                *(drawn(2, "int8", 4, 3, 3, 3), FIVE[:4], level(0, 0, 0, 0, dtype="int8")),
                *(*to, bias),
            ),
            {"channels_last": 1, "pads": [1, 1, 1, 1]},
            constants=(3, 4, 5),
        ),
        Contributed(
            "QLinearConv",
            (
                *(drawn(1, "uint8", 1, 3, 7, 8), real(0.02), level(7)),
                *(drawn(2, "uint8", 4, 3, 3, 3), real(0.01), level(120), *to),
            ),
            {"strides": [2, 2]},
            constants=(3, 4, 5),
        ),
    )


def test_attention_may_have_a_projection_of_integers() -> None:
    x, w, bias = drawn(1, "uint8", 2, 3, 6), drawn(2, "int8", 6, 24), random(3, 24)
    scale, lengths = real(0.02), np.array([2, 3], np.int32)
    zero = level(0, dtype="int8")
    each = np.full(24, 0.02, np.float32), np.zeros(24, np.int8)
    heads = {"num_heads": 2}
    check_contributed(
        Contributed("QAttention", (x, w, bias, scale, scale, lengths, level(128), zero), heads),
        Contributed(
            "QAttention",
            (x, w, bias, scale, each[0], None, level(128), each[1]),
            {**heads, "unidirectional": 1},
        ),
        Contributed(
            "QAttention",
            (x, w, bias, scale, scale, None, level(128), zero, random(7, 2, 2, 2, 2, 4)),
            {**heads, "unidirectional": 1},
            outputs=2,
        ),
    )


def blocked(
    bits: int, size: int, rows: int, zeros: str = "", *, flat: bool = False, bias: bool = False
) -> Contributed:
    """A product with weights of 5 columns. zeros: "packed", "plain" or none."""
    count = -(-rows // size)
    scales = random(2, 5, count)
    made: dict[str, Array | None] = {
        "": None,
        "packed": drawn(3, "uint8", 5, -(-count * bits // 8)),
        "plain": random(4, 5, count),
    }
    counts: dict[str, Attribute] = {"K": rows, "N": 5, "bits": bits, "block_size": size}
    weights = drawn(1, "uint8", 5, count, size * bits // 8)
    inputs = [random(1, 2, 3, rows), weights, scales.reshape(-1) if flat else scales, made[zeros]]
    if bias:
        inputs += [None, random(5, 5)]
    return Contributed("MatMulNBits", inputs, counts, (1, 2, 3))


def test_weights_in_blocks_are_unpacked() -> None:
    check_contributed(
        blocked(4, 16, 32),
        blocked(4, 16, 48, "packed", flat=True, bias=True),
        blocked(4, 32, 40, "plain"),
        blocked(4, 128, 256, "packed"),
        blocked(8, 16, 32, bias=True),
        blocked(8, 16, 48, "packed"),
        blocked(2, 16, 48, "packed"),
    )


@pytest.mark.needs_cc
def test_engines_read_weights_in_blocks_as_they_are_packed() -> None:
    check_contributed(
        blocked(4, 16, 48, "packed", flat=True, bias=True),
        blocked(4, 32, 40, "plain"),
        blocked(8, 16, 48, "packed"),
        blocked(2, 16, 48, "packed"),
        engine=True,
    )


@pytest.mark.needs_cc
@pytest.mark.parametrize("zeros", ["", "packed"])
def test_scales_of_16_bits_stay_so(zeros: str) -> None:
    plain = blocked(4, 16, 48, zeros)
    x, packed, scales, *rest = plain.inputs
    assert x is not None
    assert scales is not None
    halves = (x.astype(np.float16), packed, scales.astype(np.float16), *rest)
    node = Contributed("MatMulNBits", halves, plain.attributes, (1, 2, 3))
    graph = import_onnx(model_of((node,), opset=17))
    (product,) = (one for one in graph.nodes if isinstance(one.op, BlockMatMul))
    kinds = [str(graph.types[value]) for value in product.inputs]
    assert kinds[1:3] == ["int32[6, 5]", "float16[3, 5]"]
    check_contributed(node, engine=True, rtol=2e-3, atol=2e-3)
    assert "block rows (rule)" in str(compile(graph, cache=False).explain())


def test_blocks_that_are_no_whole_words_become_numbers() -> None:
    """onnxruntime refuses them, so the expected numbers are computed here."""
    packed, scales = drawn(1, "uint8", 3, 2, 2), random(2, 3, 2)
    counts: dict[str, Attribute] = {"K": 7, "N": 3, "bits": 4, "block_size": 4}
    x = random(1, 2, 7)
    node = Contributed("MatMulNBits", (x, packed, scales), counts, (1, 2))
    graph = import_onnx(model_of((node,), opset=17))
    assert not any(isinstance(one.op, BlockMatMul) for one in graph.nodes)
    levels = np.stack([packed & 15, packed >> 4], axis=-1).reshape(3, 2, 4)
    weights = ((levels - 8.0) * scales[..., None]).reshape(3, 8)[:, :7]
    (found,) = evaluate(graph, {graph.inputs[0]: x}).values()
    np.testing.assert_allclose(found, x @ weights.T, rtol=1e-5)


@pytest.mark.needs_cc
def test_rows_in_blocks_stay_packed_until_they_are_taken() -> None:
    nodes = []
    for bits in (4, 8):
        zeros = drawn(3, "uint8", 7, -(-3 * bits // 8))
        for own in (None, zeros):
            inputs = (
                drawn(1, "uint8", 7, 48 * bits // 8),
                np.array([[1, 0], [6, -1]]),
                random(2, 7, 3),
                own,
            )
            given = {"bits": bits, "block_size": 16, "quantize_axis": 1}
            nodes.append(Contributed("GatherBlockQuantized", inputs, given, (0, 2, 3)))
    check_contributed(*nodes)
    check_contributed(nodes[1], blocked(4, 16, 32), engine=True)


@pytest.mark.needs_cc
@pytest.mark.parametrize("kind", ["int4", "uint4"])
def test_rows_of_4_bits_are_packed(kind: str) -> None:
    nodes = []
    attributes: dict[str, Attribute] = {"block_size": 16, "quantize_axis": 1}
    low = 8 if kind == "int4" else 0
    levels, zeros = (
        ((drawn(n, "uint8", 7, count) % 16).astype(np.int8) - low).astype(numpy_type(kind))
        for n, count in ((1, 48), (3, 3))
    )
    given = (levels, np.array([[1, 0], [6, -1]]), random(2, 7, 3))
    for own in (None, zeros):
        inputs = (*given, own)
        nodes.append(Contributed("GatherBlockQuantized", inputs, attributes, (0, 2, 3)))
    check_contributed(*nodes)
    check_contributed(nodes[1], engine=True)
    graph = import_onnx(model_of(nodes[:1]))
    assert graph.types[next(name for name in graph.constants if "packed" in name)].bytes == 7 * 24
    eight = Contributed("GatherBlockQuantized", given, {**attributes, "bits": 8}, (0, 2))
    assert f"its data are {kind}[7, 48], and bits is 8" in refusal(eight)


def test_what_is_not_known_or_does_not_fit_is_refused() -> None:
    node = blocked(4, 16, 32)
    packed = Contributed(
        "MatMulNBits", node.inputs, {**node.attributes, "weight_prepacked": 1}, (1, 2)
    )
    assert "weight_prepacked is 1" in refusal(packed)
    odd = Contributed("MatMulNBits", node.inputs, {**node.attributes, "bits": 3}, (1, 2))
    assert "bits is 3; known are 2, 4, 8" in refusal(odd)
    grouped = Contributed(
        "MatMulNBits",
        (*node.inputs, np.zeros(32, np.int32)),
        node.attributes,
        (1, 2),
    )
    assert "it has the input g_idx" in refusal(grouped)
    short = Contributed("MatMulNBits", node.inputs, {**node.attributes, "K": 64}, (1, 2))
    assert refusal(short) == (
        "ModelError: model: node 'node0' (MatMulNBits) has weights uint8[5, 2, 8] and scales "
        "float32[5, 2]; expected 5 columns of 4 blocks of 16 elements of 4 bits. [onnx-blocks]"
    )
    zeros = Contributed(
        "MatMulNBits", (*node.inputs[:3], drawn(3, "uint8", 5, 2)), node.attributes, (1, 2, 3)
    )
    assert refusal(zeros) == (
        "ModelError: model: node 'node0' (MatMulNBits) has zero points uint8[5, 2]; expected 5 "
        "times 1 for 2 blocks of 4 bits. [onnx-block-zeros]"
    )
    rows = (drawn(1, "uint8", 7, 24), np.array([1]), random(2, 7, 3))
    for attributes, text in (
        ({"quantize_axis": 0, "block_size": 16}, "it takes along axis 0 of uint8[7, 24]"),
        ({"block_size": 32}, "its 48 elements are not 3 blocks of 32"),
    ):
        assert text in refusal(Contributed("GatherBlockQuantized", rows, attributes, (0, 2)))
