"""torch.compile(..., backend="tilewright"): values, and what must not be forgotten."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")

from tests.interop.torch.compiled import REFUSE, assert_equal, compiled, network  # noqa: E402
from tilewright.graph.errors import UnsupportedOperator  # noqa: E402
from tilewright.graph.options import OptionError  # noqa: E402
from tilewright.interop.torch import backend  # noqa: E402
from tilewright.interop.torch.errors import FallbackWarning, TrainingGraphError  # noqa: E402

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]


def test_a_module_has_torchs_values(built: list[Any]) -> None:
    model, x = network(), torch.randn(4, 16)
    with torch.no_grad():
        assert_equal(compiled(model)(x), model(x))
    assert len(built) == 1
    assert [spec.name for spec in built[0].inputs] == ["arg2_1"]  # weights are in it


def test_the_name_of_the_entry_point() -> None:
    if "tilewright" not in torch._dynamo.list_backends(exclude_tags=()):
        pytest.skip("tilewright is not installed as a distribution with this entry point")
    model, x = network(), torch.randn(2, 16)
    with torch.no_grad():
        assert_equal(torch.compile(model, backend="tilewright", options=REFUSE)(x), model(x))


def test_a_weight_that_is_changed_in_place_is_packed_anew(built: list[Any]) -> None:
    model, x = network(), torch.randn(4, 16)
    call = compiled(model)
    with torch.no_grad():
        before = call(x)
        model[0].weight.mul_(2)
        after = call(x)
        assert_equal(after, model(x))
    assert not torch.allclose(before, after)
    assert len(built) == 2


def test_a_weight_that_is_replaced_is_packed_anew(built: list[Any]) -> None:
    model, x = network(), torch.randn(4, 16)
    call = compiled(model)
    with torch.no_grad():
        call(x)
        model[2].weight = torch.nn.Parameter(torch.randn(8, 32))
        assert_equal(call(x), model(x))
        model[2].load_state_dict(torch.nn.Linear(32, 8).state_dict())
        assert_equal(call(x), model(x))
    assert len(built) == 3


def test_a_weight_that_changes_at_each_call_becomes_an_input(built: list[Any]) -> None:
    model, x = network(), torch.randn(4, 16)
    call = compiled(model)
    with torch.no_grad():
        for _ in range(8):
            model[0].weight.add_(0.1)
            assert_equal(call(x), model(x))
    assert len(built) == 4
    assert len(built[-1].inputs) == 2  # x and the one that changes


def test_a_weight_of_inference_mode_is_an_input(built: list[Any]) -> None:
    """torch counts no writes to it."""
    with torch.inference_mode():
        model, x = network(), torch.randn(4, 16)
        call = compiled(model)
        assert_equal(call(x), model(x))
        model[0].weight.mul_(2)
        assert_equal(call(x), model(x))
    assert len(built) == 1
    assert len(built[0].inputs) == 5


def test_a_buffer_that_the_model_changes_is_changed(built: list[Any]) -> None:
    class Counting(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x: Any) -> Any:
            self.seen.add_(x)
            return self.seen * 2

    model, call = Counting(), compiled(Counting())
    with torch.no_grad():
        for number in range(3):
            x = torch.full((3,), float(number))
            assert_equal(call(x), model(x))
    assert len(built) == 1


def test_a_cache_that_is_written_to_keeps_what_was_written(built: list[Any]) -> None:
    def step(cache: Any, new: Any, position: Any) -> Any:
        cache.index_copy_(1, position, new)
        return cache.sum(1)

    call = compiled(step)
    ours, theirs = torch.zeros(2, 8, 4), torch.zeros(2, 8, 4)
    with torch.no_grad():
        for place in range(4):
            new, position = torch.randn(2, 1, 4), torch.tensor([place])
            assert_equal(call(ours, new, position), step(theirs, new, position))
    assert_equal(ours, theirs)
    assert ours.abs().sum() > 0
    assert len(built) == 1


def test_an_output_that_is_a_view_of_an_input_stays_one(built: list[Any]) -> None:
    def function(x: Any) -> Any:
        return x.view(-1)[2:], x + 1, x

    x = torch.randn(3, 4)
    with torch.no_grad():
        view, more, same = compiled(function)(x)
    assert view.data_ptr() == x.data_ptr() + 8
    assert same is x
    assert_equal(more, x + 1)
    x[0, 2] = 7
    assert view[0] == 7
    assert len(built[0].outputs) == 1  # no view is computed


def test_outputs_that_share_elements_do_so() -> None:
    def function(x: Any) -> Any:
        y = (x + 1).t()
        return y, y[1:], y.t()

    x = torch.randn(3, 4)
    with torch.no_grad():
        got, expected = compiled(function)(x), function(x)
    for mine, other in zip(got, expected, strict=True):
        assert_equal(mine, other)
        assert mine.stride() == other.stride()
    got[0][1, 0] = 9
    assert got[1][0, 0] == 9


@pytest.mark.parametrize(
    "parts",
    [
        lambda y: (y, y[1:]),
        lambda y: (y[1:], y),
        lambda y: (y, *y.split(2)),
        lambda y: (*y.unbind(0), y),
        lambda y: (y.t(), y[0], y.t()[1:]),
        lambda y: (y, y[:1].expand(4, 4)),
        lambda y: (y, y),
    ],
    ids=["and a view", "behind a view", "split", "unbound", "turned", "repeated", "twice"],
)
def test_results_that_are_parts_of_others_show_their_elements(
    parts: Callable[[Any], tuple[Any, ...]],
) -> None:
    x = torch.randn(4, 4)
    with torch.no_grad():
        got, expected = compiled(lambda x: parts(x + 1))(x), parts(x + 1)
    for mine, other in zip(got, expected, strict=True):
        assert_equal(mine, other)
        assert mine.stride() == other.stride()
        assert mine.storage_offset() == other.storage_offset()
    assert len({mine.untyped_storage().data_ptr() for mine in got}) == 1


@pytest.mark.parametrize("begin", [0, 3])
def test_views_of_an_input_beside_a_result(begin: int, built: list[Any]) -> None:
    """They are not computed; an input may begin anywhere in its storage."""

    def function(x: Any) -> Any:
        return x.view(-1)[2:], x + 1, x[1:], None, 3

    call, whole = compiled(function), torch.randn(20)
    with torch.no_grad():
        for first in (0, begin):
            x = whole[first : first + 16].view(4, 4)
            got, expected = call(x), function(x)
            assert got[3:] == (None, 3)
            for mine, other in zip(got[:3], expected[:3], strict=True):
                assert_equal(mine, other)
            assert [one.data_ptr() for one in got[::2][:2]] == [
                one.data_ptr() for one in expected[::2][:2]
            ]
    assert [len(engine.outputs) for engine in built] == [1]


def test_outputs_have_torchs_strides(built: list[Any]) -> None:
    def function(x: Any) -> Any:
        return (x * 2).permute(0, 3, 1, 2) + 1, x.relu()

    x = torch.randn(2, 3, 4, 5)
    with torch.no_grad():
        for mine, other in zip(compiled(function)(x), function(x), strict=True):
            assert mine.stride() == other.stride()
            assert_equal(mine, other)


@pytest.mark.parametrize(
    "turned",
    [
        lambda x: x.t(),
        lambda x: x[:, 1:],
        lambda x: x[::2],
        lambda x: x[:1].expand(6, 8),
        lambda x: x.view(6, 2, 4).transpose(0, 2),
    ],
    ids=["transposed", "columns", "each second", "repeated", "three axes"],
)
def test_inputs_lie_as_they_lie(turned: Callable[[Any], Any]) -> None:
    x = turned(torch.randn(6, 8))
    with torch.no_grad():
        assert_equal(compiled(lambda x: x.softmax(-1))(x), x.softmax(-1))


def test_channels_last_is_read_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch.nn.Conv2d(8, 16, 3, padding=1).eval().to(memory_format=torch.channels_last)
    x = torch.randn(2, 8, 6, 6).to(memory_format=torch.channels_last)
    call = compiled(model)
    with torch.no_grad():
        expected = model(x)
        call(x)
        monkeypatch.setattr(torch.Tensor, "contiguous", _no_copy)
        got = call(x)
    assert_equal(got, expected)
    assert got.stride() == expected.stride()


def _no_copy(tensor: Any) -> Any:
    raise AssertionError(f"a copy of {tensor.shape}")


def test_nothing_is_copied_for_dense_inputs(built: list[Any]) -> None:
    """The engine reads the memory of the inputs, and writes that of the outputs."""
    model, x = network(), torch.randn(4, 16)
    call = compiled(model)
    seen: list[int] = []
    with torch.no_grad():
        call(x)
        engine, unchecked = built[0], built[0].run_unchecked

        def watched(inputs: Any, outputs: Any, threads: int) -> None:
            seen.extend(array.ctypes.data for array in (*inputs, *outputs))
            unchecked(inputs, outputs, threads)

        engine.run_unchecked = watched
        y = call(x)
    assert seen == [x.data_ptr(), y.data_ptr()]


def test_a_float_argument_changes(built: list[Any]) -> None:
    def function(x: Any, scale: float) -> Any:
        return x * scale + 1

    call, x = compiled(function), torch.randn(4)
    with torch.no_grad():
        for scale in (0.5, 2.0, 3.5, -1.0):
            assert_equal(call(x, scale), function(x, scale))
    assert len(built) <= 2


def test_a_graph_break_makes_two_graphs(built: list[Any]) -> None:
    def function(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    call = torch.compile(function, backend=backend, options=REFUSE)
    x = torch.randn(4)
    with torch.no_grad():
        assert_equal(call(x), function(x))
    assert len(built) == 2


def test_gradients_are_torchs_and_it_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.interop.torch.dynamo._told_training", False)
    model, x = network(), torch.randn(4, 16)
    call = compiled(model, {})
    with pytest.warns(FallbackWarning, match="gradients are needed"):
        call(x).sum().backward()
    found = model[0].weight.grad.clone()
    model.zero_grad()
    model(x).sum().backward()
    assert_equal(found, model[0].weight.grad)
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        compiled(network(), {})(x)


def test_gradients_are_refused() -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught:
        compiled(network(), {"training": "refuse"})(torch.randn(4, 16))
    assert isinstance(caught.value.inner_exception, TrainingGraphError)


def test_an_operator_without_a_rule_runs_by_torch_and_is_named() -> None:
    def function(x: Any) -> Any:
        return torch.linalg.svdvals(x + 1), torch.fft.fft(x).real

    x = torch.randn(3, 3)
    with torch.no_grad():
        with pytest.warns(FallbackWarning) as told:
            got = compiled(function, {})(x)
        for mine, other in zip(got, function(x), strict=True):
            assert_equal(mine, other)
    (message,) = (str(one.message) for one in told)
    assert "_linalg_svd" in message
    assert "_fft_r2c" in message
    assert "test_backend.py" in message
    assert "'refuse'" in message


def test_an_operator_without_a_rule_is_refused() -> None:
    with torch.no_grad(), pytest.raises(UnsupportedOperator, match="_linalg_svd"):
        compiled(torch.linalg.svdvals)(torch.randn(3, 3))


def test_an_operator_of_the_users_own_runs_by_torch() -> None:
    @torch.library.custom_op("tilewright_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
        return x * 2

    @twice.register_fake
    def _(x: Any) -> Any:
        return torch.empty_like(x)

    x = torch.randn(3)
    with torch.no_grad(), pytest.warns(FallbackWarning, match="tilewright_test.twice"):
        assert_equal(compiled(lambda x: twice(x) + 1, {})(x), x * 2 + 1)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_modes_without_gradients(mode: Callable[[], Any]) -> None:
    model, x = network(), torch.randn(4, 16)
    with mode():
        assert_equal(compiled(model)(x), model(x))


def test_autocast_is_followed() -> None:
    model, x = network(), torch.randn(4, 16)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        got, expected = compiled(model)(x), model(x)
    assert got.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(got, expected, rtol=2e-2, atol=2e-2)


def test_many_threads_call_at_once() -> None:
    model = network()
    call, xs = compiled(model), [torch.randn(4, 16) for _ in range(8)]
    with torch.no_grad():
        call(xs[0])
        expected = [model(x) for x in xs]
    wrong: list[int] = []

    def work(number: int) -> None:
        with torch.no_grad():
            got = [call(xs[number]) for _ in range(20)]
        wrong.extend(number for y in got if not torch.allclose(y, expected[number], atol=1e-5))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(xs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_dropout_is_gone_when_evaluated() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).eval()
    x = torch.randn(3, 4)
    with torch.no_grad():
        assert_equal(compiled(model)(x), model(x))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64, torch.bool])
def test_element_types(dtype: Any) -> None:
    x = (torch.randn(5, 3) * 3).to(dtype)
    with torch.no_grad():
        got, expected = compiled(lambda x: x + x)(x), x + x
    assert got.dtype == dtype
    assert torch.equal(got, expected)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"fallbak": "torch"}, "torch-option"),
        ({"fallback": "inductor"}, "torch-option-value"),
        ({"verify": "some"}, "compile-option"),
    ],
)
def test_options_that_there_are_not(options: dict[str, object], code: str) -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught, torch.no_grad():
        compiled(network(), options)(torch.randn(4, 16))
    inner = caught.value.inner_exception
    assert isinstance(inner, OptionError)
    assert inner.code == code


def test_a_mode_of_inductor_is_refused() -> None:
    graph = torch.fx.symbolic_trace(torch.nn.ReLU())
    with pytest.raises(OptionError, match="max-autotune"):
        backend(graph, [torch.randn(3)], mode="max-autotune")


def test_tensors_of_another_device_are_named() -> None:
    call = compiled(lambda x: x + 1)
    with torch.no_grad(), pytest.raises(ValueError, match="on 'meta'"):
        call(torch.empty(3, device="meta"))


def test_arrays_are_those_of_numpy() -> None:
    x = np.arange(6, dtype=np.float32)
    with torch.no_grad():
        assert_equal(compiled(lambda x: x * 2)(torch.from_numpy(x)), torch.from_numpy(x * 2))


def test_the_first_of_several_results_is_an_output() -> None:
    """As the last layer of an encoder: an attention, or a norm, has results that nobody reads."""
    model = torch.nn.LayerNorm(8).eval()
    x = torch.randn(3, 8)
    with torch.no_grad():
        assert_equal(compiled(model)(x), model(x))


def test_strides_that_a_tensor_has_already_are_no_copy() -> None:
    """AdaptiveAvgPool1d to one place gives a tensor the strides that it has."""
    model, x = torch.nn.AdaptiveAvgPool1d(1).eval(), torch.randn(2, 8, 5)
    with torch.no_grad():
        assert_equal(compiled(model)(x), model(x))


def test_other_strides_are_refused() -> None:
    def function(x: Any) -> Any:
        return (x + 1).as_strided((2, 2), (1, 3))

    with torch.no_grad(), pytest.raises(UnsupportedOperator, match="as_strided"):
        compiled(function)(torch.randn(4, 4))


def test_places_of_a_pool_that_nobody_reads_are_not_computed(built: list[Any]) -> None:
    """torch.compile writes a pool as one that has them."""
    x = torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        assert_equal(compiled(lambda x: torch.max_pool2d(x, 2))(x), torch.max_pool2d(x, 2))
    assert "places" not in str(built[0].explain()).lower()
