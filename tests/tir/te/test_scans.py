"""tir/te/scans.py: a scan as a plain loop nest; each refusal with its whole text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.tir.errors import IRError
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.reference.error_bound import reference
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.te import te
from tilewright.tir.te.te import Tensor
from tilewright.tir.verify.verify import Stage, verify
from tilewright.tir.work.work import bytes_moved, operations


def tensor(*shape: int, name: str = "X", dtype: str = "float32") -> Tensor:
    return te.placeholder(shape, dtype, name=name)


def state(*shape: int) -> Tensor:
    return te.state(shape, "float32", name="S")


def fibonacci(count: int) -> PrimFunc:
    """S[t] = S[t-1] + S[t-2] + X[t] after two steps of 1."""
    x, s = tensor(count), state(count)
    first = te.compute((2,), lambda _: te.const(1.0, "float32"), name="first")
    step = te.compute((count,), lambda t: s[t - 1] + s[t - 2] + x[t], name="step")
    return te.func(x, te.scan(first, step, s), name="fibonacci")


def backwards(rows: int, columns: int) -> PrimFunc:
    """Along each row, from its end: S[i, t] = S[i, t+1] / 2 + X[i, t], from a start W[i]."""
    x, w, s = tensor(rows, columns), tensor(rows, 1, name="W"), state(rows, columns)
    step = te.compute((rows, columns), lambda i, t: s[i, t + 1] * 0.5 + x[i, t], name="step")
    return te.func(x, w, te.scan(w, step, s, axis=-1, reverse=True), name="backwards")


def test_a_scan_is_one_block_with_an_ordered_variable() -> None:
    assert str(fibonacci(7)) == (
        "def fibonacci(X: float32[7], S: output(float32[7])):\n"
        "    for t in range(7):\n"
        '        with block("S", vt=ordered(7, t)):\n'
        "            S[vt] = select(vt < 2, 1.0, S[vt - 1] + S[vt - 2] + X[vt])"
    )


def test_steps_of_an_inner_axis_run_outermost_from_either_end() -> None:
    assert str(backwards(3, 5)) == (
        "def backwards(X: float32[3, 5], W: float32[3, 1], S: output(float32[3, 5])):\n"
        "    for t in range(5):\n"
        "        for i in range(3):\n"
        '            with block("S", vt=ordered(5, t), vi=spatial(3, i)):\n'
        "                S[vi, 4 - vt] = select(4 <= 4 - vt, W[vi, 4 - vt - 4], "
        "S[vi, 4 - vt + 1] * 0.5 + X[vi, 4 - vt])"
    )


def largest_so_far(count: int, dtype: str) -> PrimFunc:
    x, s = te.placeholder((count, 3), dtype, name="X"), te.state((count, 3), dtype, name="S")
    k = te.reduce_axis(count, name="k")
    first = te.compute((1, 3), lambda _, i: te.min(x[k, i], axis=k), name="first")
    step = te.compute((count, 3), lambda t, i: te.maximum(x[t, i], s[t - 1, i]), name="step")
    return te.func(x, te.scan(first, step, s), name="largest")


def mean_and_variance(steps: int, columns: int) -> PrimFunc:
    """Of each column, every step weighing a quarter: M += (X - M) / 4; V = 3/4 (V + (X - M)^2 / 4),
    with M of the step before.
    """
    x = tensor(steps, columns)
    mean, variance = (te.state((steps, columns), "float32", name=name) for name in "MV")
    first = te.compute((1, columns), lambda t, i: x[t, i], name="first")
    zero = te.compute((1, columns), lambda t, i: te.const(0.0, "float32"), name="zero")

    def element(t: te.Tensor, i: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
        off = x[t, i] - mean[t - 1, i]
        return mean[t - 1, i] + off * 0.25, (variance[t - 1, i] + off * off * 0.25) * 0.75

    step = te.compute((steps, columns), element, name=("mean", "variance"))
    return te.func(x, *te.scan((first, zero), step, (mean, variance)), name="moving")


def count_and_largest(rows: int, columns: int) -> PrimFunc:
    """From the end of each row, the largest of A so far, two steps of which are given, and how
    often it grew: updates of their own, in two types.
    """
    a = tensor(rows, columns, name="A")
    most, count = (
        te.state((rows, columns), kind, name=name)
        for name, kind in (("L", "float32"), ("N", "int32"))
    )
    none = te.compute((rows, 1), lambda i, t: te.const(0, "int32"), name="none")
    last = te.compute((rows, 2), lambda i, t: a[i, columns - 2 + t], name="last")

    def grew(i: te.Tensor, t: te.Tensor) -> te.Tensor:
        return count[i, t + 1] + te.cast(most[i, t + 1] < a[i, t], "int32")

    larger = te.compute(
        (rows, columns), lambda r, s: te.maximum(most[r, s + 1], a[r, s]), name="larger"
    )
    more = te.compute((rows, columns), grew, name="more")
    parts = (last, none), (larger, more), (most, count)
    return te.func(a, *te.scan(*parts, axis=1, reverse=True), name="counted")


def filtered(steps: int) -> PrimFunc:
    """A filter of second order by two states of one step; the second alone is an output."""
    x = tensor(steps)
    low, band = (te.state((steps,), "float32", name=name) for name in ("low", "band"))
    first = te.compute((1,), lambda t: (x[t], x[t] * 0.5), name=("l0", "b0"))
    step = te.compute(
        (steps,),
        lambda t: (low[t - 1] + band[t - 1] * 0.5, band[t - 1] * 0.5 + x[t] - low[t - 1]),
        name=("l", "b"),
    )
    return te.func(x, te.scan(first, step, (low, band))[1], name="filtered")


def test_several_states_are_set_by_one_block() -> None:
    assert str(mean_and_variance(5, 3)) == (
        "def moving(X: float32[5, 3], M: output(float32[5, 3]), V: output(float32[5, 3])):\n"
        "    for t in range(5):\n"
        "        for i in range(3):\n"
        '            with block("M", vt=ordered(5, t), vi=spatial(3, i)):\n'
        "                M[vt, vi] = select(vt < 1, X[vt, vi], "
        "M[vt - 1, vi] + (X[vt, vi] - M[vt - 1, vi]) * 0.25)\n"
        "                V[vt, vi] = select(vt < 1, 0.0, (V[vt - 1, vi] + "
        "(X[vt, vi] - M[vt - 1, vi]) * (X[vt, vi] - M[vt - 1, vi]) * 0.25) * 0.75)"
    )


def test_states_with_updates_of_their_own_share_their_axes() -> None:
    assert str(count_and_largest(2, 5)).endswith(
        '            with block("L", vs=ordered(5, s), vr=spatial(2, r)):\n'
        "                L[vr, 4 - vs] = select(3 <= 4 - vs, A[vr, 3 + (4 - vs - 3)], "
        "max(L[vr, 4 - vs + 1], A[vr, 4 - vs]))\n"
        "                N[vr, 4 - vs] = select(4 <= 4 - vs, int32(0), N[vr, 4 - vs + 1] + "
        'cast(L[vr, 4 - vs + 1] < A[vr, 4 - vs], "int32"))'
    )


def test_the_numbers_of_two_states_are_those_of_a_loop() -> None:
    x = np.arange(9, dtype=np.float32) ** 2
    low, band = [x[0]], [x[0] / 2]
    for t in range(1, 9):
        before = low[-1], band[-1]
        low.append(before[0] + before[1] / 2)
        band.append(before[1] / 2 + x[t] - before[0])
    np.testing.assert_array_equal(interpret(filtered(9), x)[0], np.array(band, np.float32))


SCANS: dict[str, Callable[[], PrimFunc]] = {
    "two steps back": lambda: fibonacci(9),
    "no later steps": lambda: fibonacci(2),
    "fewer steps than are given": lambda: fibonacci(1),
    "no steps": lambda: fibonacci(0),
    "from the end": lambda: backwards(3, 6),
    "one column": lambda: backwards(3, 1),
    "no rows": lambda: backwards(0, 4),
    "an initial part that is a reduction": lambda: largest_so_far(6, "float32"),
    "two states": lambda: mean_and_variance(7, 3),
    "two states of no steps": lambda: mean_and_variance(0, 3),
    "two states of two types": lambda: count_and_largest(3, 6),
    "one of two states": lambda: filtered(8),
    "integers": lambda: largest_so_far(6, "int32"),
}


@pytest.mark.parametrize("name", SCANS)
def test_a_scan_is_verified_printed_parsed_and_means_one_thing(name: str) -> None:
    func = SCANS[name]()
    verify(func, Stage.TENSOR)
    assert str(parse(str(func))) == str(func)
    rng = np.random.default_rng(0)
    arrays = [
        (rng.standard_normal(b.shape) * 9).astype(b.type.numpy) for b in func.inputs
    ]  # evaluated in their own types, the steps have the bits of a loop
    found = interpret(func, *arrays, checked=True)
    expected = evaluate(func, arrays)
    for buffer, array in zip(func.outputs, found, strict=True):
        np.testing.assert_array_equal(array, expected[buffer.name])
    assert reference(func, arrays).compare(found)


def test_the_numbers_are_those_of_a_loop() -> None:
    x = np.arange(9, dtype=np.float32)
    expected = [1.0, 1.0]
    for t in range(2, 9):
        expected.append(expected[t - 1] + expected[t - 2] + x[t])
    np.testing.assert_array_equal(interpret(fibonacci(9), x)[0], np.array(expected, np.float32))


def test_the_tolerance_of_a_scan_looks_at_every_element() -> None:
    x = np.random.default_rng(0).standard_normal((70, 70)).astype(np.float32)
    found = reference(mean_and_variance(70, 70), [x])
    assert [expected.samples for expected in found.outputs] == [4900, 4900]


def test_a_scan_takes_its_steps_of_work_and_moves_each_element_once() -> None:
    func = fibonacci(100)
    assert operations(func) == 200
    assert bytes_moved(func) == 2 * 400


def test_a_checked_index_may_depend_on_the_state() -> None:
    x, s = tensor(5, dtype="int64"), te.state((4,), "int64", name="S")
    first = te.compute((1,), lambda t: x[t], name="first")
    step = te.compute((4,), lambda t: x[te.checked(s[t - 1], 5)], name="step")
    func = te.func(x, te.scan(first, step, s), name="follow")
    verify(func, Stage.TENSOR)
    found, largest = interpret(func, np.array([3, 0, 1, 2, 9]))
    assert found.tolist() == [3, 2, 1, 0]
    assert largest == 3


def wrong(
    init: Tensor | None = None,
    element: Callable[..., object] | None = None,
    shape: tuple[int, ...] = (6, 3),
    **options: object,
) -> Callable[[], object]:
    """A scan of 6 steps of 3 elements with one part exchanged."""

    def make() -> object:
        x, s = tensor(6, 3), state(6, 3)
        first = te.compute((1, 3), lambda t, i: x[t, i], name="first") if init is None else init
        given = element or (lambda s, x, t, i: s[t - 1, i] + x[t, i])
        step = te.compute(shape, lambda t, i: given(s, x, t, i), name="step")
        return te.scan(first, step, s, **options)

    return make


def through_another() -> object:
    x, s = tensor(6, 3), state(6, 3)
    first = te.compute((1, 3), lambda t, i: x[t, i], name="first")
    twice = te.compute((6, 3), lambda t, i: s[t, i] * 2.0, name="twice")
    step = te.compute((6, 3), lambda t, i: s[t - 1, i] + twice[t, i], name="step")
    return te.scan(first, step, s)


def wrong_pair(
    element: Callable[..., object], shape: tuple[int, ...] = (6, 3), dtype: str = "float32"
) -> Callable[[], object]:
    """A scan of two states, the second as given, with an element from x, s, r and the indices."""

    def make() -> object:
        x, s, r = tensor(6, 3), state(6, 3), te.state(shape, dtype, name="R")
        first = te.compute((1, 3), lambda t, i: x[t, i], name="first")
        names = ("step", "other")
        step = te.compute((6, 3), lambda t, i: element(x, s, r, t, i), name=names)
        return te.scan((first, first), step, (s, r))

    return make


def both(x: Tensor, s: Tensor, r: Tensor, t: te.Tensor, i: te.Tensor) -> object:
    return s[t - 1, i] + x[t, i], r[t - 1, i] + x[t, i]


def inner_pair() -> object:
    s, r = state(6, 3), te.state((6, 3), "float32", name="R")
    twice = te.compute((6, 3), lambda t, i: r[t, i] * 2.0, name="twice")
    step = te.compute(
        (6, 3), lambda t, i: (s[t - 1, i] + twice[t, i], r[t - 1, i]), name=("step", "other")
    )
    return te.scan((tensor(1, 3), tensor(1, 3)), step, (s, r))


def open_state() -> object:
    s = state(6)
    return te.func(te.compute((6,), lambda t: s[t], name="Y"), name="f")


def summed(s: Tensor, x: Tensor, t: te.Tensor, i: te.Tensor) -> object:
    k = te.reduce_axis(3, name="k")
    return te.sum(s[t - 1, k], axis=k)


REFUSED: dict[str, Callable[[], object]] = {
    "te-scan-state": lambda: te.scan(tensor(1, 3), tensor(6, 3), tensor(6, 3, name="Z")),
    "te-scan-axis": wrong(axis=2),
    "te-scan-type": wrong(tensor(1, 3, name="W", dtype="int32")),
    "te-scan-update-shape": wrong(shape=(5, 3)),
    "te-scan-init-shape": wrong(tensor(1, 4, name="W")),
    "te-scan-init-shape: no step": wrong(tensor(0, 3, name="W")),
    "te-scan-update": lambda: te.scan(tensor(1, 3), tensor(6, 3), state(6, 3)),
    "te-scan-reduce": wrong(element=summed),
    "te-scan-unread": wrong(element=lambda s, x, t, i: x[t, i]),
    "te-scan-inside": through_another,
    "te-scan-earlier: this step": wrong(element=lambda s, x, t, i: s[t, i] + x[t, i]),
    "te-scan-earlier: too far back": wrong(element=lambda s, x, t, i: s[t - 2, i] + x[t, i]),
    "te-scan-earlier: two steps given": wrong(
        tensor(2, 3, name="W"), lambda s, x, t, i: s[t - 3, i] + x[t, i]
    ),
    "te-scan-earlier: from the end": wrong(
        element=lambda s, x, t, i: s[t - 1, i] + x[t, i], reverse=True
    ),
    "te-scan-earlier: another axis": wrong(element=lambda s, x, t, i: s[i, i] + x[t, i]),
    "te-scan-state: no state": lambda: te.scan((), (), ()),
    "te-scan-state: two, one no state": lambda: te.scan(
        (tensor(1, 3), tensor(1, 3)), (tensor(6, 3), tensor(6, 3)), (state(6, 3), tensor(6, 3))
    ),
    "te-scan-twice": lambda: (lambda s: te.scan((s, s), (s, s), (s, s)))(state(6, 3)),
    "te-scan-shapes": wrong_pair(both, (6, 4)),
    "te-scan-parts": lambda: te.scan(
        (tensor(1, 3),), tensor(6, 3), (state(6, 3), te.state((6, 3), "float32", name="R"))
    ),
    "te-scan-type: of two states": wrong_pair(
        lambda x, s, r, t, i: (s[t - 1, i], x[t, i]), dtype="int32"
    ),
    "te-scan-unread: of two states": wrong_pair(
        lambda x, s, r, t, i: (s[t - 1, i] + r[t - 1, i], x[t, i])
    ),
    "te-scan-inside: of two states": inner_pair,
    "te-scan-earlier: of the other state": wrong_pair(
        lambda x, s, r, t, i: (s[t - 1, i] + r[t, i], r[t - 1, i])
    ),
    "te-func-state": open_state,
    "te-func-state: listed": lambda: te.func(state(6), name="f"),
}


def test_refusals(golden: Callable[[str, str], None]) -> None:
    texts = []
    for name, make in REFUSED.items():
        with pytest.raises(IRError) as caught:
            make()
        assert f"[{name.split(':')[0]}]" in str(caught.value)
        texts.append(f"# {name}\n{caught.value}")
    golden("errors/te_scan.txt", "\n\n".join(texts))
