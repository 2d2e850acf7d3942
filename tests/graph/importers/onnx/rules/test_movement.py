"""DepthToSpace and SpaceToDepth, which become moves; what the rules of moves refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.types import Array

Check = Callable[..., object]
Random = Callable[..., Array]
Refused = Callable[..., str]


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, mode: str
) -> None:
    check_node("DepthToSpace", {"x": random_array(1, 2, 8, 3, 4)}, mode=mode, blocksize=2)


def test_space_to_depth_agrees_with_onnxruntime(check_node: Check, random_array: Random) -> None:
    check_node("SpaceToDepth", {"x": random_array(1, 2, 3, 4, 6)}, blocksize=2)


def test_channels_that_make_no_blocks_are_refused(refused_node: Refused) -> None:
    x = np.zeros((1, 6, 2, 2), np.float32)
    assert refused_node("DepthToSpace", {"x": x}, blocksize=2) == (
        "ModelError: model: node 'the_node' (DepthToSpace) cannot cut float32[1, 6, 2, 2] into "
        "blocks of 2 x 2. [onnx-blocks]"
    )
