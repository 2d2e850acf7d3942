"""The strategies of a search, by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..tir.errors import known_names
from .cost_model import FITS
from .errors import TuneError
from .evolution import EvolutionarySearch
from .features import features
from .search import RandomSearch, Strategy
from .space import Candidate, TuningSpace, Walk

STRATEGIES = ("evolutionary", "random")


def strategy(
    space: TuningSpace,
    name: str = "evolutionary",
    *,
    seed: int = 0,
    early: Sequence[Walk] = (),
    model: str = "trees",
) -> Strategy[Candidate]:
    """The search of a space by the strategy of that name.

    early: decisions that are tried behind the default. model: what learns the costs, "trees" or
    "xgboost". Raises: TuneError for names that are not known.
    """
    _check_name("strategy", name, STRATEGIES)
    _check_name("model", model, FITS)
    if name == "random":
        return RandomSearch(space, seed, early)

    def told(candidate: Candidate) -> dict[str, float]:
        return features(candidate.schedule, space.target)

    return EvolutionarySearch(space, told, seed, early, FITS[model])


def _check_name(what: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise TuneError(
            f"tune: there is no {what} '{name}'; expected {known_names(name, known)}.",
            code="tune-name",
        )
