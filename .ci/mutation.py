"""Mutation testing: do the tests hold? Mutants of the code that decides what is legal, proved,
lowered, planned and checked are drawn by a seed; each is run against the tests that mirror its
module, and one that survives against the whole default suite.

    python .ci/mutation.py --count 60 --seed 1 --areas text,fusion --results mutants_1.jsonl
    python .ci/mutation.py --results mutants_1.jsonl --again      survivors meet tests written since
    python .ci/mutation.py --results mutants_1.jsonl --judge KEY "means the same: ..."
    python .ci/mutation.py --results mutants_1.jsonl --report     the table beside it, .md

It wants the extra "mutation" (cosmic-ray makes the mutants of Python, c_mutants.py those of C) and
works on a clone of HEAD, never on the files of this tree. A line of the results is one mutant
against one set of tests; what has a line is not run again. The suite begins with the folder of the
mutated file. A mutant that differs in annotations, docstrings, the flags of a dataclass or a zip's
`strict` alone is none: a right program does the same with it.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import c_mutants
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from mutation_areas import AREAS, files, mirrors, unmirrored
from sandbox import ROOT, Sandbox, first_failure, full_hash

MIRROR_SECONDS = 60
SUITE_SECONDS = 900
ALIVE = "survived"
MIRROR, SUITE, AFTERWARDS, JUDGED = "mirror", "suite", "a test written afterwards", "judgement"
COLUMNS = (MIRROR, SUITE, AFTERWARDS, JUDGED)
Line = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Mutant:
    """The `occurrence`-th place where an operator changes a file; `line` is where it stands, `old`
    and `new` what it is there.
    """

    area: str
    file: str
    operator: str
    occurrence: int
    line: int
    old: str = ""
    new: str = ""

    @property
    def key(self) -> str:
        """What names it in the results."""
        return f"{self.file}:{self.line}:{self.operator}:{self.occurrence}"


def draw(count: int, seed: int, areas: Sequence[str]) -> list[Mutant]:
    """`count` mutants, as many from each area, no two at one place."""
    if missing := unmirrored():
        raise SystemExit(f"no test mirrors {', '.join(missing)}: name some in mutation_areas.py")
    chosen: list[Mutant] = []
    for number, area in enumerate(areas):
        places: dict[tuple[str, object], list[Mutant]] = {}
        for file in files(area):
            for place, mutant in _mutants(area, file):
                places.setdefault((file, place), []).append(mutant)
        rng = random.Random(f"{seed}/{area}")
        order = sorted(places, key=str)
        rng.shuffle(order)
        wanted = count * (number + 1) // len(areas)
        for place in order:
            if len(chosen) == wanted:
                break
            candidates = places[place]
            rng.shuffle(candidates)
            chosen += [_shown(mutant) for mutant in candidates if _changes(mutant)][:1]
    return chosen


def _mutants(area: str, file: str) -> Iterator[tuple[object, Mutant]]:
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.endswith(".c"):
        counts = Counter[str]()
        for place in c_mutants.places(text):
            line = text.count("\n", 0, place.start) + 1
            yield place.start, Mutant(area, file, place.operator, counts[place.operator], line)
            counts[place.operator] += 1
        return
    nodes = list(ast_nodes(get_ast(text)))
    for name in operator_names():
        operator_class = get_operator(name)
        if operator_class.arguments():
            continue
        operator = operator_class()
        found = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(found):
            yield start, Mutant(area, file, name, occurrence, start[0])


def _mutated(mutant: Mutant) -> str | None:
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    if not mutant.file.endswith(".c"):
        return mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)
    own = [place for place in c_mutants.places(source) if place.operator == mutant.operator]
    return c_mutants.mutated(source, own[mutant.occurrence])


def _shown(mutant: Mutant) -> Mutant:
    """The mutant with the lines in which it differs."""
    source = (ROOT / mutant.file).read_text(encoding="utf-8").splitlines()
    changed = (_mutated(mutant) or "").splitlines()
    while source and changed and source[-1] == changed[-1]:
        source.pop()
        changed.pop()
    same = next((n for n, (a, b) in enumerate(zip(source, changed)) if a != b), 0)  # noqa: B905
    old, new = (" ".join(map(str.strip, text[same:]))[:200] for text in (source, changed))
    place = (mutant.area, mutant.file, mutant.operator, mutant.occurrence, mutant.line)
    return Mutant(*place, old, new)


def _changes(mutant: Mutant) -> bool:
    """Whether the mutant is a program and does something else."""
    text = _mutated(mutant)
    if text is None or mutant.file.endswith(".c"):
        return text is not None
    try:
        return _meaning(text) != _meaning((ROOT / mutant.file).read_text(encoding="utf-8"))
    except SyntaxError:
        return False


def _meaning(source: str) -> str:
    """The program without annotations, docstrings, flags of dataclasses and `strict` of zips."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Name("object")
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "dataclass":
                node.keywords = []
            if node.func.id == "zip":
                node.keywords = [word for word in node.keywords if word.arg != "strict"]
    return ast.dump(tree)


def suite(file: str) -> list[str]:
    """The default suite, beginning with the folder of the tests that mirror a module."""
    places = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").glob("[!_.]*"))
    tests = [place for place in places if (ROOT / place).is_dir() or "test_" in place]
    return sorted(tests, key=lambda place: place != f"tests/{Path(file).parts[0]}")


def run(
    mutants: Iterable[Mutant], results: Path, by: str, commit: str, without: Sequence[str]
) -> None:
    """Each mutant against its mirrors, or against the suite, but for tests `without`; a line for
    each as it is known.
    """
    limit = SUITE_SECONDS if by == SUITE else MIRROR_SECONDS
    with tempfile.TemporaryDirectory() as folder:
        box, healthy = Sandbox(Path(folder), commit), set[str]()
        for mutant in mutants:
            tests = suite(mutant.file) if by == SUITE else mirrors(mutant.file)
            if by != SUITE and mutant.file not in healthy:
                if box.test(tests, limit, without).status != 0:
                    raise SystemExit(f"{', '.join(tests)} fail, or take over {limit} s, unchanged")
                healthy.add(mutant.file)
            text, began = _mutated(mutant), time.monotonic()
            assert text is not None
            with box.changed(mutant.file, text):
                done = box.test(tests, limit, without)
            verdict = {None: "timed-out", 0: ALIVE}.get(done.status, "killed")
            took = round(time.monotonic() - began, 1)
            found = {"verdict": verdict, "by": by, "test": first_failure(done), "seconds": took}
            found |= {"commit": commit[:7]}
            append(results, {"key": mutant.key, **asdict(mutant), **found})
            print(f"{verdict} by {by} {mutant.key}", flush=True)


def read(results: Path) -> dict[str, list[Line]]:
    """The lines of a file of results, those of each mutant together; none where it is not there."""
    found: dict[str, list[Line]] = {}
    for text in results.read_text(encoding="utf-8").splitlines() if results.exists() else ():
        line = json.loads(text)
        found.setdefault(line["key"], []).append(line)
    return found


def append(results: Path, line: Line) -> None:
    """Add a line."""
    with results.open("a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")


def mutant_of(line: Line) -> Mutant:
    """The mutant of a line. Raises: SystemExit where its file is another one now."""
    names = ("area", "file", "operator", "occurrence", "line", "old", "new")
    mutant = Mutant(**{name: line[name] for name in names})  # type: ignore[arg-type]
    if _shown(mutant) != mutant:
        raise SystemExit(f"{mutant.key}: the file has changed; draw anew")
    return mutant


def fate(lines: Sequence[Line]) -> str:
    """What became of a mutant: one of COLUMNS, or ALIVE."""
    ends = [str(line["by"]) for line in lines if line["verdict"] != ALIVE]
    return min(ends, key=COLUMNS.index, default=ALIVE)


def report(results: Path) -> str:
    """A table by area, and what became of each that survived its mirrors."""
    known = read(results)
    counts = Counter((str(lines[0]["area"]), fate(lines)) for lines in known.values())
    commits = sorted({str(line["commit"]) for lines in known.values() for line in lines[:1]})
    heads = ("area", "drawn", *(f"by {c}" for c in COLUMNS[:3]), "judged equal", "alive")
    rows = [heads, ("---",) * len(heads)]
    for area in (*(a for a in AREAS if any(counts[a, c] for c in (*COLUMNS, ALIVE))), "all"):
        of = [area] if area != "all" else [*AREAS]
        numbers = [sum(counts[a, c] for a in of) for c in (*COLUMNS, ALIVE)]
        rows.append((area, str(sum(numbers)), *map(str, numbers)))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    killed = sum(counts[a, c] for a in AREAS for c in COLUMNS[:3])
    mirrored = sum(counts[a, MIRROR] for a in AREAS)
    parts = [
        f"# Mutants of {', '.join(commits)}\n",
        table,
        f"\nKilled {killed} of {len(known)}; by the tests that mirror them alone {mirrored}.\n",
        "| survived its mirrors | was | became | and then |\n| --- | --- | --- | --- |",
    ]
    for key, lines in known.items():
        end = fate(lines)
        if end != MIRROR:
            old, new = (str(lines[0][which]).replace("|", "\\|") for which in ("old", "new"))
            said = lines[-1].get("reason") or (ALIVE if end == ALIVE else f"killed by {end}")
            parts.append(f"| `{key}` | `{old}` | `{new}` | {said} |")
    return "\n".join(parts) + "\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--areas", default=",".join(AREAS))
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--no-suite", action="store_true", help="mirrors alone")
    parser.add_argument("--without", nargs="*", default=[], help="tests that a busy machine fails")
    parser.add_argument("--again", action="store_true", help="survivors meet their mirrors anew")
    parser.add_argument("--judge", nargs=2, metavar=("KEY", "REASON"))
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    results: Path = given.results
    known, commit = read(results), full_hash("HEAD")
    alive = [lines[0] for lines in known.values() if fate(lines) == ALIVE]
    if given.judge:
        line = known[given.judge[0]][0]
        append(results, {**line, "verdict": "equal", "by": JUDGED, "reason": given.judge[1]})
    elif given.again:
        run(map(mutant_of, alive), results, AFTERWARDS, commit, given.without)
    elif not given.report:
        drawn = draw(given.count, given.seed, given.areas.split(","))
        fresh = (mutant for mutant in drawn if mutant.key not in known)
        run(fresh, results, MIRROR, commit, given.without)
        left = [lines for lines in read(results).values() if fate(lines) == ALIVE]
        if not given.no_suite:
            untried = [lines[0] for lines in left if all(x["by"] != SUITE for x in lines)]
            run(map(mutant_of, untried), results, SUITE, commit, given.without)
    text = report(results)
    results.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
