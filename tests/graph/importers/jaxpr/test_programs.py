"""Programs of JAX written by hand: what is refused and how, what is left out, what engines keep."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tilewright as tw
from tests.graph.importers.jaxpr.stored import load
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.jaxpr.arguments import argument_names
from tilewright.graph.importers.jaxpr.importer import import_jaxpr
from tilewright.graph.importers.jaxpr.program import (
    Atom,
    Equation,
    ForeignObject,
    Jaxpr,
    JaxProgram,
    JaxType,
    OpenExtent,
    Parameter,
    Variable,
)
from tilewright.graph.importers.jaxpr.rule import NO_VALUES
from tilewright.graph.importers.jaxpr.traced import traced
from tilewright.graph.importers.limits import ImportLimits
from tilewright.graph.ops.repetition import Expand
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import numpy_type

Golden = Callable[[str, str], None]
HERE = Path(__file__).parent
F = JaxType("float32", (2, 3))
TRUTH = JaxType("bool", (2, 3))


def equation(
    primitive: str,
    operands: Sequence[str | Atom],
    output: str = "y",
    type_: JaxType = F,
    parameters: Mapping[str, Parameter] | None = None,
    **place: str,
) -> Equation:
    read = tuple(Variable(one) if isinstance(one, str) else one for one in operands)
    return Equation(primitive, read, (output,), (type_,), parameters or {}, **place)


def jaxpr(
    *equations: Equation,
    inputs: Mapping[str, JaxType] | None = None,
    outputs: Sequence[str] = ("y",),
) -> Jaxpr:
    types = {"x": F} if inputs is None else inputs
    return Jaxpr(tuple(types), tuple(map(Variable, outputs)), equations, types, {})


def program(inner: Jaxpr) -> JaxProgram:
    outputs = tuple(f"output{n or ''}" for n in range(len(inner.outputs)))
    return JaxProgram("function", inner, inner.inputs, outputs, {})


def refused(inner: Jaxpr) -> str:
    with pytest.raises(ModelError) as caught:
        import_jaxpr(program(inner))
    return str(caught.value)


def test_all_that_is_unknown_is_refused_at_once(golden: Golden) -> None:
    row = JaxType("float32", (3,))
    body = jaxpr(equation("lgamma", ["x"], type_=row, line="model.py:20"), inputs={"x": row})
    rows = {"num_consts": 0, "num_carry": 0, "length": 2, "reverse": False, "jaxpr": body}
    library = replace(jaxpr(equation("digamma", ["x"], line="elsewhere.py:1")), internal=True)
    own = jaxpr(equation("igamma", ["x", "x"], line="model.py:9", module="inner"))
    whole = jaxpr(
        equation("digamma", ["x"], "a", line="model.py:4", module="encoder/layer_0"),
        equation("tanh", ["a"], "b"),
        equation("jit", ["b"], "c", parameters={"jaxpr": library}, line="model.py:5"),
        equation("jit", ["c"], "d", parameters={"jaxpr": own}, line="model.py:6", module="head"),
        equation("scan", ["d"], "e", parameters=rows, line="model.py:7"),
        equation("debug_print", ["e"], "f", line="model.py:8", effect="DebugEffect"),
        equation("add", ["e", "a"]),
    )
    with pytest.raises(UnsupportedOperator) as caught:
        import_jaxpr(program(whole))
    golden("errors/jax_unknown.txt", str(caught.value))
    assert [one.operator for one in caught.value.nodes] == [
        "digamma",
        "digamma",
        "igamma",
        "lgamma",
        "debug_print",
    ]


def test_what_rules_do_not_know_is_refused_at_once(golden: Golden) -> None:
    image = JaxType("float32", (1, 4, 4, 2))
    kernel = JaxType("float32", (3, 3, 2, 2))
    inputs = {"x": F, "i": image, "k": kernel, "c": JaxType("complex64", (2,))}
    inputs["w"] = JaxType("uint32", (2,), key=True)
    numbers = {"lhs_spec": (0, 3, 1, 2), "rhs_spec": (3, 2, 0, 1), "out_spec": (0, 3, 1, 2)}
    conv = {
        "window_strides": (1, 1),
        "padding": ((1, 1), (1, 1)),
        "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1),
        "dimension_numbers": numbers,
    }
    twice = jaxpr(equation("sub", ["a", "b"]), inputs={"a": F, "b": F})
    odd = {"new_dtype": "int8"}
    older = {"bit_width": 32, "shape": (3,), "partitionable": False}
    whole = jaxpr(
        equation("conv_general_dilated", ["i", "k"], "y", image, {**conv, "batch_group_count": 2}),
        equation("neg", ["x"], "z", parameters={"fastmath": True}),
        equation("convert_element_type", ["x"], "a", parameters={"new_dtype": ForeignObject("T")}),
        equation("reduce", ["x", np.float32(0)], "b", F, {"jaxpr": twice, "dimensions": (0,)}),
        equation("bitcast_convert_type", ["x"], "d", JaxType("int8", (2, 3)), odd),
        equation("reduce_precision", ["x"], "e", F, {"exponent_bits": 4, "mantissa_bits": 3}),
        equation("random_wrap", ["x"], "f", F, {"impl": "rbg"}),
        equation("random_bits", ["w"], "h", JaxType("uint32", (3,)), older),
        equation("real", ["c"], "g", JaxType("float32", (2,))),
        inputs=inputs,
        outputs=("y", "z", "a", "b", "d", "e", "f", "g", "h"),
    )
    golden("errors/jax_refused.txt", refused(whole))


@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("type", jaxpr(equation("lt", ["x", "x"], module="head"))),
        ("shape", jaxpr(equation("tanh", ["x"], type_=JaxType("float32", (2, 4)), module="head"))),
        ("outputs", jaxpr(replace(equation("tanh", ["x"]), outputs=("y", "z"), types=(F, F)))),
        ("rule", jaxpr(equation("slice", ["x"], parameters={"start_indices": 0}, module="head"))),
    ],
)
def test_what_jax_would_not_record_is_a_defect(name: str, inner: Jaxpr, golden: Golden) -> None:
    golden(f"errors/jax_{name}.txt", refused(inner))


def test_there_may_not_be_more_than_the_limit(golden: Golden) -> None:
    inner = jaxpr(equation("tanh", ["x"]))
    for _ in range(20):  # 2**20 equations, in 21 jaxprs
        calls = [("x", "a"), ("a", "y")]
        inner = jaxpr(*(equation("jit", [a], b, parameters={"jaxpr": inner}) for a, b in calls))
    golden("errors/jax_equations.txt", refused(inner))
    deep = jaxpr(equation("tanh", ["x"]))
    for _ in range(70):
        deep = jaxpr(equation("jit", ["x"], parameters={"jaxpr": deep}))
    golden("errors/jax_depth.txt", refused(deep))
    held = replace(
        jaxpr(equation("add", ["x", "w"])),
        constants={"w": np.zeros(3, np.float32)},
        types={"x": F, "w": JaxType("float32", (3,))},
    )
    with pytest.raises(ModelError, match="constants take more than 8 bytes"):
        import_jaxpr(program(held), limits=ImportLimits(constant_bytes=8))


def test_what_nobody_reads_is_left_out() -> None:
    inner = jaxpr(equation("lgamma", ["x"], "unread"), equation("tanh", ["x"]))
    graph = import_jaxpr(program(inner))
    assert [node.op.title for node in graph.nodes] == ["Tanh"]


def test_what_broadcasts_is_not_written_out() -> None:
    """x + broadcast_in_dim(bias), as jnp.add writes it."""
    wide = {"shape": (2, 3), "broadcast_dimensions": (1,), "sharding": None}
    inner = jaxpr(
        equation("broadcast_in_dim", ["bias"], "b", parameters=wide),
        equation("broadcast_in_dim", ["scale"], "s", parameters=wide),
        equation("mul", ["b", "s"], "both"),
        equation("add", ["x", "both"]),
        inputs={"x": F, "bias": JaxType("float32", (3,)), "scale": JaxType("float32", (3,))},
    )
    graph = import_jaxpr(program(inner))
    assert not any(isinstance(node.op, Expand) for node in graph.nodes)
    x, bias, scale = (np.arange(n, dtype=np.float32) for n in (6, 3, 3))
    feeds = {"x": x.reshape(2, 3), "bias": bias, "scale": scale + 1}
    (y,) = evaluate(graph, feeds, dtype=None).values()
    np.testing.assert_array_equal(y, x.reshape(2, 3) + bias * (scale + 1))


def _open(*extents: str | int) -> JaxType:
    return JaxType("float32", tuple(OpenExtent(e) if isinstance(e, str) else e for e in extents))


def _sized(ranges: Mapping[str, tuple[int, int | None]], *extents: str | int) -> JaxProgram:
    types = {"x": _open(*extents)}
    inner = jaxpr(equation("tanh", ["x"], type_=types["x"]), inputs=types)
    return replace(program(inner), ranges=ranges)


def test_sizes_that_calls_decide_have_the_bounds_of_jax(golden: Golden) -> None:
    (batch, length) = import_jaxpr(_sized({"b": (1, None), "n": (2, 9)}, "b", "n")).dims
    assert (batch.name, batch.low, batch.high) == ("b", 1, 16)
    assert (length.name, length.low, length.high) == ("n", 2, 9)
    closed = import_jaxpr(_sized({"b": (1, None)}, "b", 3), shapes={"b": 4})
    assert closed.types["x"].shape == (4, 3)
    with pytest.raises(ModelError) as caught:
        import_jaxpr(_sized({"b": (2, 9)}, "b"), shapes={"b": (1, 4, 9)})
    golden("errors/jax_range.txt", str(caught.value))
    with pytest.raises(ModelError) as caught:
        import_jaxpr(_sized({}, "2*b", "b"))
    golden("errors/jax_derived_axis.txt", str(caught.value))


def test_open_sizes_are_read_in_the_notation_of_jax() -> None:
    given = {"x": _open("b", "n", 2)}
    size, count = JaxType("int32", ()), OpenExtent("2*b*n")
    wide = _open("b", "2*n")
    behind = _open("b", "n + -1", 2)
    cut: Mapping[str, Parameter] = {
        "start_indices": (0, 1, 0),
        "limit_indices": (OpenExtent("b"), OpenExtent("n"), 2),
        "strides": None,
    }
    inner = jaxpr(
        equation("dim_as_value", [], "s", size, {"dim": OpenExtent("floordiv(n, 2) + max(b, 3)")}),
        equation("reshape", ["x"], "r", wide, {"new_sizes": (OpenExtent("b"), OpenExtent("2*n"))}),
        equation("slice", ["x"], "c", behind, cut),
        equation("reshape", ["x"], "f", JaxType("float32", (count,)), {"new_sizes": (count,)}),
        equation("dim_as_value", [], "p", size, {"dim": OpenExtent("b^2 + mod(n, 3)")}),
        inputs=given,
        outputs=("s", "r", "c", "f", "p"),
    )
    ranges = {"b": (1, 8), "n": (2, 8)}
    graph = import_jaxpr(replace(program(inner), ranges=ranges))
    engine = tw.compile(graph, cache=False)
    for shape in ((1, 2, 2), (5, 7, 2)):
        x = np.random.default_rng(0).random(shape, np.float32)
        made, flat, rest, row, power = engine(x)
        assert int(made) == shape[1] // 2 + max(shape[0], 3)
        assert int(power) == shape[0] ** 2 + shape[1] % 3
        np.testing.assert_array_equal(flat, x.reshape(shape[0], -1))
        np.testing.assert_array_equal(rest, x[:, 1:])
        np.testing.assert_array_equal(row, x.reshape(-1))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool"])
def test_sorts_compare_in_a_total_order(dtype: str) -> None:
    """-NaN, -inf, -1, -0, 0, 1, inf, NaN: each with each."""
    kind = JaxType(dtype, (8, 1)), JaxType(dtype, (1, 8))
    places = np.arange(8)
    numbers = np.array([-np.nan, -np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan], np.float32)
    numbers[0] = np.copysign(np.float32(np.nan), np.float32(-1))
    if dtype == "int32":
        numbers = places.astype(np.int32) - 4
    if dtype == "bool":
        places = np.array([0, 1, 0, 1, 1, 1, 0, 0])
        numbers = places.astype(bool)
    whole = JaxType("bool", (8, 8))
    names = ("eq_to", "le_to", "lt_to")
    inner = jaxpr(
        *(equation(name, ["a", "b"], name, whole) for name in names),
        inputs={"a": kind[0], "b": kind[1]},
        outputs=names,
    )
    given = numbers.astype(numpy_type(dtype))
    feeds = {"a": given.reshape(8, 1), "b": given.reshape(1, 8)}
    equal, at_most, below = evaluate(import_jaxpr(program(inner)), feeds, dtype=None).values()
    a, b = places.reshape(8, 1), places.reshape(1, 8)
    np.testing.assert_array_equal(equal, a == b)
    np.testing.assert_array_equal(at_most, a <= b)
    np.testing.assert_array_equal(below, a < b)


def test_equal_programs_have_equal_digests() -> None:
    first = program(jaxpr(equation("tanh", ["x"], line="a.py:1")))
    again = program(jaxpr(equation("tanh", ["x"], line="b.py:2")))
    assert first.digest() == again.digest()
    others = (
        program(jaxpr(equation("sin", ["x"]))),
        program(jaxpr(equation("tanh", ["x"], module="m"))),
        replace(first, outputs=("z",)),
        program(jaxpr(equation("add", ["x", np.float32(1)]))),
        program(jaxpr(equation("add", ["x", np.int32(1)]))),
        program(jaxpr(equation("add", ["x", np.float32(2)]))),
    )
    digests = {one.digest() for one in (first, *others)}
    assert len(digests) == 1 + len(others)


def test_an_engine_is_kept_under_the_program_and_its_constants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))

    def of(number: float) -> JaxProgram:
        return program(jaxpr(equation("mul", ["x", np.float32(number)])))

    stages = list[str]()
    for number in (2.0, 2.0, 3.0):
        engine = tw.compile(of(number), verify="off", progress=stages.append)
        assert engine(np.ones((2, 3), np.float32))[0, 0] == number
    assert stages.count("import") == 2


def test_parameters_without_values_are_those_of_recorded_programs() -> None:
    names = set[str]()
    left = [load(path).program.jaxpr for path in HERE.glob("*.npz")]
    values = list[Parameter](left)
    while values:
        value = values.pop()
        if isinstance(value, Jaxpr):
            for item in value.equations:
                names |= set(item.parameters)
                values += item.parameters.values()
        elif isinstance(value, tuple):
            values += value
    assert names >= NO_VALUES


def test_a_model_that_takes_no_arguments_is_as_it_was() -> None:
    assert traced("model.onnx", None) == "model.onnx"


@pytest.mark.parametrize(
    ("name", "model", "args"),
    [
        ("args", len, "x"),
        ("no_function", "model.onnx", (1.0,)),
        ("not_imported", len, (1.0,)),
    ],
)
def test_arguments_are_for_functions_of_jax(
    name: str, model: object, args: object, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    with pytest.raises(TypeError) as caught:
        tw.compile(model, args=args)  # type: ignore[arg-type]
    golden(f"errors/jax_{name}.txt", str(caught.value))


def test_an_argument_is_an_array(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as this, JAX is asked for the leaves of a tree alone."""
    leaves = [((SimpleNamespace(idx=0), "['name']"), "text")]
    tree = SimpleNamespace(
        tree_flatten_with_path=lambda args: (leaves, None), keystr=lambda path: "".join(path)
    )
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(tree_util=tree))
    with pytest.raises(TypeError) as caught:
        tw.compile(lambda options: options, args=({"name": "text"},))
    golden("errors/jax_argument.txt", str(caught.value))


def test_arguments_are_called_as_the_function_calls_them() -> None:
    assert argument_names(lambda x, y: None, 2) == ["x", "y"]
    assert argument_names(lambda x, *rest, z=1: None, 3) == ["x", "rest[0]", "rest[1]"]
    assert argument_names(min, 2) == ["args[0]", "args[1]"]
    assert argument_names(lambda x: None, 2) == ["x", "args[1]"]
