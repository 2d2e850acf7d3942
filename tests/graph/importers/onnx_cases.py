"""ONNX's own node tests, and its models with stored data, as they are read and judged here."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.ir import Graph
from tilewright.graph.types import Array

WANTED = re.compile(r"input '(.*)' is not a constant")
SAID = 8  # elements of a value that is said when a model is read
KINDS = ("simple", "pytorch-converted", "pytorch-operator")


def array(value: Array | TensorProto) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


@cache
def load_cases() -> list[TestCase]:
    """ONNX's node tests, and its models with stored data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators of the cases overflow on purpose
        cases = load_model_tests(kind="node")
    stored = [case for kind in KINDS for case in load_model_tests(kind=kind)]
    return [*cases, *map(with_data, stored)]


def with_data(case: TestCase) -> TestCase:
    """A case whose model and data lie in files."""
    folder = Path(case.model_dir)
    sets = [
        tuple(
            [
                TensorProto.FromString((at / f"{what}_{n}.pb").read_bytes())
                for n in range(len(list(at.glob(f"{what}_*.pb"))))
            ]
            for what in ("input", "output")
        )
        for at in sorted(folder.glob("test_data_set_*"))
    ]
    return replace(case, model=onnx.load(folder / "model.onnx"), data_sets=sets)


def flat(names: Iterable[str], values: Iterable[object]) -> dict[str, Array]:
    """Values by name, those of a sequence 'x' as 'x[0]', 'x[1]', ...; optional ones that are none
    are left out.
    """
    found: dict[str, Array] = {}
    for name, value in zip(names, values, strict=False):
        if isinstance(value, list):
            found |= {f"{name}[{n}]": array(one) for n, one in enumerate(value)}
        elif value is not None:
            found[name] = array(value)
    return found


def structures(case: TestCase) -> tuple[dict[str, Sequence[object]], dict[str, None]]:
    """What is said of inputs that are no tensors: shapes of sequences, and what is not there."""
    names = [value.name for value in case.model.graph.input]
    values = dict(zip(names, case.data_sets[0][0], strict=False))
    listed = {name: value for name, value in values.items() if isinstance(value, list)}
    shapes: dict[str, Sequence[object]] = {
        name: [array(one).shape for one in value] for name, value in listed.items()
    }
    if listed:  # a symbol of an element's shape may be one of a tensor's
        tensors = {name: value for name, value in values.items() if hasattr(value, "shape")}
        shapes |= {name: value.shape for name, value in tensors.items()}
    return shapes, {name: None for name, value in values.items() if value is None}


def read(case: TestCase) -> tuple[Graph, dict[str, Array]]:
    """The graph of a case, and the values of inputs that are said when it is read, because rules
    want to know them. Raises: ModelError.
    """
    names = [value.name for value in case.model.graph.input]
    shapes, absent = structures(case)
    values = flat(names, case.data_sets[0][0]) if len(case.data_sets) == 1 else {}
    try:
        return read_saying(case.model, values, shapes, absent)
    except ModelError:
        small = {name: value for name, value in values.items() if _is_small(value)}
        if not small:
            raise
        try:
            return import_onnx(case.model, constants={**small, **absent}), small
        except ModelError:
            pass
        raise


def _is_small(value: Array) -> bool:
    """Whether a value may be said when a model is read: a list of numbers, such as sizes."""
    return value.ndim < 2 and value.size <= SAID and value.dtype.kind in "biufV"


def read_saying(
    model: ModelProto,
    values: Mapping[str, Array],
    shapes: Mapping[str, Sequence[object]] | None = None,
    absent: Mapping[str, None] | None = None,
) -> tuple[Graph, dict[str, Array]]:
    """The graph of a model, and those of these values that rules want to know as constants.

    shapes: of sequences; absent: what is not there. Raises: ModelError.
    """
    said: dict[str, Array] = {}
    while True:
        others = {name: shape for name, shape in (shapes or {}).items() if name not in said}
        try:
            return import_onnx(model, shapes=others, constants={**said, **(absent or {})}), said
        except UnsupportedOperator as error:
            wanted = {name for item in error.nodes for name in WANTED.findall(item.reason)}
            new = wanted.intersection(values).difference(said)
            if not new:
                raise
            said |= {name: values[name] for name in new}


def reason(error: ModelError) -> str:
    """Why a model is refused, without what differs from case to case: the names of its values."""
    if not isinstance(error, UnsupportedOperator):
        return f"[{error.code}]"
    parts = [f"{part.kind}: {part.reason}" for part in error.parts]
    nodes = [f"{node.operator}: {node.reason}" for node in error.nodes]
    return re.sub(r"'[^']*'", "'...'", (parts + nodes)[0]).partition("; expected one of ")[0]


def check_output(case: TestCase, got: Array, expected: Array, *, is_drawn: bool = False) -> None:
    """An output is what a case expects, within its tolerances; where it is drawn, of its type."""
    assert got.dtype == expected.dtype, case.name
    assert got.shape == expected.shape, case.name
    if is_drawn:
        return
    kinds = {node.op_type for node in case.model.graph.node}
    # what rounding leaves of a zero in a spectrum: the cases of DFT have float32's
    noise = 1e-6 * float(np.abs(expected).max(initial=0)) if "DFT" in kinds else 0.0
    atol = max(case.atol, noise)
    # cases in bfloat16, and attention in float16, round after every step: two last places
    attends = case.name.startswith("test_attention")
    rounded = {"bfloat16": 2**-6, "float16": 2**-9 if attends else 0.0}
    rtol = max(case.rtol, rounded.get(expected.dtype.name, 0.0))
    if expected.dtype.kind == "V":  # of ml_dtypes
        got, expected = (array.astype(np.float64) for array in (got, expected))
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, err_msg=case.name)
