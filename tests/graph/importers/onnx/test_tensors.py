"""External data: from regular files in the model's folder only, no byte more than needed."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from tilewright.graph.errors import ModelError, ModelFileError
from tilewright.graph.importers.onnx.importer import import_onnx

Golden = Callable[[str, str], None]
VALUES = np.arange(6, dtype=np.float32)


def external_model(**entries: str) -> ModelProto:
    """y = x + w, where w is float32[6] in a file."""
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[6])
    w.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        w.external_data.add(key=key, value=value)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])
    y = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with good and bad files, beside a secret."""
    (tmp_path / "secret.bin").write_bytes(VALUES.tobytes())
    inside = tmp_path / "model"
    (inside / "deep").mkdir(parents=True)
    (inside / "w.bin").write_bytes(VALUES.tobytes())
    (inside / "deep" / "w.bin").write_bytes(b"12345678" + VALUES.tobytes())
    (inside / "link.bin").symlink_to(tmp_path / "secret.bin")
    (inside / "linked").symlink_to(tmp_path)
    os.link(tmp_path / "secret.bin", inside / "hard.bin")
    os.mkfifo(inside / "pipe")
    return inside


def load(folder: Path, model: ModelProto) -> object:
    onnx.save(model, folder / "m.onnx")
    return import_onnx(folder / "m.onnx").constants["w"]


def test_external_data_is_read_from_the_models_folder(folder: Path) -> None:
    np.testing.assert_array_equal(load(folder, external_model(location="w.bin")), VALUES)
    deep = external_model(location="deep/w.bin", offset="8", length="24", checksum="ignored")
    np.testing.assert_array_equal(load(folder, deep), VALUES)


def test_every_way_out_of_the_folder_is_refused(folder: Path, golden: Golden) -> None:
    cases = [
        {"location": "../secret.bin"},
        {"location": str(folder / "w.bin")},
        {"location": "deep/../w.bin"},
        {"location": "deep\\w.bin"},
        {"location": "w.bin\0.txt"},
        {},
        {"location": "link.bin"},
        {"location": "linked/secret.bin"},
        {"location": "hard.bin"},
        {"location": "pipe"},
        {"location": "deep"},
        {"location": "absent.bin"},
        {"location": "w.bin", "offset": "4"},
        {"location": "w.bin", "offset": "-4"},
        {"location": "w.bin", "offset": "9" * 30},
        {"location": "w.bin", "length": "8"},
    ]
    texts = []
    for entries in cases:
        with pytest.raises(ValueError, match="model: ") as caught:
            load(folder, external_model(**entries))
        texts.append(str(caught.value).replace(str(folder), "FOLDER"))
    golden("errors/onnx_external.txt", "\n".join(texts))


@pytest.mark.parametrize("place", ["", "onnx"])
def test_the_links_of_hugging_faces_cache_are_followed(tmp_path: Path, place: str) -> None:
    """A snapshot holds links to the files of all of them."""
    root = tmp_path / "models--somebody--something"
    snapshot, blobs = root / "snapshots" / "1a2b3c" / place, root / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "77aa").write_bytes(VALUES.tobytes())
    onnx.save(external_model(location="m.onnx_data"), blobs / "55bb")
    (tmp_path / "secret.bin").write_bytes(VALUES.tobytes())
    up = Path(os.path.relpath(root, snapshot))
    (snapshot / "m.onnx").symlink_to(up / "blobs" / "55bb")
    (snapshot / "m.onnx_data").symlink_to(up / "blobs" / "77aa")
    read = import_onnx(snapshot / "m.onnx").constants["w"]
    np.testing.assert_array_equal(read, VALUES)
    for elsewhere in (up.parent / "secret.bin", up / "blobs" / ".." / ".." / "secret.bin"):
        (snapshot / "m.onnx_data").unlink()
        (snapshot / "m.onnx_data").symlink_to(elsewhere)
        with pytest.raises(ModelFileError, match=r"links are not followed"):
            import_onnx(snapshot / "m.onnx")


def test_bytes_of_a_model_have_no_folder() -> None:
    with pytest.raises(ModelFileError) as caught:
        import_onnx(external_model(location="w.bin").SerializeToString())
    assert str(caught.value) == (
        "ModelFileError: model: initialiser 'w' lies in file 'w.bin', but the model was not read "
        "from a file. [external-folder]\n  Hint: pass the model's path instead of its bytes."
    )


def test_no_descriptor_stays_open(folder: Path) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("no /proc here: open descriptors cannot be counted")
    before = len(list(descriptors.iterdir()))
    for location in ("w.bin", "deep/w.bin", "link.bin", "hard.bin", "absent.bin", "linked/x"):
        try:
            load(folder, external_model(location=location))
        except ModelFileError:
            continue
    load(folder, external_model(location="w.bin"))
    assert len(list(descriptors.iterdir())) == before


def test_a_sparse_file_of_more_than_the_memory_is_refused_before_it_is_read(folder: Path) -> None:
    with (folder / "w.bin").open("wb") as file:
        file.truncate(1 << 42)
    model = external_model(location="w.bin")
    model.graph.initializer[0].dims[:] = [1 << 40]
    with pytest.raises(ModelError, match=r"takes 4398046511104 bytes; .* \[model-bytes\]"):
        load(folder, model)


def test_external_data_lies_in_memory_once(folder: Path) -> None:
    count = 1 << 22
    (folder / "w.bin").write_bytes(bytes(4 * count))
    model = external_model(location="w.bin")
    model.graph.initializer[0].dims[:] = [count]
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = count
    onnx.save(model, folder / "m.onnx")
    tracemalloc.start()
    weights = import_onnx(folder / "m.onnx").constants["w"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert weights.shape == (count,)
    assert peak < 1.1 * 4 * count
    (folder / "w.bin").write_bytes(b"")  # what was read stays, whatever becomes of the file
    assert not np.any(weights)
