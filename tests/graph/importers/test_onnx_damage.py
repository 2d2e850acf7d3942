"""Damaged models: whatever is done to bytes or fields, only a ModelError comes out."""

from __future__ import annotations

import random
from collections.abc import Callable

import onnx
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.verify import verify
from tilewright.graph.samples.samples import light_model, tiny_model

NUMBERS = (0, -1, 1, 2, 7, 2**31, 2**40, -(2**63), 2**62)
NAMES = ("", "x", "image", "data_0", "Relu", "Conv", "Reshape", "Sum", "Squeeze", "SAME_UPPER")


def damage_bytes(model: onnx.ModelProto, draw: random.Random) -> bytes:
    """The model's file with some bytes changed, dropped or repeated."""
    data = bytearray(model.SerializeToString())
    for _ in range(draw.choice((1, 2, 20))):
        at = draw.randrange(len(data))
        match draw.randrange(4):
            case 0:
                data[at] = draw.randrange(256)
            case 1:
                data[at] ^= 1 << draw.randrange(8)
            case 2:
                del data[at : at + draw.randrange(1, 9)]
            case _:
                start = draw.randrange(len(data))
                data[at:at] = data[start : start + draw.randrange(1, 40)]
    return bytes(data)


def damage_fields(model: onnx.ModelProto, draw: random.Random) -> onnx.ModelProto:
    """A copy of the model with nodes dropped or repeated, numbers and names changed."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    nodes = copy.graph.node
    for _ in range(draw.choice((1, 2, 4))):
        node = draw.choice(nodes)
        match draw.randrange(6):
            case 0:
                node.input[:] = [draw.choice((*NAMES, *node.input)) for _ in node.input]
            case 1:
                node.op_type = draw.choice([other.op_type for other in nodes])
            case 2:
                for attribute in node.attribute:
                    attribute.i = draw.choice(NUMBERS)
                    attribute.ints[:] = [draw.choice((*NUMBERS, n)) for n in attribute.ints]
            case 3:
                tensor = draw.choice(copy.graph.initializer)
                tensor.dims[:] = [draw.choice((*NUMBERS, size)) for size in tensor.dims]
            case 4:
                nodes.append(draw.choice(nodes))
            case _:
                del nodes[draw.randrange(len(nodes))]
    return copy


@pytest.mark.sampled(2)
@pytest.mark.parametrize("damage", [damage_bytes, damage_fields])
def test_only_a_model_error_comes_out(
    damage: Callable[[onnx.ModelProto, random.Random], bytes | onnx.ModelProto],
) -> None:
    models = [tiny_model().model, light_model("squeezenet").model, light_model("zfnet512").model]
    draw = random.Random(0)
    refused = 0
    for _ in range(250):
        try:
            verify(import_onnx(damage(draw.choice(models), draw)))
        except ModelError as error:
            refused += f"[{error.code}]" in str(error)
    assert refused > 50
