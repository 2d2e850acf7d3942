"""Calibration: a value that is printed, shown, kept, and held against a model."""

from __future__ import annotations

import json
import random
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from tilewright.graph.errors import ModelError, ModelFileError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.precision.calibration.calibrate import calibrate
from tilewright.graph.precision.calibration.calibration import Calibration
from tilewright.graph.precision.calibration.calibration_file import HEADER
from tilewright.graph.precision.calibration.calibration_pictures import draw_histogram
from tilewright.graph.precision.calibration.histogram import ValueHistogram
from tilewright.graph.precision.channels.products import ModelProducts, products_digest
from tilewright.graph.precision.prepared import prepared_graph
from tilewright.graph.types import Array
from tilewright.tir.output_file import OutputFileError
from tilewright.tir.svg.shapes import BLUE, GREY, ORANGE

from ..models import items, network

NUMBERS = np.array([-2, -1, 0.5, 1, 1, 3], np.float32)


@pytest.fixture
def calibration() -> Calibration:
    return Calibration(
        model="small",
        digest=products_digest(prepared_graph(import_onnx(network()))),
        method="percentile",
        items=3,
        ranges={"x": (-2.0, 2.5), "conv <1>": (0.0, 0.10000000149011612)},
        extremes={"x": (-2.0, 3.0), "conv <1>": (0.0, 0.10000000149011612)},
        channel_peaks={"x": np.array([2, 3], np.float32)},
        channel_means={"conv <1>": np.array([0.25, -0.5, 1e-20], np.float32)},
        histograms={"x": ValueHistogram.of(NUMBERS, 8), "conv <1>": ValueHistogram.of(NUMBERS, 4)},
        factors={"x": np.array([0.5, 4], np.float32)},
        infinite=("mask",),
    )


def equal(one: Calibration, other: Calibration) -> bool:
    """Whether all that two calibrations hold is equal, to the bit."""

    def parts(it: Calibration) -> object:
        arrays = {**it.channel_peaks, **{f"mean {n}": a for n, a in it.channel_means.items()}}
        arrays |= {f"factors {n}": a for n, a in it.factors.items()}
        bits = {name: (str(array.dtype), array.tobytes()) for name, array in arrays.items()}
        counts = {n: (h.exponent, h.counts.tolist()) for n, h in it.histograms.items()}
        plain = (it.model, it.digest, it.method, it.items, it.infinite, it.weights, it.products)
        return plain, dict(it.ranges), dict(it.extremes), bits, counts

    return parts(one) == parts(other)


def test_its_text_has_each_range(calibration: Calibration) -> None:
    assert str(calibration) == (
        "calibration of 'small' by percentile: 2 values, 3 items, digest "
        f"{calibration.digest[:12]}\n"
        "  x: -2 to 2.5 (seen: -2 to 3)\n"
        "  conv <1>: 0 to 0.1\n"
        "  mask: infinite, without a range"
    )


def test_it_is_shown_with_pictures(calibration: Calibration) -> None:
    page = calibration._repr_html_()
    assert page.count("<svg") == 3
    assert "infinite, without a range: mask" in page
    assert "conv &lt;1&gt;" in page
    assert "<1>" not in page
    assert "seen -2 to 3" in calibration.picture().svg
    assert str(calibration.picture()) == calibration.title
    assert replace(calibration, histograms={})._repr_html_().count("<svg") == 1


def test_a_picture_has_a_bar_for_each_end_that_was_cut(calibration: Calibration) -> None:
    """Of x above: 3 was seen, 2.5 is stored."""
    svg = calibration.picture().svg
    assert svg.count("<rect") == 1
    assert svg.count(f'stroke="{BLUE}"') == 2
    assert svg.count(f'stroke="{ORANGE}"') == 1  # below 0 there is x alone


def test_a_histogram_has_the_bins_beyond_the_range_in_grey() -> None:
    svg = draw_histogram(ValueHistogram.of(NUMBERS, 8), (-1.0, 1.25)).svg
    bars = re.findall(r'<rect [^>]*fill="(#\w+)"[^>]*><title>(\d+)</title>', svg)
    kept = [int(count) for colour, count in bars if colour == BLUE]
    cut = [int(count) for colour, count in bars if colour == GREY]
    assert (sum(kept), sum(cut)) == (4, 2)


def test_one_of_a_model_without_magnitudes_is_shown(calibration: Calibration) -> None:
    zero = replace(calibration, ranges={"x": (0.0, 0.0)}, extremes={"x": (0.0, 0.0)})
    assert zero.picture().svg.startswith("<svg")
    assert replace(zero, ranges={}, extremes={}, histograms={})._repr_html_().count("<svg") == 1


def test_a_file_gives_back_what_was_saved(calibration: Calibration, tmp_path: Path) -> None:
    path = calibration.save(tmp_path / "c.npz")
    assert equal(Calibration.load(path), calibration)
    other = replace(calibration, histograms={}, infinite=(), channel_peaks={}, channel_means={})
    products = ModelProducts((("x", "conv <1>"), ("flat", "y")), "0f")
    other = replace(other, weights="tensor", products=products)
    assert equal(Calibration.load(str(other.save(str(path)))), other)
    assert [one.name for one in tmp_path.iterdir()] == ["c.npz"]


def test_a_file_of_the_first_format_has_a_scale_for_each_output(
    calibration: Calibration, tmp_path: Path
) -> None:
    path = replace(calibration, weights="tensor").save(tmp_path / "c.npz")
    assert Calibration.load(path).weights == "tensor"
    changed(path, {"format": 1}, {})
    assert equal(Calibration.load(path), calibration)


def test_a_file_is_an_npz_of_plain_arrays(calibration: Calibration, tmp_path: Path) -> None:
    with np.load(calibration.save(tmp_path / "c.npz"), allow_pickle=False) as arrays:
        assert json.loads(arrays[HEADER].tobytes())["method"] == "percentile"
        assert arrays["ranges"].tolist()[:2] == [-2.0, 2.5]


def test_a_folder_that_is_not_there_is_refused(calibration: Calibration, tmp_path: Path) -> None:
    with pytest.raises(OutputFileError):
        calibration.save(tmp_path / "none" / "c.npz")


def test_it_fits_its_own_model_at_any_size(calibration: Calibration) -> None:
    for batch in (1, 4, "n"):
        calibration.fitted(prepared_graph(import_onnx(network(batch=batch))))


def test_another_model_is_refused(calibration: Calibration) -> None:
    prepared = prepared_graph(import_onnx(network(seed=5)))
    with pytest.raises(ModelError) as caught:
        calibration.fitted(replace(prepared, name="larger"))
    assert str(caught.value) == (
        f"ModelError: compile: the calibration is of 'small' with digest {calibration.digest[:12]},"
        f" and the model is 'larger' with {products_digest(prepared)[:12]}; expected one of the "
        "same products and weights. [calibration-model]\n"
        "  Hint: tw.calibrate(model, data) makes one of this model."
    )


def renamed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with other names of values, but for its output."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for node in other.graph.node:
        for names in (node.input, node.output):
            names[:] = [name if name in ("y", "") else f"v.{name}" for name in names]
    for one in (*other.graph.input, *other.graph.initializer):
        one.name = f"v.{one.name}"
    return other


def test_a_model_whose_values_are_called_otherwise_is_the_same_one() -> None:
    model = network()
    known = calibrate(model, items(3), smooth=None)
    prepared = prepared_graph(import_onnx(renamed(model)))
    found = known.fitted(prepared)
    assert products_digest(prepared) == found.digest != known.digest
    own = calibrate(renamed(model), [{"v.x": item["x"]} for item in items(3)])
    # of what products read and make
    assert found.ranges.keys() == {f"v.{name}" for name in ("x", "conv", "flat", "product")}
    for mine, theirs in ((found.ranges, own.ranges), (found.extremes, own.extremes)):
        assert all(theirs[name] == value for name, value in mine.items())
    for name, means in own.channel_means.items():
        assert np.array_equal(found.channel_means[name], means)
    assert known.fitted(prepared_graph(import_onnx(model))) is known


def test_another_order_of_the_same_products_is_another_model() -> None:
    """Two products of equal weights, one behind the other, or side by side."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    m (float[1, 2] x) => (float[1, 2] y) <float[2, 2] w = {1, 2, 3, 4}> {
        a = MatMul(x, w)
        b = Relu(SOURCE)
        c = MatMul(b, w)
        y = Add(a, c)
    }"""
    one, other = (onnx.parser.parse_model(text.replace("SOURCE", name)) for name in ("a", "x"))
    known = calibrate(one, [{"x": np.ones((1, 2), np.float32)}])
    with pytest.raises(ModelError, match="calibration-model"):
        known.fitted(prepared_graph(import_onnx(renamed(other))))
    assert known.fitted(prepared_graph(import_onnx(renamed(one)))).ranges["v.b"] == (4, 6)


def test_factors_of_values_that_no_product_has_fit_no_other_names(
    calibration: Calibration,
) -> None:
    known = calibrate(network(), items(1))
    prepared = prepared_graph(import_onnx(renamed(network())))
    factors = {"y": np.ones(5, np.float32)}
    with pytest.raises(ModelError, match="calibration-model"):
        replace(known, factors=factors).fitted(prepared)
    moved = replace(known, factors={"conv": np.ones(3, np.float32)}).fitted(prepared)
    assert list(moved.factors) == ["v.conv"]
    # a calibration of the first format knows its own names alone
    with pytest.raises(ModelError, match="calibration-model"):
        calibration.fitted(prepared)


# -- files that hold something else ---------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        Calibration.load(path)
    return str(caught.value)


def problem(path: Path) -> str:
    """What is said to be wrong with a file."""
    text = refused(path)
    start = f"ModelFileError: calibration: '{path}' is no calibration: "
    end = "; expected a file that Calibration.save has written. [calibration-file]"
    assert text.startswith(start)
    assert text.endswith(end)
    return text[len(start) : -len(end)]


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.npz") == (
        f"ModelFileError: calibration: '{tmp_path}/none.npz' is no calibration: it cannot be read: "
        "No such file or directory; expected a file that Calibration.save has written. "
        "[calibration-file]"
    )
    assert problem(tmp_path) == "it cannot be read: Is a directory"


def test_a_device_is_refused() -> None:
    assert problem(Path("/dev/zero")) == "it is no regular file"


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    path.write_text("no zip")
    assert problem(path) == "it is no npz: File is not a zip file"
    np.savez(path, x=NUMBERS)
    assert problem(path) == "it is damaged: it has no header"
    np.savez(path, header=np.frombuffer(b"no json", np.uint8))
    assert problem(path).startswith("it is damaged: json: the header is not JSON")


def test_compressed_arrays_are_refused(calibration: Calibration, tmp_path: Path) -> None:
    """None is larger than its file."""
    path = calibration.save(tmp_path / "c.npz")
    with np.load(path) as arrays:
        np.savez_compressed(path, **dict(arrays))
    assert "is compressed, or larger than the file" in problem(path)


def test_a_file_that_is_cut_off_is_refused(calibration: Calibration, tmp_path: Path) -> None:
    path = calibration.save(tmp_path / "c.npz")
    data = path.read_bytes()
    for end in range(0, len(data), 11):
        path.write_bytes(data[:end])
        problem(path)


def test_a_file_with_other_bytes_is_refused_or_read(
    calibration: Calibration, tmp_path: Path
) -> None:
    path, rng = calibration.save(tmp_path / "c.npz"), random.Random(0)
    data, told = path.read_bytes(), 0
    for _ in range(1_500):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            Calibration.load(path)
        except ModelFileError:
            told += 1
    assert told > 1_000


def changed(path: Path, header: dict[str, object], arrays: dict[str, Array]) -> None:
    """Write the file with other fields of its header and other arrays."""
    with np.load(path) as found:
        kept = dict(found)
    fields = {**json.loads(kept.pop(HEADER).tobytes()), **header}
    text = np.frombuffer(json.dumps(fields).encode(), np.uint8)
    np.savez(path, **{**kept, **arrays, HEADER: text})


BAD_HEADERS = [
    ({"format": 3}, "its format is not 1 or 2"),
    ({"products": [["x", 3]]}, "expected a text"),
    ({"products": [["x"] * 65]}, "expected a list of at most 64"),
    ({"form": "0" * 65}, "expected a text of at most 64"),
    ({"weights": "row"}, "expected 'channel' or 'tensor'"),
    ({"method": "magic"}, "expected 'minmax' or 'moving' or 'entropy'"),
    ({"items": -1}, "expected a whole number"),
    ({"values": ["x", "x"]}, "a value stands there twice"),
    ({"values": ["x"]}, "it has not two numbers for each value"),
    ({"values": "x"}, "expected a list"),
    ({"infinite": [3]}, "expected a text"),
    ({"peaks": {"x": 1 << 40}}, "of 1099511627776 elements"),
    ({"peaks": {"x": -1, "y": 3}}, "expected a whole number"),
    ({"counts": {"x": 24}}, "its histograms have no exponents"),
    ({"counts": {"x": 7, "conv <1>": 17}}, "a histogram is none"),
    ({"counts": {"x": 0, "conv <1>": 24}}, "a histogram is none"),
]
BAD_ARRAYS = [
    ({"ranges": np.zeros(4)}, "its arrays are not ranges, extremes, peaks, means, factors, co"),
    ({"factors": np.array([1, 0], np.float32)}, "a factor of a channel is not positive"),
    ({"more": np.zeros(1, np.float32)}, "its arrays are not ranges"),
    ({"ranges": np.array([3, 2, 0, 0], np.float32)}, "a range ends before it begins"),
    ({"ranges": np.array([0, np.nan, 0, 0], np.float32)}, "it has not two numbers"),
    ({"peaks": np.array([np.inf, 0], np.float32)}, "an element is no finite number"),
    ({"exponents": np.array([129, 0])}, "a histogram is none"),
    ({"counts": np.full(24, -1)}, "a histogram is none"),
    ({"ranges": np.zeros((2, 2), np.float32)}, "another header than NumPy writes"),
    ({"ranges": np.zeros(4, np.float16)}, "another header than NumPy writes"),
]


@pytest.mark.parametrize(
    ("header", "arrays", "said"),
    [
        *((header, {}, said) for header, said in BAD_HEADERS),
        *(({}, arrays, said) for arrays, said in BAD_ARRAYS),
    ],
)
def test_what_contradicts_itself_is_refused(
    calibration: Calibration,
    tmp_path: Path,
    header: dict[str, object],
    arrays: dict[str, Array],
    said: str,
) -> None:
    path = calibration.save(tmp_path / "c.npz")
    changed(path, {}, {})
    assert equal(Calibration.load(path), calibration)
    changed(path, header, arrays)
    assert said in problem(path)


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_header_of_an_array_has_the_length_that_it_says(
    calibration: Calibration, tmp_path: Path
) -> None:
    members = members_of(path := calibration.save(tmp_path / "c.npz"))
    data = members["peaks.npy"]
    packed(path, {**members, "peaks.npy": data[:8] + bytes([data[8] + 1]) + data[9:]})
    assert problem(path) == "it is damaged: the header of an array has another length than it says"


def packed(path: Path, members: dict[str, bytes]) -> None:
    """Write members whose sums are right, whatever they are."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_sizes_that_no_memory_has_are_refused(calibration: Calibration, tmp_path: Path) -> None:
    members = members_of(path := calibration.save(tmp_path / "c.npz"))
    data = members["peaks.npy"]
    members["peaks.npy"] = data.replace(b"(2,), }    ", b"(99999,), }")
    assert len(members["peaks.npy"]) == len(data)
    packed(path, members)
    assert problem(path) == "it is damaged: an array of float32[99999] has 8 bytes"


def test_arrays_with_other_bytes_are_refused_or_read(
    calibration: Calibration, tmp_path: Path
) -> None:
    """With sums that are right, so that what is damaged is looked at."""
    members, rng = members_of(path := calibration.save(tmp_path / "c.npz")), random.Random(0)
    told = 0
    for _ in range(1_500):
        name = rng.choice(sorted(members))
        damaged = bytearray(members[name])
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(min(len(damaged), 128))] = rng.randrange(256)
        packed(path, {**members, name: bytes(damaged)})
        try:
            Calibration.load(path)
        except ModelFileError:
            told += 1
    assert told > 900
