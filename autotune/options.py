"""TuneOptions: how a search is to run, apart from what it tunes."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Event
from typing import TypedDict

from ..tir.json_reader import Json
from .log.record import Trial
from .search.strategies import DEFAULT
from .sizes import GivenSizes
from .space.space import RuleFunction

DEFAULT_TRIALS = 64  # of each function


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """The options of `tune`, which describes them."""

    rule: RuleFunction | None = None
    trials: int | None = None
    seconds: float | None = None
    log: str | os.PathLike[str] | None = None
    resume: bool = True
    seed: int = 0
    strategy: str = DEFAULT
    executor: Executor | str | None = None
    callback: Callable[[Trial], None] | None = None
    progress: Callable[[str], None] | None = None
    stop: Event | None = None
    events: Callable[[dict[str, Json]], None] | None = None
    sizes: GivenSizes | None = None

    def trial_limit(self, functions: int) -> int | None:
        """The number of trials that ends a search for so many functions; None: no number does."""
        if self.trials is None and self.seconds is None:
            return DEFAULT_TRIALS * functions
        return self.trials


class TuneArguments(TypedDict, total=False):
    """The same as keyword arguments, for type checkers."""

    rule: RuleFunction | None
    trials: int | None
    seconds: float | None
    log: str | os.PathLike[str] | None
    resume: bool
    seed: int
    strategy: str
    executor: Executor | str | None
    callback: Callable[[Trial], None] | None
    progress: Callable[[str], None] | None
    stop: Event | None
    events: Callable[[dict[str, Json]], None] | None
    sizes: GivenSizes | None
