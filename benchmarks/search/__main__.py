"""How good a search is, on spaces of which every point was timed once (results/spaces/).

    python -m benchmarks.search [SPACE ...] [--seeds 10] [--write]
    python -m benchmarks.search --record SPACE

For a tenth, a twentieth and a hundredth of the points as trials: the percentile of what was found
(the share of points that take longer) and its time over the best point's, of the rule's own
choice, of random search and of the search by default; medians and the worst of the seeds. Then the
trials until 97 % of the best speed where the rule's own choices are drawn at random instead. Last,
where the search would have ended by itself. `--record` walks a space, builds and times its points.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from tilewright.autotune.search.evolutionary import EvolutionarySearch
from tilewright.autotune.search.search import RandomSearch

from .. import report
from .recorded_space import FOLDER, Found, RecordedSpace

SHARES = (0.01, 0.05, 0.1)
ENOUGH = 0.97  # of the best speed
MOST = 128  # trials within which that is expected
BATCH = 4  # candidates that are proposed together

Strategy = RandomSearch[Found]
STRATEGIES: dict[str, Callable[[RecordedSpace, int], Strategy]] = {
    "random": lambda space, seed: RandomSearch(space, seed),
    "evolutionary": lambda space, seed: EvolutionarySearch(
        space, lambda found: found.timed.told, seed
    ),
}


@dataclass(frozen=True)
class Row:
    """Of one space, strategy and number of trials: percentile and time over the best, the median
    and the worst of the seeds.
    """

    space: str
    strategy: str
    trials: int
    percentile: float
    worst_percentile: float
    over_best: float
    worst_over_best: float


@dataclass(frozen=True)
class Recovery:
    """Trials until `ENOUGH` of the best speed from random defaults; ended: after how many trials
    the search would have ended, and over_best: what it had found then.
    """

    space: str
    strategy: str
    trials: float
    worst_trials: float
    within: int
    seeds: int
    ended: float
    over_best: float
    worst_over_best: float


@dataclass(frozen=True)
class Run:
    """One search: the time of each trial, and how many there were when it was over."""

    seconds: tuple[float, ...]
    ended: int

    def best(self, trials: int) -> float:
        """The least of the first trials."""
        return min(self.seconds[:trials])


def run(space: RecordedSpace, name: str, seed: int, trials: int) -> Run:
    """Search a space."""
    search, seconds, ended = STRATEGIES[name](space, seed), list[float](), 0
    while len(seconds) < trials:
        proposed = search.propose(min(BATCH, trials - len(seconds)))
        if not proposed:
            break
        for found in proposed:
            search.tell(found, found.timed.seconds)
            seconds.append(found.timed.seconds or float("inf"))
        if not ended and search.expected_improvement().is_negligible:
            ended = len(seconds)
    return Run(tuple(seconds), ended or len(seconds))


def quality(name: str, space: RecordedSpace, seeds: int) -> list[Row]:
    """What strategies find in a share of the points."""
    known = sorted(one.seconds for one in space.timed if one.seconds is not None)
    counts = [max(1, round(share * len(space.timed))) for share in SHARES]

    def row(strategy: str, trials: int, found: Sequence[float]) -> Row:
        percentiles = [100 * sum(s > f for s in known) / (len(known) - 1) for f in found]
        over = [f / known[0] for f in found]
        told = (median(percentiles), min(percentiles), median(over), max(over))
        return Row(name, strategy, trials, *(round(number, 3) for number in told))

    default = RandomSearch(space).propose()[0].timed.seconds or float("inf")
    rows = [row("default", 1, [default])]
    for strategy in STRATEGIES:
        runs = [run(space, strategy, seed, counts[-1]) for seed in range(seeds)]
        rows += [row(strategy, count, [one.best(count) for one in runs]) for count in counts]
    return rows


def recovery(name: str, space: RecordedSpace, seeds: int) -> list[Recovery]:
    """How soon strategies find nearly the best from random defaults."""
    best = min(one.seconds for one in space.timed if one.seconds is not None)
    rows = []
    for strategy in STRATEGIES:
        runs = [run(space.from_random_default(s), strategy, s, 2 * MOST) for s in range(seeds)]
        needed = [
            next((n for n, s in enumerate(one.seconds, 1) if best / s >= ENOUGH), float("inf"))
            for one in runs
        ]
        within = sum(trials <= MOST for trials in needed)
        over = [one.best(one.ended) / best for one in runs]
        ended = median(one.ended for one in runs)
        told = (ended, round(median(over), 3), round(max(over), 3))
        rows.append(Recovery(name, strategy, median(needed), max(needed), within, seeds, *told))
    return rows


def tables(rows: Sequence[Row], recovered: Sequence[Recovery]) -> str:
    """The results as two Markdown tables."""
    first = report.table(
        ["space", "strategy", "trials", "percentile, median", "worst", "time / best", "worst"],
        [
            (
                *(
                    r.space,
                    r.strategy,
                    r.trials,
                    f"{r.percentile:.1f}",
                    f"{r.worst_percentile:.1f}",
                ),
                *(f"{r.over_best:.3f}", f"{r.worst_over_best:.3f}"),
            )
            for r in rows
        ],
    )
    second = report.table(
        [
            *("space", "strategy", "trials to 97 %, median", "worst", f"within {MOST}"),
            *("over after", "time / best then", "worst"),
        ],
        [
            (
                *(r.space, r.strategy, f"{r.trials:g}", f"{r.worst_trials:g}"),
                *(f"{r.within}/{r.seeds}", f"{r.ended:g}"),
                *(f"{r.over_best:.3f}", f"{r.worst_over_best:.3f}"),
            )
            for r in recovered
        ],
    )
    return f"{first}\n\nFrom a random legal point in place of the rule's own:\n\n{second}"


def main() -> None:
    """Replay, or record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("spaces", nargs="*", metavar="SPACE", help="all that were recorded")
    parser.add_argument("--record", action="store_true", help="time every point first")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--write", action="store_true", help="keep the tables under results/")
    args = parser.parse_args()
    if args.record:
        from .recording import record  # compiles and measures

        for name in args.spaces:
            record(name).save(FOLDER / f"{name}.json.gz")
    names = args.spaces or sorted(path.name.split(".")[0] for path in FOLDER.glob("*.json.gz"))
    rows: list[Row] = []
    recovered: list[Recovery] = []
    for name in names:
        space = RecordedSpace.load(FOLDER / f"{name}.json.gz")
        rows += quality(name, space, args.seeds)
        recovered += recovery(name, space, args.seeds)
    text = tables(rows, recovered)
    print(text)
    if args.write:
        report.write("search", text, [asdict(row) for row in (*rows, *recovered)], ())


if __name__ == "__main__":
    main()
