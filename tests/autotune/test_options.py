from __future__ import annotations

from typing import Any

import pytest

from tilewright.autotune.options import DEFAULT_TRIALS, TuneArguments, TuneOptions
from tilewright.autotune.tune import tune

from .samples import scaled


def test_without_a_budget_each_function_has_64_trials() -> None:
    assert TuneOptions().trial_limit(3) == 3 * DEFAULT_TRIALS
    assert TuneOptions(trials=5).trial_limit(3) == 5
    assert TuneOptions(seconds=1.0).trial_limit(3) is None


def test_the_keyword_arguments_of_tune_are_the_fields() -> None:
    assert tuple(TuneArguments.__annotations__) == tuple(TuneOptions.__dataclass_fields__)


def test_an_unknown_option_is_refused() -> None:
    unknown: dict[str, Any] = {"trails": 5}
    with pytest.raises(TypeError, match=r"there is no option 'trails'; .*\[tune-option\]"):
        tune(scaled(), "c", **unknown)
