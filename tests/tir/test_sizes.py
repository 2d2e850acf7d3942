"""tir/sizes.py: sizes that a run decides, their normal form and bounds, what is known of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.dim import Dim
from tilewright.tir.sizes import (
    AnySize,
    Size,
    SizeError,
    at_most,
    axis_of,
    closed,
    closed_shape,
    dims_in,
    exact_quotient,
    factor_beside,
    greatest,
    interval,
    is_closed,
    largest,
    least,
    product_of,
    quotient,
    same,
    shape_in,
    size_in,
    size_of,
    substituted,
)

batch, seq, past = Dim("batch", low=1, high=8), Dim("seq", low=1, high=128), Dim("past", high=99)
DIMS = (batch, seq, past)
B, S, P = map(size_of, DIMS)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (S * B, "batch*seq"),
        (2 * (B + S) * S, "2*batch*seq + 2*seq*seq"),
        (P + S - P, "seq"),
        (3 - S, "-seq + 3"),
        (S - S, "0"),
        (B * S * 768 // (B * S), "768"),
        (12 * B * S // (4 * B), "3*seq"),
        ((S - 1) // 2 + 1, "(seq + 1)//2"),
        ((3 * S - 5) // 2, "(seq + 1)//2 + seq - 3"),
        (((S - 1) // 2 + 1 + 2 - 3) // 4 + 1, "(seq + 7)//8"),
        ((2 * S + 3) // 2, "seq + 1"),
        ((S + 1) % 2, "-2*((seq + 1)//2) + seq + 1"),
        (least(S, 64), "min(64, seq)"),
        (least(S, 512), "seq"),
        (greatest(S, 1), "seq"),
        (least(S, S // 2), "seq//2"),
        (greatest(S, (S + 1) // 2), "seq"),
        (greatest(P, S, P), "max(past, seq)"),
        (product_of((B, 3, S)), "3*batch*seq"),
        (product_of(()), "1"),
    ],
)
def test_a_size_is_printed_in_its_normal_form(size: AnySize, text: str) -> None:
    assert str(size) == text


def test_what_is_equal_in_every_call_is_equal() -> None:
    assert B * S == S * B
    assert (B + S) * S == S * S + B * S
    assert hash(B * S) == hash(S * B)
    assert size_of(Dim("seq", low=1, high=128)) != S
    assert (same(S + 1, 1 + S), same(S, S + 1), same(B, S)) == (True, False, None)
    assert (at_most(B, 8), at_most(S, 0), at_most(B, S)) == (True, False, None)


def test_an_order_that_a_call_decides_is_refused() -> None:
    assert S <= 128
    assert B + S > S
    assert not S < 1
    assert S
    with pytest.raises(SizeError) as caught:
        assert S < 64
    assert str(caught.value) == (
        "SizeError: sizes: whether 64 <= seq is decided by each call; expected what holds in every "
        "one, or in none. [size-undecided]"
    )
    with pytest.raises(SizeError, match=r"whether past != 0 is decided"):
        bool(P)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: range(S), "sizes: 'seq' is decided by each call; expected a number. [size-open]"),
        (lambda: closed(B * S), "sizes: 'batch*seq' is decided by each call;"),
        (lambda: closed_shape((2, S)), "sizes: 'seq' is decided by each call;"),
        (lambda: S // 0, "sizes: 'seq' is divided by '0'; expected a divisor above 0, or one that"),
        (
            lambda: S // B,
            "sizes: 'seq' is divided by 'batch'; expected a divisor above 0, or one that every "
            "part of it has. [size-divisor]",
        ),
        (
            lambda: axis_of(S - 2),
            "sizes: 'seq - 2' is -1 to 126; expected an axis of 0 to 2147483647 elements. "
            "[size-axis]",
        ),
    ],
)
def test_what_needs_a_number_says_so(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(SizeError) as caught:
        ask()
    assert message in str(caught.value)


def test_an_axis_has_one_dim_for_each_size() -> None:
    assert axis_of(S) is seq
    assert axis_of(7) == 7
    rows = axis_of(B * S)
    assert isinstance(rows, Dim)
    assert rows is axis_of(S * B)
    assert (rows.name, rows.low, rows.high) == ("batch_seq", 1, 1024)
    assert size_of(rows) == B * S
    assert size_of(7) == 7


def test_the_usual_size_of_a_product_is_that_of_its_dims() -> None:
    m, n = Dim("m", low=1, high=9, typical=2), Dim("n", low=1, high=50, typical=16)
    rows = axis_of(size_of(m) * size_of(n))
    assert isinstance(rows, Dim)
    assert (rows.usual, seq.usual) == (32, 128)


def test_shapes_at_a_choice_of_sizes() -> None:
    values = {batch: 2, seq: 5, past: 0}
    assert shape_in((B, S + P, 3, (S - 1) // 2), values) == (2, 5, 3, 2)
    assert substituted(B * S, {batch: 4}) == 4 * S
    assert dims_in((3, S * B, B)) == (batch, seq)
    assert (is_closed((1, 2)), is_closed((1, S))) == (True, False)
    assert (largest(B * S), interval(S - 1)) == (1024, (0, 127))
    assert interval(B * S - S) == (0, 896)  # least and greatest at corners: (batch - 1)*seq


def test_what_a_division_leaves_is_less_than_the_divisor_also_where_it_is_multiplied() -> None:
    left = S - 2 * (S // 2)
    assert 2 * (S // 2) + left == S
    assert interval(left) == (0, 1)
    assert interval(512 * left * B) == (0, 512 * 8)
    assert interval(left * B * P) == (0, 8 * 99)
    assert interval(6 * (S // 2) * (B // 3) - S * B) == (-264, 0)
    assert axis_of(left * B) is axis_of(B * S - 2 * B * (S // 2))


def test_an_exact_quotient_leaves_no_remainder_in_any_call() -> None:
    assert exact_quotient(6 * B * S, 3 * S) == 2 * B
    assert exact_quotient(6 * B, 4) is None
    assert exact_quotient(P * S, P) is None  # of what may be 0
    assert exact_quotient(B + 1, B) is None
    assert exact_quotient(24 * (S + 1), S + 1) == 24
    assert exact_quotient((B + 2 * S) * (B * S + 3), B * S + 3) == B + 2 * S
    assert exact_quotient(B * B - 1, B + 1) == B - 1
    assert exact_quotient(B * B + 1, B + 1) is None
    assert exact_quotient(B * S, P + 0) is None
    assert exact_quotient(0, S) == 0


def test_a_factor_of_a_polynomial_is_found_also_where_a_call_makes_it_0() -> None:
    left = S - 2 * (S // 2)
    assert exact_quotient(left * B, left) is None
    assert factor_beside(left * B, left) == B
    assert factor_beside(P * S, P) == S
    assert factor_beside(P * S + 1, P) is None
    assert factor_beside(left * B, S) is None


sizes = st.recursive(
    st.integers(-3, 9) | st.sampled_from((B, S, P)),
    lambda inner: st.one_of(
        st.tuples(st.just("+"), inner, inner),
        st.tuples(st.just("-"), inner, inner),
        st.tuples(st.just("*"), inner, st.integers(-3, 3) | st.sampled_from((B, S))),
        st.tuples(st.just("/"), inner, st.integers(1, 5)),
        st.tuples(st.just("<"), inner, inner),
        st.tuples(st.just(">"), inner, inner),
    ),
    max_leaves=6,
)


def computed(tree: object, number: Callable[[AnySize], AnySize]) -> AnySize:
    """What a tree says, of sizes or of numbers."""
    if not isinstance(tree, tuple):
        assert isinstance(tree, int | Size)
        return number(tree)
    sign, a, b = tree[0], computed(tree[1], number), computed(tree[2], number)
    match sign:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return quotient(a, b)
    return least(a, b) if sign == "<" else greatest(a, b)


@given(sizes, st.integers(1, 8), st.integers(1, 128), st.integers(0, 99))
def test_a_size_is_what_its_parts_say_in_every_call(tree: object, b: int, s: int, p: int) -> None:
    values = {batch: b, seq: s, past: p}
    size = computed(tree, lambda own: own)
    wanted = computed(tree, lambda own: size_in(own, values))
    assert size_in(size, values) == wanted
    low, high = interval(size)
    assert isinstance(wanted, int)
    assert low <= wanted <= high
    again = size_in(substituted(substituted(size, {seq: s}), {batch: b, past: p}), {})
    assert again == wanted


@given(sizes, sizes)
def test_a_product_is_divided_by_each_of_its_factors(one: object, other: object) -> None:
    a, b = (computed(tree, lambda own: own) for tree in (one, other))
    assert b == 0 or factor_beside(a * b, b) == a
    found = exact_quotient(a * b, b)
    assert found == a if interval(b)[0] > 0 else found is None
