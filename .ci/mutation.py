"""Mutation testing: does the net hold? Mutants of the code that decides what is legal, proved,
lowered and planned are drawn by a fixed seed; each is run against the tests that mirror its module,
and one that survives against the whole default suite.

    python .ci/mutation.py --count 300 --seed 0 --results mutants.jsonl   draws and runs them
    python .ci/mutation.py --results mutants.jsonl --report               what was found so far
    python .ci/mutation.py ... --again                                    survivors meet new tests

It wants the extra "mutation" (cosmic-ray makes the mutants) and works on a clone of HEAD, never on
the files of this one. A line of the results is one mutant
against one set of tests; what has a line is not run again. The suite begins with the folder of the
mutated file. A mutant that differs in annotations, docstrings, the flags of a dataclass or a zip's
`strict` alone is none: a right program does the same with it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[1]
AREAS = {  # area -> files that are mutated
    "legality": ("schedule/legality.py", "schedule/placement.py", "schedule/primitives/*.py"),
    "proof": ("schedule/proof/*.py",),
    "lowering": ("codegen/lower/*.py", "codegen/lower/math/*.py"),
    "memory": ("graph/memory_plan.py", "graph/memory_check.py"),
    "passes": ("graph/passes/*.py",),
}
MIRRORS = {  # file -> its tests, where they are others than the one named after it
    "schedule/placement.py": ("compute_at", "inline", "loops", "recurrence", "rolling", "scope"),
    "schedule/legality.py": ("kinds", "loops", "inline", "stage", "compute_at", "recurrence"),
    "schedule/primitives/layout.py": ("layout", "padding"),
    "codegen/lower/vector_body.py": ("vectorize", "lanes"),
    "codegen/lower/math/build.py": ("exp", "log", "pow"),
    "graph/passes/identity_removal.py": ("simple_passes",),
    "graph/passes/constant_folding.py": ("simple_passes",),
    "graph/passes/common_subexpressions.py": ("simple_passes",),
}
MIRROR_SECONDS = 60
SUITE_SECONDS = 900
SLOWDOWN = 5  # by the clock, where the machine has other work
ALIVE = "survived"


@dataclass(frozen=True)
class Mutant:
    """The `occurrence`-th place where an operator changes a file; `line` is where it stands."""

    area: str
    file: str
    operator: str
    occurrence: int
    line: int

    @property
    def key(self) -> str:
        """What names it in the results."""
        return f"{self.file}:{self.line}:{self.operator}:{self.occurrence}"


def drawn(count: int, seed: int) -> list[Mutant]:
    """`count` mutants, as many from each area, no two at one place."""
    chosen: list[Mutant] = []
    for area, patterns in AREAS.items():
        files = sorted(
            str(path.relative_to(ROOT))
            for pattern in patterns
            for path in ROOT.glob(pattern)
            if path.name != "__init__.py"
        )
        places: dict[tuple[str, object], list[Mutant]] = {}
        for file in files:
            for place, mutant in _mutants(area, file):
                places.setdefault((file, place), []).append(mutant)
        rng = random.Random(f"{seed}/{area}")
        order = sorted(places, key=str)
        rng.shuffle(order)
        wanted = count // len(AREAS)
        for place in order:
            if sum(mutant.area == area for mutant in chosen) == wanted:
                break
            candidates = places[place]
            rng.shuffle(candidates)
            chosen += [mutant for mutant in candidates if _changes(mutant)][:1]
    return chosen


def _mutants(area: str, file: str) -> Iterator[tuple[object, Mutant]]:
    tree = get_ast((ROOT / file).read_text(encoding="utf-8"))
    nodes = list(ast_nodes(tree))
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
    return mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)


def _changes(mutant: Mutant) -> bool:
    """Whether the mutant is Python and does something else."""
    text = _mutated(mutant)
    if text is None:
        return False
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


def mirrors(file: str) -> list[str]:
    """The test files that mirror a module."""
    path = Path(file)
    named = [
        folder / f"test_{stem}.py"
        for folder in (Path("tests") / path.parent, Path("tests") / path.parent.parent)
        for stem in MIRRORS.get(file, (path.stem,))
    ]
    found = [str(name) for name in named if (ROOT / name).exists()]
    proof = sorted((ROOT / "tests/schedule").glob("test_proof*.py"))
    if "proof" in path.parts:
        found += [str(name.relative_to(ROOT)) for name in proof]
    if not found:
        raise SystemExit(f"no test mirrors {file}: name some in MIRRORS")
    return found


def suite(file: str) -> list[str]:
    """The default suite, beginning with the folder of the tests that mirror a module."""
    places = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").glob("[!_.]*"))
    tests = [place for place in places if (ROOT / place).is_dir() or "test_" in place]
    return sorted(tests, key=lambda place: place != f"tests/{Path(file).parts[0]}")


def outcome(clone: Path, tests: list[str], seconds: float) -> str:
    """ "killed", ALIVE or "timed-out" (which counts as killed): after `seconds` of a processor."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    limit = (int(seconds), int(seconds) + 1)
    environment = {**os.environ, "PYTHONPATH": str(clone.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command,
        cwd=clone,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, limit),
    )
    try:
        status = process.wait(SLOWDOWN * seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return "timed-out"
    if status == -signal.SIGXCPU:
        return "timed-out"
    return "killed" if status else ALIVE


def run(mutants: list[Mutant], results: Path, *, again: bool) -> None:
    """All against their mirrors, then those that survived against the suite; a line for each.

    again: what has survived its mirrors before is tried anew.
    """
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "tilewright"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        for by in ("mirror", "suite"):
            known = read(results)
            last = {entry["key"]: entry["verdict"] for entry in known if entry["by"] == by}
            retried = again and by == "mirror"
            done = {key for key, verdict in last.items() if verdict != ALIVE or not retried}
            if by == "suite":
                first = {
                    entry["key"]: entry["verdict"] for entry in known if entry["by"] == "mirror"
                }
                mutants = [mutant for mutant in mutants if first[mutant.key] == ALIVE]
            for number, mutant in enumerate(mutants):
                if mutant.key not in done:
                    entry = _tried(clone, mutant, by)
                    with results.open("a", encoding="utf-8") as log:
                        log.write(json.dumps(entry) + "\n")
                    place = f"{number + 1}/{len(mutants)}"
                    print(f"{place} {entry['verdict']} by {by} {mutant.key}", flush=True)


def _tried(clone: Path, mutant: Mutant, by: str) -> dict[str, object]:
    """The line of the results for a mutant."""
    file, text = clone / mutant.file, _mutated(mutant)
    original = file.read_text(encoding="utf-8")
    assert text is not None
    began = time.monotonic()
    file.write_text(text, encoding="utf-8")
    try:
        mirror = by == "mirror"
        tests = mirrors(mutant.file) if mirror else suite(mutant.file)
        verdict = outcome(clone, tests, MIRROR_SECONDS if mirror else SUITE_SECONDS)
    finally:
        file.write_text(original, encoding="utf-8")
    took = round(time.monotonic() - began, 1)
    return {"key": mutant.key, **asdict(mutant), "verdict": verdict, "by": by, "seconds": took}


def read(results: Path) -> list[dict[str, str]]:
    """The lines of a file of results; none where it is not there."""
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def report(results: Path) -> None:
    """Killed and survived by area, and every survivor."""
    entries = {entry["key"]: entry for entry in read(results)}.values()  # the last word on each
    counts = Counter((entry["area"], entry["verdict"]) for entry in entries)
    for area in AREAS:
        alive, dead = counts[area, ALIVE], counts[area, "killed"] + counts[area, "timed-out"]
        share = dead / (alive + dead) if alive + dead else 0.0
        print(f"{area}: {dead} of {alive + dead} killed ({share:.0%})")
    for entry in entries:
        if entry["verdict"] == ALIVE:
            print(f"survived: {entry['key']}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--again", action="store_true", help="try survivors of the mirrors anew")
    arguments = parser.parse_args()
    if not arguments.report:
        run(drawn(arguments.count, arguments.seed), arguments.results, again=arguments.again)
    report(arguments.results)


if __name__ == "__main__":
    main()
