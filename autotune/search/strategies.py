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
# what ranks the offspring; None: nothing does, and points are drawn
STRATEGIES: dict[str, Callable[[], Fit] | None] = {
    DEFAULT: lambda: fit_trees,
    "evolutionary-xgboost": xgboost_fit,
    "random": None,
}


def strategy(
    space: TuningSpace, name: str = DEFAULT, *, seed: int = 0, early: Sequence[Walk] = ()
) -> Strategy[Candidate]:
    """The search of a space by the strategy of that name.

    early: decisions that are tried behind the default.
    Raises: TuneError for a name that is not known, or where it needs what is not installed.
    """
    if name not in STRATEGIES:
        raise TuneError(
            f"tune: there is no strategy '{name}'; expected {known_names(name, STRATEGIES)}.",
            code="tune-strategy",
        )
    ranked_by = STRATEGIES[name]
    if ranked_by is None:
        return RandomSearch(space, seed, early)

    def told(candidate: Candidate) -> dict[str, float]:
        return features(candidate.schedule, space.target)

    return EvolutionarySearch(space, told, seed, early, ranked_by())
