"""tir/te/scatters.py: te.scatter refuses what does not fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.tir.errors import IRError
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.scatter import scatter_named
from tilewright.tir.text.equal import equal

X = te.placeholder((5, 4), "float32", name="X")
U = te.placeholder((9, 4), "float32", name="U")
AT = te.placeholder((9,), "int32", name="at")
OPEN = te.placeholder((te.dim("n", 1, 9), 4), "float32", name="V")
STATE = te.state((5, 4), "float32", name="S")


def scatter(
    x: object = X, updates: object = U, places: object = AT, axis: int = 0, combining: str = "add"
) -> te.Tensor:
    return te.scatter(  # type: ignore[arg-type]
        x, updates, places, axis=axis, combining=combining, name="Y"
    )


REFUSED: dict[str, Callable[[], object]] = {
    "an element": lambda: scatter(updates=U[0, 0]),
    "a state": lambda: scatter(x=STATE),
    "a size that a call decides": lambda: scatter(updates=OPEN),
    "another way to combine": lambda: scatter(combining="sum"),
    "shapes that do not fit": lambda: scatter(places=(AT, AT)),
}


def test_each_refusal_has_its_text(golden: Callable[[str, str], None]) -> None:
    texts = []
    for name, make in REFUSED.items():
        with pytest.raises(IRError) as error:
            make()
        texts.append(f"# {name}\n{error.value}")
    golden("errors/te_scatter.txt", "\n\n".join(texts))


def test_it_is_one_block_between_others() -> None:
    twice = te.compute((5, 4), lambda i, j: 2.0 * X[i, j], name="twice")
    y = scatter(x=twice)
    z = te.compute((5, 4), lambda i, j: y[i, j] + 1.0, name="Z")
    func = te.func(X, U, AT, z, name="f")
    assert [block.name for block in func.blocks] == ["twice", "Y", "Z"]
    assert repr(y.computation) == "Y = tw_scatter_add_at_0(twice, U, at)"
    assert (y.shape, str(y.type)) == ((5, 4), "float32")


def test_two_axes_give_way_and_one_number_is_what_all_begin_as() -> None:
    rng = np.random.default_rng(3)
    one, u = rng.standard_normal((), np.float32), rng.standard_normal((2, 3, 4), np.float32)
    rows, columns = (rng.integers(0, n, (2, 3, 4)).astype(np.int32) for n in (5, 6))
    arrays = [np.asarray(one), u, rows, columns]
    tensors = [te.placeholder(a.shape, a.dtype.name, name=f"T{n}") for n, a in enumerate(arrays)]
    x, updates, *places = tensors
    y = te.scatter(x, updates, tuple(places), axis=1, span=2, shape=(2, 5, 6), name="Y")
    func = te.func(*tensors, y, name="f")
    assert '"tw_scatter_none_at_1_to_3"' in str(func)
    assert equal(parse(str(func)), func)
    expected = np.full((2, 5, 6), one, np.float32)
    for n, k, j in np.ndindex(2, 3, 4):
        expected[n, rows[n, k, j], columns[n, k, j]] = u[n, k, j]
    np.testing.assert_array_equal(interpret(func, *arrays, checked=True)[0], expected)
    np.testing.assert_array_equal(evaluate(func, arrays)["Y"], expected)
    with pytest.raises(IRError, match="to scatter; expected one of"):
        scatter_named("tw_scatter_none_at_3_to_3")


@pytest.mark.needs_cc
def test_compiled_a_sum_begins_with_a_number() -> None:
    arrays = [
        np.float32(2),
        np.ones((3, 4), np.float32),
        np.array([[1] * 4, [0] * 4, [1] * 4], "i4"),
    ]
    arrays = [np.asarray(a) for a in arrays]
    x, u, p = (te.placeholder(a.shape, a.dtype.name, name=f"T{n}") for n, a in enumerate(arrays))
    y = te.scatter(x, u, p, axis=0, span=2, combining="add", shape=(3,), name="Y")
    kernel = tw.build(te.func(x, u, p, y, name="f"))
    assert kernel(*arrays).tolist() == [6, 10, 2]
    assert str(kernel.proof).startswith("proved")
