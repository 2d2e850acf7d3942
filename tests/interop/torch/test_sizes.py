"""torch.compile with sizes and numbers that change from call to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")

import sympy  # noqa: E402

from tests.interop.torch.compiled import assert_equal, compiled, network  # noqa: E402
from tilewright.interop.torch.sizes import narrowed  # noqa: E402

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]


def test_five_sizes_go_through_one_graph(built: list[Any]) -> None:
    model = network()
    call = compiled(model, dynamic=True)
    with torch.no_grad():
        for size in (4, 5, 2, 11, 16):
            x = torch.randn(size, 16)
            assert_equal(call(x), model(x))
    assert len(built) == 1


def test_a_size_beyond_the_bounds_widens_them(built: list[Any]) -> None:
    model = network()
    call = compiled(model, dynamic=True)
    with torch.no_grad():
        for size in (4, 300, 200, 299):
            x = torch.randn(size, 16)
            assert_equal(call(x), model(x))
    assert [engine.interface.dims[0].high for engine in built] == [16, 1024]


def test_a_size_that_is_a_result_and_an_argument(built: list[Any]) -> None:
    def function(x: Any, n: int) -> Any:
        return x[:n] * x.shape[0], x.shape[0] * 2, n + 1

    call = compiled(function, dynamic=True)
    with torch.no_grad():
        for size, n in ((6, 3), (8, 4), (9, 5)):
            x = torch.randn(size, 4)
            got, expected = call(x, n), function(x, n)
            assert_equal(got[0], expected[0])
            assert got[1:] == expected[1:]
    assert all(engine.interface.dims for engine in built)  # the number of rows stays open


@pytest.mark.parametrize("causal", [False, True])
def test_groups_of_heads_share_keys(causal: bool, built: list[Any]) -> None:
    attend = torch.nn.functional.scaled_dot_product_attention

    def function(q: Any, k: Any, v: Any) -> Any:
        return attend(q, k, v, is_causal=causal, enable_gqa=True)

    q, k, v = torch.randn(2, 4, 6, 16), torch.randn(2, 2, 6, 16), torch.randn(2, 2, 6, 16)
    with torch.no_grad():
        assert_equal(compiled(function)(q, k, v), function(q, k, v))
    assert "AttentionRecognition: equal" in str(built[0].explain())


@pytest.mark.parametrize("masked", [False, True])
def test_a_cache_that_grows_is_one_engine(masked: bool, built: list[Any]) -> None:
    """Keys, values and a mask have sizes of their own for torch, which compares them in the kernel
    alone.
    """

    def step(q: Any, k: Any, v: Any, keys: Any, values: Any, mask: Any) -> Any:
        keys, values = torch.cat((keys, k), 2), torch.cat((values, v), 2)
        given = mask if masked else None
        return (
            torch.nn.functional.scaled_dot_product_attention(q, keys, values, given),
            keys,
            values,
        )

    call = compiled(step, dynamic=True)
    ours = theirs = torch.randn(2, 4, 3, 16), torch.randn(2, 4, 3, 16)
    with torch.no_grad(), torch.fx.experimental._config.patch(use_duck_shape=False):
        for length in range(4, 9):
            q, k, v = (torch.randn(2, 4, 1, 16) for _ in range(3))
            mask = torch.randn(2, 1, 1, length)
            got, expected = call(q, k, v, *ours, mask), step(q, k, v, *theirs, mask)
            for mine, other in zip(got, expected, strict=True):
                assert_equal(mine, other)
            ours, theirs = got[1:], expected[1:]
    assert len(built) == 1
    lengths = [str(spec.shape[2]) for spec in built[0].inputs if str(spec.shape[2]).startswith("s")]
    assert len(lengths) >= 2
    assert len(set(lengths)) == 1


def test_sizes_that_an_attention_needs_equal_are_compared() -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    call = compiled(function, dynamic=True)
    with torch.no_grad(), torch.fx.experimental._config.patch(use_duck_shape=False):
        k = torch.randn(2, 4, 6, 16)
        call(torch.randn(2, 4, 3, 16), k, k.clone())
        with pytest.raises(ValueError, match="where others tell"):
            call(torch.randn(2, 4, 3, 16), k, torch.randn(2, 4, 5, 16))


def test_a_graph_whose_open_sizes_are_refused_has_an_engine_for_each(built: list[Any]) -> None:
    """By how much scores are scaled is a number of the program; here a size says it."""

    def function(q: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, q, q)

    call = compiled(function, dynamic=True)
    with torch.no_grad():
        for depth, length in ((16, 4), (8, 5), (16, 6), (8, 7)):
            q = torch.randn(2, 3, length, depth)
            assert_equal(call(q), function(q))
    assert len(built) == 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.flip(0) + 1,
        lambda x: (x @ x.t()).tril(x.shape[0] // 2),
        lambda x: torch.nn.functional.interpolate(x.t()[None], size=7, mode="linear"),
    ],
    ids=["flip", "tril", "interpolate"],
)
def test_what_an_open_size_prevents_is_compiled_for_each(
    function: Callable[[Any], Any], built: list[Any]
) -> None:
    call = compiled(function, dynamic=True)
    with torch.no_grad():
        for size in (4, 6, 4, 6):
            x = torch.randn(size, 3)
            assert_equal(call(x), function(x))
    assert [engine.inputs[0].shape for engine in built] == [(4, 3), (6, 3)]


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (lambda s, n: n < s, (4, None)),
        (lambda s, n: s >= n, (3, None)),
        (lambda s, n: s < n + 7, (2, 9)),
        (lambda s, n: s <= 64, (2, 64)),
        (lambda s, n: sympy.Ne(s, n), (2, None)),
        (lambda s, n: s * n > 5, (2, None)),
    ],
)
def test_what_torch_compares_narrows_a_range(
    fact: Callable[[Any, Any], Any], expected: tuple[int, int | None]
) -> None:
    """Where a number is known, 3, with which a symbol is compared."""
    s, n = sympy.symbols("s n", positive=True, integer=True)
    ranges = {"s": (2, None), "n": (2, None)}
    assert narrowed(ranges, [fact(s, n)], {"n": 3})["s"] == expected


def test_a_number_that_no_axis_tells_has_so_many_engines_and_no_more(built: list[Any]) -> None:
    call = compiled(lambda x, n: x[:n] + 1, {"fallback": "refuse", "verify": "off"}, dynamic=True)
    x = torch.randn(20, 4)
    with torch.no_grad():
        for n in range(2, 10):
            assert_equal(call(x, n), x[:n] + 1)
        with pytest.raises(ValueError, match="had 8 values"):
            call(x, 10)
        assert_equal(call(x, 5), x[:5] + 1)
    assert len(built) == 8
