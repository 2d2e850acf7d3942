"""Archives that are damaged or hostile: each is refused or right, and no pickle is opened."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.limits import ImportLimits
from tilewright.graph.importers.pt2 import archive
from tilewright.graph.importers.pt2.importer import import_pt2
from tilewright.graph.reference.reference import evaluate

from ..mutated_bytes import mutated

Golden = Callable[[str, str], None]
SMALL = Path(__file__).parents[1] / "aten" / "models" / "small.pt2"
MODEL, WEIGHTS = "models/model.json", "data/weights/model_weights_config.json"
Entries = dict[str, bytes]


def _entries() -> Entries:
    with zipfile.ZipFile(SMALL) as file:
        return {name.partition("/")[2]: file.read(name) for name in file.namelist()}


def _packed(entries: Entries, kind: int = zipfile.ZIP_STORED, root: str = "small/") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", kind) as file:
        for name, data in entries.items():
            file.writestr(root + name, data)
    return made.getvalue()


def _edited(name: str, edit: Callable[[Any], object]) -> bytes:
    """The archive with a changed JSON entry."""
    entries = _entries()
    item = json.loads(entries[name])
    edit(item)
    return _packed(entries | {name: json.dumps(item).encode()})


def _weight(item: Any) -> Any:
    return item["config"]["words.weight"]


DAMAGED: dict[str, Callable[[], bytes]] = {
    "empty": lambda: _packed({}),
    "no_zip": lambda: b"PK\x03\x04" + bytes(100),
    "cut": lambda: SMALL.read_bytes()[:-500],
    "compressed": lambda: _packed(_entries(), zipfile.ZIP_DEFLATED),
    "no_model": lambda: _packed({"data/weights/weight_0": b""}),
    "major": lambda: _edited(MODEL, lambda m: m["schema_version"].update(major=9)),
    "byte_order": lambda: _packed(_entries() | {"byteorder": b"big"}),
    "no_json": lambda: _packed(_entries() | {MODEL: b"{"}),
    "deep_json": lambda: _packed(_entries() | {MODEL: b"[" * 100_000}),
    "field": lambda: _edited(MODEL, lambda m: m["graph_module"].update(graph=3)),
    "pickled": lambda: _edited(WEIGHTS, lambda c: _weight(c).update(use_pickle=True)),
    "outside": lambda: _edited(
        WEIGHTS, lambda c: _weight(c)["tensor_meta"].update(storage_offset={"as_int": 10**9})
    ),
    "huge": lambda: _edited(
        WEIGHTS, lambda c: _weight(c)["tensor_meta"]["sizes"][0].update(as_int=10**15)
    ),
    "complex": lambda: _edited(WEIGHTS, lambda c: _weight(c)["tensor_meta"].update(dtype=10)),
    "no_weight": lambda: _edited(WEIGHTS, lambda c: c["config"].pop("words.weight")),
    "path": lambda: _edited(WEIGHTS, lambda c: _weight(c).update(path_name="../../etc/passwd")),
    "mutation": lambda: _edited(
        MODEL,
        lambda m: m["graph_module"]["signature"]["output_specs"].insert(
            0, {"buffer_mutation": {"arg": {"name": "add_1"}, "buffer_name": "shift"}}
        ),
    ),
    "undefined": lambda: _edited(
        MODEL,
        lambda m: m["graph_module"]["graph"]["nodes"][2]["inputs"][0]["arg"].update(
            as_tensor={"name": "nowhere"}
        ),
    ),
    "expression": lambda: _edited(
        MODEL,
        lambda m: m["graph_module"]["graph"]["tensor_values"]["tokens"]["sizes"].__setitem__(
            0, {"as_expr": {"expr_str": "__import__('os')", "hint": None}}
        ),
    ),
}


def _node(index: int, edit: Callable[[Any], object]) -> bytes:
    """The archive with a changed node."""
    return _edited(MODEL, lambda m: edit(m["graph_module"]["graph"]["nodes"][index]))


def _signature(name: str, edit: Callable[[Any], object]) -> bytes:
    return _edited(MODEL, lambda m: edit(m["graph_module"]["signature"][name]))


def _nested(model: Any) -> None:
    """A graph within a node of a graph within a node, and so on."""
    graph = model["graph_module"]["graph"]
    plain = graph["nodes"][2]["inputs"][0]
    inner = {**graph, "nodes": []}
    for _ in range(20):
        argument = {**plain, "arg": {"as_graph": {"name": "g", "graph": inner}}}
        inner = {**graph, "nodes": [{**graph["nodes"][2], "inputs": [argument]}]}
    graph["nodes"] = inner["nodes"]


def _longer() -> bytes:
    """An archive whose directory says that its last entry is longer than the file."""
    data = bytearray(_packed(_entries()))
    place = data.rindex(b"PK\x01\x02")
    data[place + 20 : place + 28] = (10**9).to_bytes(4, "little") * 2
    return bytes(data)


def _doubled() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            file.writestr("small/byteorder", b"little")
    return made.getvalue()


DAMAGED |= {
    "header": lambda: _packed(_entries()).replace(b"PK\x03\x04", b"PK\x00\x00", 1),
    "range": _longer,
    "twice": _doubled,
    "type": lambda: _edited(
        MODEL,
        lambda m: m["graph_module"]["graph"]["tensor_values"]["embedding"].update(dtype=8),
    ),
    "text": lambda: _edited(
        MODEL,
        lambda m: m["graph_module"]["graph"]["tensor_values"]["tokens"]["sizes"].__setitem__(
            0, {"as_expr": {"expr_str": "(", "hint": None}}
        ),
    ),
    "no_type": lambda: _edited(
        MODEL, lambda m: m["graph_module"]["graph"]["tensor_values"].pop("tokens")
    ),
    "argument": lambda: _node(2, lambda node: node["inputs"][0].update(name="what")),
    "number_output": lambda: _edited(
        MODEL, lambda m: m["graph_module"]["graph"]["outputs"].__setitem__(0, {"as_int": 3})
    ),
    "union": lambda: _node(2, lambda node: node["inputs"][0]["arg"].update(as_int=3)),
    "outputs": lambda: _node(
        2, lambda node: node.update(outputs=[{"as_tensors": [{"name": "a"}, {"name": "b"}]}])
    ),
    "kind": lambda: _node(2, lambda node: node["inputs"][0].update(arg={"as_custom_obj": {}})),
    "depth": lambda: _edited(MODEL, _nested),
    "number_input": lambda: _signature(
        "input_specs",
        lambda specs: specs.append({"user_input": {"arg": {"as_sym_int": {"as_name": "n"}}}}),
    ),
    "object_input": lambda: _signature(
        "input_specs", lambda specs: specs.append({"token": {"arg": {"name": "t"}}})
    ),
    "weight_size": lambda: _edited(
        WEIGHTS, lambda c: _weight(c)["tensor_meta"]["sizes"][0].update(as_int=-1)
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_refused(name: str, golden: Golden) -> None:
    with pytest.raises(ModelError) as caught:
        import_pt2(DAMAGED[name](), limits=ImportLimits(value_bytes=1 << 30))
    golden(f"errors/pt2_damage_{name}.txt", str(caught.value))


def test_files_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.pt2")
    Path("empty.pt2").touch()
    for name in ("pipe", "empty", "none"):
        with pytest.raises(ModelError) as caught:
            import_pt2(f"{name}.pt2", limits=ImportLimits(file_bytes=1 << 30))
        golden(f"errors/pt2_file_{name}.txt", str(caught.value))


def test_weights_are_counted_before_they_are_copied() -> None:
    data = _edited(
        WEIGHTS,
        lambda c: _weight(c)["tensor_meta"].update(
            sizes=[{"as_int": 1 << 16}, {"as_int": 1 << 10}],
            strides=[{"as_int": 0}, {"as_int": 0}],
        ),
    )
    limits = ImportLimits(value_bytes=1 << 33, constant_bytes=1 << 27)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError) as caught:
            import_pt2(data, limits=limits)
        assert tracemalloc.get_traced_memory()[1] < limits.constant_bytes
    finally:
        tracemalloc.stop()
    assert caught.value.code == "model-constant-bytes"


def test_limits(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    with pytest.raises(ModelError) as caught:
        import_pt2(SMALL, limits=ImportLimits(nodes=3))
    golden("errors/pt2_nodes.txt", str(caught.value))
    monkeypatch.setattr(archive, "ENTRIES", 3)
    with pytest.raises(ModelError) as caught:
        import_pt2(SMALL)
    golden("errors/pt2_entries.txt", str(caught.value))


class _Canary:
    """An object whose unpickling leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def test_no_pickle_is_opened(tmp_path: Path) -> None:
    canary = tmp_path / "opened"
    data = pickle.dumps(_Canary(canary))
    entries = _entries()
    assert "data/sample_inputs/model.pt" in entries
    bad = {"data/sample_inputs/model.pt": data, "data/constants/custom_obj_0": data}
    import_pt2(_packed(entries | bad))
    with pytest.raises(ModelError):
        import_pt2(DAMAGED["pickled"]().replace(entries["data/weights/weight_0"], data))
    assert not canary.exists()
    pickle.loads(data)
    assert canary.exists()  # it would have been seen


def _mutated_json(rng: random.Random) -> bytes:
    """The program with one value changed."""
    entries = _entries()
    name = rng.choice((MODEL, MODEL, WEIGHTS))
    item = json.loads(entries[name])
    holder: Any = item
    while True:
        key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.05:
            break
        holder = inner
    holder[key] = rng.choice((None, -1, 0, 3, 10**12, "", "x", [], {}, True, 1e300))
    return _packed(entries | {name: json.dumps(item).encode()})


def _outcome(data: bytes) -> str:
    limits = ImportLimits(value_bytes=1 << 28, constant_bytes=1 << 28, computed_bytes=1 << 24)
    try:
        graph = import_pt2(data, shapes={"tokens": (1, 4)}, limits=limits)
    except ModelError as error:
        return error.code or "refused"
    if list(graph.inputs) == ["tokens"]:
        found = evaluate(graph, {"tokens": np.zeros((1, 4), graph.types["tokens"].dtype)})
        assert all(array.dtype is not None for array in found.values())
    return "read"


@pytest.mark.parametrize("part", range(10))
@pytest.mark.sampled(3)
def test_500_mutated_archives(part: int) -> None:
    rng = random.Random(part)
    data = SMALL.read_bytes()
    outcomes = {_outcome(mutated(data, rng) if n % 2 else _mutated_json(rng)) for n in range(50)}
    assert len(outcomes) > 3  # refusals differ
