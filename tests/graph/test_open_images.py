"""One engine for images of any number, height and width: values, bits, C, refusals."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tests.exported import exported
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.runtime.arrays import ArgumentError, Array
from tilewright.runtime.engine.engine import Engine

from .open_images import Network, pyramid, residual, unet

pytestmark = pytest.mark.needs_cc

MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "residual": residual,
    "unet": unet,
    "pyramid": pyramid,
}
SHAPES = {"batch": (1, 2, 3), "height": (5, 20, 40), "width": (5, 24, 40)}
SIZES = ((1, 5, 5), (2, 20, 24), (3, 40, 40), (1, 7, 33), (2, 39, 6))


@cache
def engine(name: str) -> Engine:
    return tw.compile(MODELS[name](), "c", shapes=SHAPES, verify="off")


def images(batch: int, height: int, width: int, channels: int = 3) -> Array:
    rng = np.random.default_rng(batch * 10_000 + height * 100 + width)
    return rng.standard_normal((batch, channels, height, width), dtype=np.float32)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_one_engine_serves_every_image_with_one_set_of_bits(name: str) -> None:
    reference = ReferenceEvaluator(MODELS[name]())
    for sizes in SIZES:
        x = images(*sizes)
        (wanted,) = reference.run(None, {"x": x})
        found = engine(name).run({"x": x}, threads=1)["y"]
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        assert engine(name).run({"x": x}, threads=2)["y"].tobytes() == found.tobytes()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_every_kernel_is_proved(name: str) -> None:
    kernels = engine(name).explain().kernels
    assert kernels
    assert all(kernel.proof.startswith("proved") for kernel in kernels)


def test_an_image_has_the_same_bits_in_every_batch() -> None:
    x = images(3, 17, 23)
    whole = engine("unet")(x)
    for batch in (1, 2):
        assert engine("unet")(x[:batch]).tobytes() == whole[:batch].tobytes()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_its_c_gives_the_same_bits_and_refuses_other_sizes(tmp_path: Path) -> None:
    library, loaded = exported(engine("residual"), tmp_path)

    def run(x: Array, y: Array, sizes: tuple[int, int, int], threads: int = 1) -> int:
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y)]
        return int(
            library.images_run(loaded, *pointers, *map(ctypes.c_int64, sizes), None, threads)
        )

    for sizes in SIZES:
        x = images(*sizes)
        expected = engine("residual")(x)
        for threads in (1, 2):
            found = np.empty_like(expected)
            assert run(x, found, sizes, threads) == 0
            assert found.tobytes() == expected.tobytes()
    untouched = np.full((3, 5), 7, np.float32)
    for sizes in ((4, 40, 40), (3, 41, 40), (3, 40, 4)):
        assert run(images(3, 40, 40), untouched, sizes) == -2
    assert (untouched == 7).all()


def test_a_size_outside_of_its_bounds_is_refused_and_nothing_is_written() -> None:
    out = {"y": np.full((3, 5), 7, np.float32)}
    for sizes in ((3, 41, 40), (3, 40, 4)):
        with pytest.raises(ArgumentError):
            engine("residual").run({"x": images(*sizes)}, out=out)
    assert (out["y"] == 7).all()
    assert engine("residual").run({"x": images(3, 40, 39)}, out=out)["y"].shape == (3, 5)


def test_a_saved_engine_takes_every_image(tmp_path: Path) -> None:
    loaded = tw.load(engine("unet").save(tmp_path / "images.twe"))
    for sizes in SIZES[2:]:
        x = images(*sizes)
        assert loaded(x).tobytes() == engine("unet")(x).tobytes()


def test_a_window_that_may_not_fit_is_refused_with_its_node() -> None:
    with pytest.raises(ModelError) as caught:
        import_onnx(residual(), shapes={**SHAPES, "height": (0, 20, 40)})
    assert str(caught.value) == (
        "ModelError: Conv: sizes: whether 7 <= height + 6 is decided by each call; expected what "
        "holds in every one, or in none. [op-open-size]\n"
        "  in node 'stem_conv' (Conv):\n"
        "    'x': float32[batch, 3, height, width]\n"
        "    'stem_w': float32[8, 3, 7, 7]\n"
        "    'stem_b': float32[8]\n"
        "  Hint: compile(model, shapes={...}) gives a size that is a number."
    )


def one_node(kind: str, *more: str, **attributes: object) -> onnx.ModelProto:
    net = Network()
    net.constant("twice", [1, 1, 2, 3])
    net.constant("fractions", [1, 1, 1.5, 0.5], "float32")
    net.constant("wide", [1, 1, 64, 32])
    net.constant("doubled", [1, 1, 2, 2], "float32")
    net.constant("around", [0, 0, 3, 1, 0, 0, 2, 4])
    net.weights("w", 8, 4, 3, 3)
    net.weights("t", 4, 2, 3, 3)
    net.add(kind, ["x", *more], "y", **attributes)
    return net.model("y", channels=4)


PLACES = {
    name: {"coordinate_transformation_mode": mode}
    for name, mode in {
        "symmetric": "half_pixel_symmetric",
        "torch": "pytorch_half_pixel",
        "corners": "align_corners",
    }.items()
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "more", "attributes"),
    [
        ("Conv", ("w",), {"auto_pad": "SAME_UPPER"}),
        ("Conv", ("w",), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
        ("Conv", ("w",), {"auto_pad": "SAME_LOWER", "strides": [4, 2], "dilations": [1, 2]}),
        ("MaxPool", (), {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER", "strides": [2, 3]}),
        ("AveragePool", (), {"kernel_shape": [2, 3], "auto_pad": "SAME_UPPER", "strides": [3, 2]}),
        (
            "AveragePool",
            (),
            {
                "kernel_shape": [3, 3],
                "auto_pad": "SAME_LOWER",
                "strides": [2, 2],
                "count_include_pad": 1,
            },
        ),
        ("MaxPool", (), {"kernel_shape": [3, 2], "pads": [1, 1, 0, 0]}),
        ("MaxPool", (), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        ("AveragePool", (), {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 1, 1, 1]}),
        (
            "AveragePool",
            (),
            {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1] * 4, "count_include_pad": 1},
        ),
        ("GlobalAveragePool", (), {}),
        ("ConvTranspose", ("t",), {"strides": [2, 1], "pads": [1] * 4}),
        ("ConvTranspose", ("t",), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ("Pad", ("around",), {"mode": "reflect"}),
        ("Pad", ("around",), {"mode": "edge"}),
        ("DepthToSpace", (), {"blocksize": 2}),
        ("Tile", ("twice",), {}),
        ("Resize", ("", "fractions"), {"mode": "linear"}),
        ("Resize", ("", "fractions"), {"coordinate_transformation_mode": "asymmetric"}),
        ("Resize", ("", "", "wide"), {"mode": "nearest"}),
        ("Resize", ("", "", "wide"), {"mode": "linear", **PLACES["symmetric"]}),
        ("Resize", ("", "", "wide"), {"mode": "linear", **PLACES["torch"]}),
        ("Resize", ("", "doubled"), {"mode": "linear", **PLACES["corners"]}),
        ("Resize", ("", "doubled"), {"mode": "nearest", **PLACES["torch"]}),
    ],
)
def test_what_moves_along_open_axes_gives_what_it_does_at_closed_sizes(
    kind: str, more: tuple[str, ...], attributes: dict[str, object]
) -> None:
    proto = one_node(kind, *more, **attributes)
    found = tw.compile(proto, "c:scalar", shapes=SHAPES, verify="off")
    assert all(kernel.proof.startswith("proved") for kernel in found.explain().kernels)
    for sizes in SIZES:
        x = images(*sizes, channels=4)
        closed = import_onnx(proto, shapes=dict(zip(SHAPES, sizes, strict=True)))
        wanted = evaluate(closed, {"x": x})["y"]
        assert found(x).shape == wanted.shape
        np.testing.assert_allclose(found(x), wanted, rtol=1e-5, atol=1e-6)


def test_a_cubic_resize_to_a_number_is_refused_with_a_way_out() -> None:
    proto = one_node("Resize", "", "", "wide", mode="cubic")
    with pytest.raises(ModelError) as caught:
        import_onnx(proto, shapes=SHAPES)
    assert str(caught.value) == (
        "UnsupportedOperator: model: 1 of 1 nodes cannot be imported. [onnx-unsupported]\n"
        "  in the model:\n"
        "    node 'y': Resize of ai.onnx opset 17: 'batch' is decided by each "
        "call; expected a number\n"
        "  Hint: shapes={...} gives a size that is a number."
    )
