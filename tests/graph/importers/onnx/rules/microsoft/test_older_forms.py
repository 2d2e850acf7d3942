"""Operators that ONNX took over later, in the form that they had before."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Contributed,
    check_contributed,
    random,
    refusal,
)


def test_they_are_what_onnxruntime_makes_of_them() -> None:
    x = random(1, 2, 5, 8)
    check_contributed(
        Contributed("ExpandDims", (x, np.array(-1, np.int32)), constants=(1,)),
        Contributed("ExpandDims", (x, np.array(1, np.int32)), constants=(1,)),
        Contributed("GatherND", (x, np.array([[0, 1], [1, 2]])), constants=(1,)),
        Contributed(
            "Pad",
            (x, np.array([[0, 1, 0, 2, 0, -1]]), np.array([1.5], np.float32)),
            constants=(1, 2),
        ),
        Contributed("Pad", (x, np.array([0, 1, 0, 1, 0, 2])), {"mode": "reflect"}, constants=(1,)),
        Contributed(
            "Range", tuple(np.array([v], np.float32) for v in (1.5, 7.0)), constants=(0, 1)
        ),
        Contributed("Range", tuple(map(np.array, (1, 7, 2))), constants=(0, 1, 2)),
        Contributed("Trilu", (x,)),
        Contributed("Trilu", (x, np.array(1)), {"upper": 0}, constants=(1,)),
        Contributed("Unique", (np.array([2, 1, 1, 3, 4, 3], np.float32),), outputs=3),
    )


# bicubic at a border is left out: there onnxruntime and ONNX's reference differ
@pytest.mark.parametrize("padding", ["zeros", "reflection"])
def test_grids_are_sampled(padding: str) -> None:
    x, grid = random(1, 1, 2, 5, 6), random(2, 1, 3, 4, 2)
    check_contributed(
        *(
            Contributed(
                "GridSample",
                (x, grid),
                {"mode": mode, "padding_mode": padding, "align_corners": aligned},
            )
            for mode, aligned in (("bilinear", 1), ("nearest", 0), ("bicubic", 1))
        ),
        Contributed("GridSample", (x, grid), {"padding_mode": "border"}),
    )


def test_transforms_are_those_of_numpy() -> None:
    x = random(1, 2, 8)
    half = np.fft.rfft(x)
    parts = np.stack([half.real, half.imag], axis=-1).astype("float32")
    known = {"onesided": 1, "normalized": 0, "signal_ndim": 1}
    check_contributed(  # onnxruntime has no kernels on a CPU
        Contributed("Rfft", (x,), known, expected=(parts,)),
        Contributed("Irfft", (parts,), known, expected=(x,)),
    )
    refused = refusal(Contributed("Rfft", (x,), {"signal_ndim": 2}))
    assert "signal_ndim is 2; known is 1" in refused


def test_an_end_of_a_range_has_one_element() -> None:
    ends = (np.array([1.0, 2.0], np.float32), np.array(7.0, np.float32))
    assert refusal(Contributed("Range", ends)) == (
        "ModelError: model: node 'node0' (Range) has the input 'n0_x0' of type float32[2]; "
        "expected one element. [onnx-one-element]"
    )
