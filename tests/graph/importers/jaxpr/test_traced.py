"""Functions of JAX itself: what is recorded of them, and engines beside what JAX computes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import tilewright as tw
from tests.graph.importers.jaxpr.stored import load
from tilewright.graph.errors import UnsupportedOperator
from tilewright.graph.importers.jaxpr.importer import import_jaxpr
from tilewright.graph.importers.jaxpr.program import JaxProgram
from tilewright.graph.importers.jaxpr.traced import traced
from tilewright.graph.reference.reference import evaluate

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy
Golden = Callable[[str, str], None]
X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.ones((3, 4), np.float32)


def program(function: Callable[..., object], *args: object) -> JaxProgram:
    made = traced(function, args)
    assert isinstance(made, JaxProgram)
    return made


class Pair(NamedTuple):
    """A record."""

    left: object
    right: object


class Scaled:
    """An object that is called."""

    def __init__(self, factor: np.ndarray) -> None:
        self.factor = factor

    def __call__(self, x: object) -> object:
        return x * self.factor  # type: ignore[operator]

    def apply(self, x: object) -> object:
        """As a call."""
        return self(x)


def test_an_engine_computes_what_the_function_does() -> None:
    @jax.jit
    def network(x: object) -> object:
        return jnp.tanh(x @ W) + 1

    engine = tw.compile(network, args=(X,), cache=False)
    np.testing.assert_allclose(engine(X), network(X), rtol=1e-6)
    assert tw.tasks(network, args=(X,))


def test_inputs_are_named_by_parameters_and_paths() -> None:
    def function(params: dict[str, object], x: object, *rest: object) -> object:
        return params["dense"]["kernel"], params["b"], x, rest  # type: ignore[index]

    params = {"dense": {"kernel": W}, "b": X[0]}
    made = program(function, params, Pair(X, 2.0), X, [X])
    assert made.inputs == (
        "params['b']",
        "params['dense']['kernel']",
        "x.left",
        "x.right",
        "rest[0]",
        "rest[1][0]",
    )
    assert made.name == "function"


@pytest.mark.parametrize(
    ("function", "outputs"),
    [
        (lambda x: x, ("output",)),
        (lambda x: (x, [x]), ("output[0]", "output[1][0]")),
        (lambda x: {"logits": x, "cache": {"k": x}}, ("cache['k']", "logits")),
        (lambda x: Pair(x, x), ("left", "right")),
        (lambda output: output, ("output_",)),
        (lambda x: {"x": x}, ("x_",)),
    ],
)
def test_outputs_are_named_by_their_place(
    function: Callable[..., object], outputs: tuple[str, ...]
) -> None:
    assert program(function, X).outputs == outputs


def test_what_is_closed_over_is_a_weight_and_an_argument_never() -> None:
    closed = import_jaxpr(program(partial(lambda w, x: x @ w, W), X))
    assert closed.inputs == ("x",)
    assert [one.shape for one in closed.constants.values()] == [(3, 4)]
    given = import_jaxpr(program(lambda w, x: x @ w, W, X))
    assert given.inputs == ("w", "x")
    assert not given.constants


def test_who_writes_to_a_weight_later_changes_no_program() -> None:
    weights = W.copy()
    made = program(lambda x: x @ weights, X)
    weights[:] = 7
    found = evaluate(import_jaxpr(made), {"x": X})
    np.testing.assert_array_equal(found["output"], X @ W)
    assert weights.flags.writeable


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (Scaled(X), "Scaled"),
        (Scaled(X).apply, "Scaled"),
        (partial(Scaled(X).apply), "Scaled"),
        (lambda x: x, "function"),
    ],
)
def test_programs_are_named_by_what_is_called(function: Callable[..., object], name: str) -> None:
    assert program(function, X).name == name


def test_types_are_those_of_jax() -> None:
    """Without x64 floats and integers have 32 bits, and a number that Python has is a weak one."""
    types = import_jaxpr(program(lambda x, n, s: (x, n, s), X.astype(np.float64), 3, 2.5)).types
    assert [types[name].dtype for name in ("x", "n", "s")] == ["float32", "int32", "float32"]


def test_only_types_and_shapes_of_arguments_count() -> None:
    shape = jax.ShapeDtypeStruct((2, 3), jnp.float32)
    one, other = (program(lambda x: jnp.sin(x), x) for x in (shape, jnp.asarray(X)))
    assert one.digest() == other.digest()


def test_open_sizes_are_those_of_jax(golden: Golden) -> None:
    b, n = jax.export.symbolic_shape("b, n", constraints=["n <= 12", "n >= 2"])

    def function(x: object) -> object:
        parts = x.reshape(x.shape[0], -1), x.mean(1), jnp.concatenate([x, x], 1)  # type: ignore[attr-defined]
        return *parts, x[:, 1:], x.sum() / x.shape[1]  # type: ignore[attr-defined, index]

    engine = tw.compile(function, args=(jax.ShapeDtypeStruct((b, n, 3), jnp.float32),), cache=False)
    (size, length) = engine.interface.dims
    assert (size.low, length.low, length.high) == (1, 2, 12)
    for shape in ((1, 2, 3), (4, 7, 3)):
        x = np.random.default_rng(0).random(shape, np.float32)
        for got, want in zip(engine(x), function(jnp.asarray(x)), strict=True):  # type: ignore[call-overload]
            np.testing.assert_allclose(got, want, rtol=1e-5)
    (a, c) = jax.export.symbolic_shape("a, c", constraints=["a <= c"])
    with pytest.raises(TypeError) as caught:
        traced(function, (jax.ShapeDtypeStruct((a, c, 3), jnp.float32),))
    golden("errors/jax_constraint.txt", str(caught.value))


def test_a_key_is_two_words() -> None:
    def function(key: object) -> object:
        left, right = jax.random.split(key)
        return jax.random.normal(left, (4,)), jax.random.uniform(right, (2, 2))

    key = jax.random.key(11)
    engine = tw.compile(function, args=(key,), cache=False)
    assert [str(one) for one in engine.inputs] == ["key: uint32[2]"]
    found = engine(np.asarray(jax.random.key_data(key)))
    for got, want in zip(found, function(key), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def inner(x: object) -> object:
    return jax.lax.lgamma(x)


def test_lines_are_those_of_who_wrote_the_function() -> None:
    """A function of JAX is traced once for all, and its lines are those of each call."""
    unknown = jax.jit(inner)
    jax.make_jaxpr(jnp.linalg.inv)(X[:, :2])

    def function(x: object) -> object:
        y = jnp.linalg.inv(x)
        return unknown(y)

    with pytest.raises(UnsupportedOperator) as caught:
        tw.compile(function, args=(X[:, :2],))
    first = function.__code__.co_firstlineno
    places = {one.operator: one.place for one in caught.value.nodes}
    assert places["lu"] == f"test_traced.py:{first + 1}"
    assert places["lgamma"] == f"test_traced.py:{inner.__code__.co_firstlineno + 1}"


def test_what_a_function_raises_is_its_own() -> None:
    def function(x: object) -> object:
        return x if x.sum() > 0 else -x  # type: ignore[attr-defined, operator]

    with pytest.raises(jax.errors.TracerBoolConversionError):
        tw.compile(function, args=(X,))


def test_the_programs_of_the_folder_are_those_that_jax_records_now() -> None:
    """Where the versions are those of the files: else JAX may record another program."""
    if jax.__version__ != "0.10.2":
        pytest.skip("the files are of jax 0.10.2")
    pytest.importorskip("flax", reason="flax is not installed")
    from pathlib import Path

    from tests.graph.importers.jaxpr.networks import NETWORKS

    for name, make in NETWORKS.items():
        network = make()
        stored = load(Path(__file__).parent / "models" / f"{name}.npz").program
        now = program(network.function, *network.args)
        assert [one.primitive for one in now.jaxpr.equations] == [
            one.primitive for one in stored.jaxpr.equations
        ]


def test_tilewright_does_not_import_jax() -> None:
    code = (
        "import sys, tilewright as tw; tw.compile; from tilewright.graph import given_model;"
        "print(*sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "jaxlib", "torch"} & set(said.stdout.split())
