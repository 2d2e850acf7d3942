"""Options that have one value so far are refused by name, never ignored."""

from __future__ import annotations

import pytest

from tilewright.graph.options import (
    OPTIONS,
    OptionError,
    ShapesError,
    check_options,
    check_shapes,
)


def test_the_values_that_exist_are_accepted() -> None:
    for name, accepted in OPTIONS.items():
        for value in accepted.values:
            check_options(**{name: value})


def test_a_value_that_is_not_there_yet_is_refused() -> None:
    with pytest.raises(OptionError) as caught:
        check_options(precision="float16")
    assert str(caught.value) == (
        "OptionError: compile: option precision='float16' is not available in this version; "
        "expected 'float32'. [compile-option]"
    )


def test_a_value_that_means_nothing_is_refused() -> None:
    with pytest.raises(OptionError) as caught:
        check_options(verify="some")
    assert str(caught.value) == (
        "OptionError: compile: option verify='some' has no meaning; expected 'all' or 'rewrites' "
        "or 'kernels' or 'off'. [compile-option]"
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
