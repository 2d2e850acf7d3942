"""Rules of aten operators: values of archives that hold many calls, and the schemas of PyTorch.

make_archives.py, beside this file, writes the archives and the schemas; torch is not needed here.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.importers.aten.aliases import VIEWS
from tilewright.graph.importers.aten.rule import NO_VALUES
from tilewright.graph.importers.aten.rules.table import RULES, rule_name
from tilewright.graph.importers.limits import ImportLimits
from tilewright.graph.importers.pt2.archive import open_archive
from tilewright.graph.importers.pt2.importer import import_pt2
from tilewright.graph.reference.reference import evaluate

HERE = Path(__file__).parent
FAMILIES = tuple(sorted(path.stem for path in HERE.glob("*.pt2")))
SCHEMAS = (HERE / "schemas.txt").read_text().splitlines()
# nodes of these only stand in programs with open sizes, or are made by other exporters
UNSAID = {"_unsafe_view", "dropout", "einsum", "feature_dropout", "type_as"}  # views, was seen
ELSEWHERE = {
    "_assert_async.msg",
    "_assert_scalar",
    "_local_scalar_dense",
    "_native_batch_norm_legit.no_stats",
    "dropout_",
    "empty.memory_format",
    "item",
    "new_empty",
    "nonzero",
    "sym_constrain_range_for_size",
    "sym_numel",
    "sym_size.int",
}


def _loaded(family: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    with np.load(HERE / f"{family}.npz") as file:
        arrays = {name: file[name] for name in file.files}
    return (
        {name: array for name, array in arrays.items() if name.startswith("in")},
        [arrays[name] for name in sorted(arrays) if name.startswith("out")],
    )


def _compare(family: str, run: object, names: tuple[str, ...]) -> None:
    given, wanted = _loaded(family)
    inputs = dict(zip(names, given.values(), strict=True))
    found = run(inputs)  # type: ignore[operator]
    assert len(found) == len(wanted)
    for (name, array), expected in zip(found.items(), wanted, strict=True):
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape), name
        np.testing.assert_allclose(
            array, expected, rtol=3e-5, atol=3e-6, equal_nan=True, err_msg=name
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_those_of_pytorch(family: str) -> None:
    graph = import_pt2(HERE / f"{family}.pt2")
    _compare(family, lambda given: evaluate(graph, given, dtype=None), graph.inputs)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.sampled(5)
def test_engines_compute_the_same(family: str) -> None:
    engine = tw.compile(HERE / f"{family}.pt2", cache=False)
    names = tuple(spec.name for spec in engine.inputs)
    _compare(family, engine.run, names)


def _targets(family: str) -> Iterator[str]:
    archive = open_archive(HERE / f"{family}.pt2", ImportLimits())
    program = json.loads(bytes(archive.read("models/model.json")))
    for node in program["graph_module"]["graph"]["nodes"]:
        yield rule_name(node["target"].removeprefix("torch.ops."))


def test_each_rule_stands_in_an_archive() -> None:
    called = {name for family in FAMILIES for name in _targets(family)}
    named = {name for name in RULES if not name.startswith(("_operator.", "math.", "torch."))}
    assert named - called == ELSEWHERE


def _schema(text: str) -> tuple[str, dict[str, str | None], bool]:
    """The rule's name, the parameters with the texts of their defaults, and whether the result may
    share elements with one.
    """
    named = re.sub(r"^(prims|quantized_decomposed|torchao)::", r"aten::\1.", text)
    match = re.fullmatch(r"aten::([^(]+)\((.*)\) -> (.*)", named)
    assert match is not None, text
    parameters = dict[str, str | None]()
    for part in re.sub(r", (?=-?[0-9])", ",", match[2]).split(", "):
        if part not in ("*", ""):
            name, _, default = part.rpartition(" ")[2].partition("=")
            parameters[name] = default or None
    return match[1], parameters, "(a" in match[2]


@pytest.mark.parametrize("text", SCHEMAS, ids=lambda text: text.partition("(")[0])
def test_signatures_are_the_schemas(text: str) -> None:
    name, parameters, may_alias = _schema(text)
    own = list(inspect.signature(RULES[name]).parameters.values())[1:]
    if own[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return
    parameters = {one: default for one, default in parameters.items() if one not in NO_VALUES}
    assert [one.name for one in own[: len(parameters)]] == list(parameters)
    for one, default in zip(own, parameters.values(), strict=False):
        if default is not None:
            assert one.default is not inspect.Parameter.empty, one.name
            assert _fits(one.default, default), (one.name, one.default, default)
    assert all(one.default is not inspect.Parameter.empty for one in own[len(parameters) :])
    assert may_alias == (name in VIEWS - UNSAID)


def _fits(value: object, text: str) -> bool:
    """Whether a default is what a schema says: a list may stand for its one number."""
    plain = {"True": True, "False": False, "None": None, "[]": (), '"valid"': 0}

    if text in plain:
        return value in (plain[text], None, ())
    if text.startswith('"'):
        return value == text.strip('"')
    if isinstance(value, str):
        return (value, text) == ("float32", "6")  # a number of torch's own
    if value is None:
        return text == "0"  # the first of the orders of elements in memory
    numbers = {float(one) for one in text.strip("[]").split(",")}
    return numbers == {float(value)}  # type: ignore[arg-type]
