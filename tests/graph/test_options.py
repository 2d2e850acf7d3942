"""Options that have one value so far are refused by name, never ignored."""

from __future__ import annotations

import pytest

from tilewright.graph.options import OPTIONS, OptionError, check_options


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
