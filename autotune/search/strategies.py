"""The strategies of a search, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...driver.tuning.errors import TuneError
from ...tir.errors import known_names
from ..model.boosted_trees import fit_trees
from ..model.cost_model import Fit, xgboost_fit
from ..model.features import features
from ..space.space import Candidate, TuningSpace, Walk
from .evolutionary import EvolutionarySearch
from .search import RandomSearch, Strategy

DEFAULT = "evolutionary"
# how the cost model is fitted; None: no model, all points are random
STRATEGIES: dict[str, Callable[[], Fit] | None] = {
    DEFAULT: lambda: fit_trees,
    "evolutionary-xgboost": xgboost_fit,
    "random": None,
}


def make_strategy(
    space: TuningSpace, name: str = DEFAULT, *, seed: int = 0, early: Sequence[Walk] = ()
) -> Strategy[Candidate]:
    """Make the strategy of that name for a space.

    early: walks that are tried right after the default.
    Raises: TuneError for an unknown name, or a strategy whose package is not installed.
    """
    if name not in STRATEGIES:
        raise TuneError(
            f"tune: there is no strategy '{name}'; expected {known_names(name, STRATEGIES)}.",
            code="tune-strategy",
        )
    make_fit = STRATEGIES[name]
    if make_fit is None:
        return RandomSearch(space, seed, early)

    def features_of(candidate: Candidate) -> dict[str, float]:
        return features(candidate.schedule, space.target)

    return EvolutionarySearch(space, features_of, seed, early, make_fit())
