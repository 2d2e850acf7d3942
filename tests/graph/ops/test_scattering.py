"""Operators that write where another tensor says: values, updates that meet, indices from the end
and indices that do not exist.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.scattering import (
    CacheUpdate,
    ReverseSequence,
    ScatterElements,
    ScatterND,
)
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType
from tilewright.runtime.index_checks import IndexRangeError

from ..cases import Case, check_case, check_compiled, expected_of, model_of

RNG = np.random.default_rng(0)
COMBININGS = ("none", "add", "mul", "max", "min")


def floats(*shape: int, dtype: str = "float32") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def whole(*shape: int, dtype: str = "int32") -> Array:
    return RNG.integers(0, 9, shape).astype(dtype)


def places(size: int, *shape: int, kind: str = "int64") -> Array:
    return RNG.integers(-size, size, shape).astype(kind)


def positions(sizes: tuple[int, ...], *shape: int) -> Array:
    return np.stack([RNG.integers(-size, size, shape) for size in sizes], -1)


def combined(name: str) -> dict[str, str]:
    return {} if name == "none" else {"reduction": name}


CASES = [
    *(
        Case(
            "ScatterElements",
            (floats(5, 4), places(4, 5, 9), floats(5, 9)),
            {"axis": 1, **combined(name)},
            (18,),
            constants,
        )
        for name in COMBININGS
        for constants in ((), (1,))
    ),
    *(
        Case("ScatterElements", (whole(6, dtype=k), places(6, 20), whole(20, dtype=k)), c, (18,))
        for k in ("int8", "int64", "uint8", "uint32")
        for c in map(combined, COMBININGS)
    ),
    Case("ScatterElements", (floats(4, 5, 3), places(4, 2, 3, 2), floats(2, 3, 2)), {}, (11, 16)),
    Case("ScatterElements", (floats(4, 3), places(4, 0, 3), floats(0, 3)), {}, (13,)),
    Case("ScatterElements", (floats(4, 3), places(4, 0, 3), floats(0, 3)), {}, (13,), (1,)),
    Case("ScatterElements", (floats(4) > 0, places(4, 3), floats(3) > 0), {}, (13,)),
    *(
        Case(
            "ScatterND",
            (floats(3, 4, 5), positions((3, 4), 6), floats(6, 5)),
            combined(name),
            (18,),
            constants,
        )
        for name in COMBININGS
        for constants in ((), (1,))
    ),
    Case("ScatterND", (floats(3, 4), positions((3, 4), 2, 3), floats(2, 3)), {}, (11, 13, 16)),
    Case("ScatterND", (floats(3, 4), positions((3,), 2), floats(2, 4)), {}, (11,)),
    Case("ScatterND", (floats(3, 4), np.array([[2], [0]]), floats(2, 4)), {}, (11,), (1,)),
    Case(
        "ScatterND",
        (floats(3, 4), np.array([[2], [0], [1]]), floats(3, 4)),
        {"reduction": "add"},
        (16,),
        (1,),
    ),
    Case("ScatterND", (floats(3, 4), np.array([[2], [0], [1]]), floats(3, 4)), {}, (16,), (1,)),
    Case("ScatterND", (floats(3, 4, dtype="float64"), positions((3,), 5), floats(5, 4) + 0.0)),
    Case("ScatterND", (floats(3, 0), positions((3,), 2), floats(2, 0)), {}, (16,)),
    Case("ReverseSequence", (floats(4, 3, 2), np.array([4, 1, 2])), {}, (10,)),
    Case(
        "ReverseSequence",
        (whole(3, 4), np.array([0, 3, 4])),
        {"batch_axis": 0, "time_axis": 1},
        (10, 28),
    ),
]
CASES = [case for case in CASES if len({x.dtype for x in case.inputs[::2] if x is not None}) == 1]
CACHES = [
    Case("TensorScatter", (floats(2, 3, 6, 4), floats(2, 3, 2, 4)), {}, (24,)),
    Case("TensorScatter", (floats(2, 3, 6, 4), floats(2, 3, 2, 4), np.array([4, 1])), {}, (24,)),
    Case(
        "TensorScatter",
        (floats(2, 6, 4), floats(2, 3, 4), np.array([5, 13])),
        {"mode": "circular"},
        (24,),
    ),
    Case("TensorScatter", (floats(2, 6), floats(2, 0), np.array([6, 1])), {"axis": 1}, (24,)),
    Case("TensorScatter", (floats(2, 6, 4), floats(2, 6, 4)), {"axis": 1}, (24,)),
]


@pytest.mark.parametrize("case", [*CASES, *CACHES], ids=str)
def test_they_agree_with_the_reference(case: Case) -> None:
    check_case(case)


@pytest.mark.needs_cc
def test_compiled_they_agree_with_float64() -> None:
    check_compiled([case for case in CASES if max(case.opsets) == 18])
    check_compiled(CACHES)


def test_interpreted_they_agree_with_float64() -> None:
    check_compiled([case for case in CASES if max(case.opsets) in (11, 16)], "python")
    check_compiled([case for case in CASES if max(case.opsets) == 28], "python")


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", COMBININGS)
def test_where_updates_meet_their_order_counts(name: str) -> None:
    x = np.array([0, 7], np.int32)
    at, updates = np.array([[1], [1], [-1]]), np.array([5, 9, 3], np.int32)
    expected = {"none": 3, "add": 24, "mul": 945, "max": 9, "min": 3}[name]
    cases = [
        Case("ScatterND", (x, at, updates), combined(name), (18,)),
        Case("ScatterElements", (x, at[:, 0], updates), combined(name), (18,)),
        Case("ScatterElements", (x, at[:, 0], updates), combined(name), (18,), (1,)),
    ]
    model, feeds = model_of(cases, 18)
    for result in compile(import_onnx(model), cache=False).run(feeds).values():
        assert result.tolist() == [0, expected]


def test_the_old_scatter_is_that_of_elements() -> None:
    inputs = floats(4, 3), places(3, 4, 2), floats(4, 2)
    old, feeds = model_of([Case("Scatter", inputs, {"axis": -1})], 9)
    new, _ = model_of([Case("ScatterElements", inputs, {"axis": -1})], 13)
    found, expected = (evaluate(import_onnx(model), feeds)["y0"] for model in (old, new))
    np.testing.assert_array_equal(found, expected)


def of_constant_places(at: Array) -> Graph:
    model, _ = model_of(
        [Case("ScatterND", (floats(5, 4), at, floats(len(at), 4)), {}, (18,), (1,))], 18
    )
    return import_onnx(model)


def test_places_that_the_model_gives_are_turned_around() -> None:
    graph = of_constant_places(np.array([[3], [1], [3]]))
    kinds = [node.op.title for node in graph.nodes]
    assert "ScatterND" not in kinds
    assert kinds.count("Gather") == 1
    with pytest.raises(ModelError) as refused:
        of_constant_places(np.array([[5]]))
    assert "has index 5; expected -5 to 4. [onnx-index]" in str(refused.value)


@pytest.mark.parametrize(("updates", "turned"), [(8, True), (6, False)])
def test_few_elements_that_the_model_places_are_written_as_a_run_does(
    updates: int, turned: bool
) -> None:
    inputs = floats(2, 20), places(20, 2, updates), floats(2, updates)
    model, feeds = model_of([Case("ScatterElements", inputs, {"axis": 1}, (18,), (1,))], 18)
    graph = import_onnx(model)
    kinds = {type(node.op).__name__ for node in graph.nodes}
    assert ("ScatterElements" in kinds, "Gather" in kinds) == (not turned, turned)
    expected = inputs[0].copy()
    for row, (where, new) in enumerate(zip(inputs[1], inputs[2], strict=True)):
        expected[row, where] = new
    np.testing.assert_array_equal(evaluate(graph, feeds)["y0"], expected)


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("ScatterElements", (floats(5), np.array([5]), floats(1))),
        ("ScatterND", (floats(5, 2), np.array([[-6]]), floats(1, 2))),
        ("ReverseSequence", (floats(4, 1), np.array([5]))),
        ("TensorScatter", (floats(1, 4, 2), floats(1, 2, 2), np.array([3]))),
    ],
)
def test_an_index_that_does_not_exist_refuses_the_call(
    operator: str, inputs: tuple[Array, ...]
) -> None:
    model, feeds = model_of([Case(operator, inputs)], 24)
    graph = import_onnx(model)
    assert evaluate(graph, feeds, dtype=None)["y0"].shape == inputs[0].shape
    with pytest.raises(IndexRangeError):
        compile(graph, cache=False).run(feeds)


def real(*shape: int) -> TensorType:
    return TensorType("float32", shape)


def index(*shape: int) -> TensorType:
    return TensorType("int64", shape)


REFUSED: list[tuple[Operator, tuple[TensorType, ...], str]] = [
    (
        ScatterElements(),
        (real(4), real(2), real(2)),
        "ScatterElements: expected int32 or int64 indices, got float32[2]. [scatter-indices]",
    ),
    (
        ScatterElements(),
        (real(4, 3), index(2, 4), real(2, 4)),
        "ScatterElements: int64[2, 4], float32[2, 4] do not fit float32[4, 3] on every axis but 0. "
        "[scatter-elements-shape]",
    ),
    (
        ScatterND(),
        (real(0, 3), index(2, 1), real(2, 3)),
        "ScatterND: int64[2, 1] has indices into no elements. [scatter-empty]",
    ),
    (
        ScatterND(),
        (real(4, 3), index(2, 2), real(2, 3)),
        "ScatterND: expected x [*places, m], indices [k, d], updates [k, m], got float32[4, 3], "
        "int64[2, 2], float32[2, 3]. [scatter-nd-shape]",
    ),
    (
        CacheUpdate(1),
        (real(2, 3, 4), real(2, 4, 4)),
        "CacheUpdate: float32[2, 4, 4] does not fit float32[2, 3, 4] along axis 1, behind the "
        "batch. [cache-update]",
    ),
    (
        CacheUpdate(1),
        (real(2, 3), real(2, 2), index(3)),
        "CacheUpdate: expected places int64[2], got int64[3]. [cache-places]",
    ),
    (
        ReverseSequence(),
        (real(4, 3), index(4)),
        "ReverseSequence: expected int64 lengths for axis 1 of float32[4, 3], got int64[4], axis "
        "0. [reverse-lengths]",
    ),
]


@pytest.mark.parametrize(("op", "types", "message"), REFUSED, ids=lambda each: str(each)[:40])
def test_what_does_not_fit_is_refused(
    op: Operator, types: tuple[TensorType, ...], message: str
) -> None:
    with pytest.raises(ModelError) as refused:
        op.infer(types)
    assert str(refused.value) == f"ModelError: {message}"


def test_models_that_do_not_fit_are_refused() -> None:
    model, _ = model_of([Case("ScatterND", (floats(3, 4), positions((3,), 2), floats(2, 3)))], 18)
    with pytest.raises(ModelError) as refused:
        import_onnx(model)
    assert str(refused.value) == (
        "ModelError: model: node 'y0' (ScatterND) has data, indices and updates float32[3, 4], "
        "int64[2, 1], float32[2, 3]; expected indices [*k, d] into the first d axes of data, and "
        "updates [*k, *rest]. [onnx-scatter]"
    )
    for case, reason in (
        (
            Case("ScatterND", (floats(3), positions((3,), 2), floats(2)), {"reduction": "mean"}),
            "reduction is 'mean'",
        ),
        (Case("TensorScatter", (floats(2, 3, 4),) * 2, {"mode": "round"}), "mode is 'round'"),
    ):
        model, _ = model_of([case], 24)
        with pytest.raises(UnsupportedOperator) as caught:
            import_onnx(model)
        assert reason in str(caught.value)


def test_another_axis_may_be_open() -> None:
    """With indices that the model gives, too."""
    for constants in ((), (1,)):
        x, at, updates = floats(6, 3), places(3, 2, 2), floats(2, 2)
        case = Case("ScatterElements", (x, at, updates), {"axis": 1}, (18,), constants)
        model, feeds = model_of([case], 18)
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
        engine = compile(import_onnx(model, shapes={"n": (2, 6, 9)}), "python", cache=False)
        for count in (2, 7):
            feeds["c0_x0"] = floats(count, 3)
            (expected,) = expected_of(model, feeds)
            np.testing.assert_array_equal(engine.run(feeds)["y0"], expected)
