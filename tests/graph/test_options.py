"""Options that have one value so far are refused by name, never ignored."""

from __future__ import annotations

import pytest

from tilewright.graph.options import (
    OPTIONS,
    OptionError,
    ShapesError,
    check_options,
    check_precision,
    check_shapes,
    check_tolerance,
)


def test_the_values_that_exist_are_accepted() -> None:
    for name, accepted in OPTIONS.items():
        for value in accepted.values:
            check_options(**{name: value})


def test_a_value_that_is_not_there_yet_is_refused() -> None:
    with pytest.raises(OptionError) as caught:
        check_options(effort="best")
    assert str(caught.value) == (
        "OptionError: compile: option effort='best' is not available in this version; "
        "expected 'default'. [compile-option]"
    )


@pytest.mark.parametrize("precision", ["float32", "bfloat16", {"fc": "float16"}, {}])
def test_a_precision_is_of_all_products_or_of_those_that_are_named(precision: object) -> None:
    check_precision(precision, strict=False)


@pytest.mark.parametrize("precision", [{"fc": "half"}, {3: "float16"}])
def test_other_precisions_of_products_are_refused(precision: dict[object, str]) -> None:
    with pytest.raises(OptionError) as caught:
        check_precision(precision, strict=False)
    ((name, kind),) = precision.items()
    assert str(caught.value) == (
        f"OptionError: compile: option precision={{{name!r}: {kind!r}}} is no precision of a "
        "product; expected the name of a node or a value, and 'float32' or 'float16' or 'bfloat16' "
        "or 'int8'. [compile-precision]"
    )


def test_a_precision_without_meaning_is_refused() -> None:
    with pytest.raises(OptionError) as caught:
        check_precision(16, strict=False)
    assert str(caught.value) == (
        "OptionError: compile: option precision=16 has no meaning; expected 'float32' or 'float16' "
        "or 'bfloat16' or 'int8'. [compile-option]"
    )


def test_a_strict_build_rounds_no_operands() -> None:
    check_precision("float32", strict=True)
    check_precision({"fc": "float32"}, strict=True)
    with pytest.raises(OptionError) as caught:
        check_precision({"fc": "bfloat16"}, strict=True)
    assert str(caught.value) == (
        "OptionError: compile: options strict=True and precision={'fc': 'bfloat16'} contradict "
        "each other: a strict build rounds where the model does. [compile-precision-strict]\n"
        "  Hint: leave out one of them."
    )


def test_a_value_that_means_nothing_is_refused() -> None:
    with pytest.raises(OptionError) as caught:
        check_options(verify="some")
    assert str(caught.value) == (
        "OptionError: compile: option verify='some' has no meaning; expected 'all' or 'rewrites' "
        "or 'kernels' or 'emulated' or 'off'. [compile-option]"
    )


@pytest.mark.parametrize("tolerance", [None, 1e-5, 1e-3, 0.5])
def test_a_tolerance_is_a_share_of_an_output(tolerance: float | None) -> None:
    check_tolerance(tolerance, strict=False)


@pytest.mark.parametrize("tolerance", [1e-6, 0, 1, -1e-3, float("nan"), True, "1e-3"])
def test_another_tolerance_is_refused(tolerance: object) -> None:
    with pytest.raises(OptionError) as caught:
        check_tolerance(tolerance, strict=False)
    assert str(caught.value) == (
        f"OptionError: compile: option tolerance={tolerance!r} is no error that can be asked for; "
        "expected None, or the share of an output's largest magnitude, below 1 and at least 1e-05, "
        "to which float32 is held without it. [compile-tolerance]"
    )


def test_a_strict_build_has_no_tolerance() -> None:
    check_tolerance(None, strict=True)
    with pytest.raises(OptionError) as caught:
        check_tolerance(1e-3, strict=True)
    assert str(caught.value) == (
        "OptionError: compile: options strict=True and tolerance=0.001 contradict each other: a "
        "strict build takes no other algorithm than the operators' own. "
        "[compile-tolerance-strict]\n"
        "  Hint: leave out one of them."
    )


def test_shapes_that_are_no_mapping_are_refused() -> None:
    check_shapes(None)
    check_shapes({"x": (1, 3)})
    with pytest.raises(ShapesError) as caught:
        check_shapes("image")
    assert isinstance(caught.value, TypeError)
    assert str(caught.value) == (
        "ShapesError: compile: shapes is 'image'; expected a dict from inputs or symbols to sizes. "
        "[compile-shapes]\n"
        '  Hint: shapes={"input": (1, 3, 224, 224)} or shapes={"batch": 1}.'
    )
