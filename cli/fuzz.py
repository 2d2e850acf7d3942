"""`tilewright fuzz`: draw random programs and schedules, and check that each keeps its meaning.
The checked interpreter at every stage, NumPy, the proof, the replay of the trace, and C on every
instruction set of this machine must agree. A failure is minimised and written as a script.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import add_json, add_verb, described_by, seconds, whole
from .errors import MISMATCH, OK, UsageError
from .text import bad, good, paragraph, table, working

if TYPE_CHECKING:
    from ..driver.fuzz.session import Summary
    from ..graph.fuzz.session import ModelSummary
    from .arguments import Verbs

_EXAMPLES = """\
  tilewright fuzz --seconds 60
  tilewright fuzz --seconds 3600 --seed 7 --corpus found    keep failing cases in found/
  tilewright fuzz --seconds 10 --no-compile --json          interpreter and proof only
  tilewright fuzz --models --seconds 600                    models with open sizes, branches, loops
"""
_SHOWN_LINES = 12  # of a failure's message
_SHOWN_RULES = 24


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "fuzz",
        "search for bugs with random programs",
        f"{described_by(__doc__)} Exit code 1 where something failed.",
        _EXAMPLES,
    )
    parser.add_argument(
        "--seconds", type=seconds, default=60.0, metavar="N", help="how long (default 60)"
    )
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="S", help="of the random cases (default 0)"
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="FOLDER",
        help="where failing cases are written (default: tests/corpus of a clone, else none)",
    )
    parser.add_argument("--no-compile", action="store_true", help="compile and run no C")
    parser.add_argument(
        "--models",
        action="store_true",
        help="draw models instead: open sizes, branches and loops, each run at three random sizes",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Fuzz until the time is over, or Ctrl-C."""
    if arguments.models:
        return _run_models(arguments)
    from ..driver.fuzz.session import fuzz  # start-up
    from ..runtime.toolchain.compilers import find_compiler

    if not arguments.no_compile:
        find_compiler()
    with working("fuzzing") as say:
        summary = fuzz(
            arguments.seconds,
            seed=arguments.seed,
            corpus=arguments.corpus or clone_corpus(),
            isas=() if arguments.no_compile else None,
            progress=lambda now: say(
                f"{now.cases} cases, {len(now.failures)} failures, {now.seconds:.0f} s"
            ),
        )
    print(json.dumps(_json(summary), indent=1) if arguments.json else _text(summary))
    return MISMATCH if summary.failures else OK


def _run_models(arguments: argparse.Namespace) -> int:
    """Fuzz with models. Raises: UsageError."""
    if arguments.no_compile:
        raise UsageError(
            "fuzz: --models compiles what it draws, so --no-compile has no meaning with it.",
            code="cli-fuzz-models",
            hints=("leave one of both out.",),
        )
    from ..graph.fuzz.session import fuzz_models  # start-up
    from ..runtime.toolchain.compilers import find_compiler

    find_compiler()
    with working("fuzzing models") as say:
        summary = fuzz_models(
            arguments.seconds,
            seed=arguments.seed,
            corpus=arguments.corpus,
            progress=lambda now: say(
                f"{now.cases} models, {len(now.failures)} failures, {now.seconds:.0f} s"
            ),
        )
    if arguments.json:
        plain = {
            "seed": summary.seed,
            "seconds": summary.seconds,
            "cases": summary.cases,
            "kinds": dict(summary.kinds),
            "kernels": summary.kernels,
            "interrupted": summary.interrupted,
            "onnxruntime": dict(summary.beside),
            "failures": [asdict(one) for one in summary.failures],
        }
        print(json.dumps(plain, indent=1, default=str))
    else:
        print(_said(summary))
    return MISMATCH if summary.failures else OK


def _said(summary: ModelSummary) -> str:
    kinds = ", ".join(f"{count} with {kind}" for kind, count in sorted(summary.kinds.items()))
    failures = [
        f"model {one.seed} ({one.kind}, {one.nodes} nodes): {one.text}"
        + (f"\nkept: {one.path}" if one.path else "\nnot kept: --corpus FOLDER keeps it")
        for one in summary.failures
    ]
    counts = ", ".join(f"{count} {what}" for what, count in sorted(summary.beside.items()))
    beside = [paragraph("beside", f"onnxruntime: {counts}")] if counts else []
    return "\n".join(
        [
            paragraph(
                "models",
                f"{summary.cases} in {summary.seconds:.0f} s, seed {summary.seed}"
                f"{', interrupted' if summary.interrupted else ''}: {kinds or 'none'}",
            ),
            paragraph("kernels", f"{summary.kernels}, all proved"),
            *beside,
            paragraph("failures", *(failures or [good("none")])),
        ]
    )


def clone_corpus() -> Path | None:
    """tests/corpus of the clone that the package runs from; None where it is installed."""
    root = Path(__file__).resolve().parents[1]
    return root / "tests" / "corpus" if (root / "tests" / "conftest.py").is_file() else None


def _text(summary: Summary) -> str:
    cases = max(1, summary.cases)
    rows = [
        (
            name,
            str(summary.applied[name]),
            str(summary.refused[name]),
            f"{100 * summary.present[name] / cases:.0f} %",
        )
        for name in sorted({*summary.applied, *summary.refused})
    ]
    steps = table(("primitive", "applied", "refused", "in cases"), rows).splitlines()
    deep = sum(count for depth, count in summary.depths.items() if depth >= 6)
    depths = ", ".join(f"{depth}: {count}" for depth, count in sorted(summary.depths.items()))
    proofs = ", ".join(f"{count} {status}" for status, count in summary.proofs.items()) or "none"
    refused = ", ".join(f"{count} {code}" for code, count in summary.target_refused.items())
    compiled = ", ".join(summary.isas) or "none"
    rate = summary.cases / summary.seconds if summary.seconds else 0.0
    parts = [
        paragraph(
            "cases",
            f"{summary.cases} in {summary.seconds:.0f} s, {rate:.1f} a second, "
            f"seed {summary.seed}{', interrupted' if summary.interrupted else ''}",
            f"C on: {compiled}",
        ),
        paragraph("steps", *steps),
        paragraph("refusals", *_refusals(summary)),
        paragraph("depth", f"{100 * deep / cases:.0f} % of cases have 6 steps or more", depths),
        paragraph("proofs", proofs),
        paragraph("targets", f"schedules that a target refuses: {refused or 'none'}"),
        paragraph("failures", *_failures(summary)),
    ]
    return "\n".join(parts)


def _refusals(summary: Summary) -> list[str]:
    """The refused steps by kind of reason, and the rules that refused most."""
    counted = [
        (count, kind, code)
        for kind, codes in summary.kinds.items()
        for code, count in codes.items()
    ]
    total = sum(count for count, _, _ in counted)
    if not total:
        return ["none"]
    kinds = (
        f"{codes.total()} {kind} ({_share(codes.total(), total)})"
        for kind, codes in summary.kinds.items()
    )
    counted.sort(key=lambda rule: (-rule[0], *rule[1:]))
    shown, rest = counted[:_SHOWN_RULES], counted[_SHOWN_RULES:]
    rows = [(code, kind, str(count), _share(count, total)) for count, kind, code in shown]
    lines = table(("rule", "kind", "refusals", "share"), rows).splitlines()
    more = [f"{sum(count for count, *_ in rest)} by {len(rest)} other rules"] if rest else []
    return [", ".join(kinds), *lines, *more]


def _share(count: int, total: int) -> str:
    return f"{100 * count / total:.1f} %"


def _failures(summary: Summary) -> list[str]:
    if not summary.failures:
        return [good("none")]
    lines = [bad(str(len(summary.failures)))]
    for found in summary.failures:
        if found.path is None and any(
            other.path is not None and found.failure.is_like(other.failure)
            for other in summary.failures
        ):
            lines.append(f"case {found.seed}: as above, {found.failure.stage}")
            continue
        lines += [f"case {found.seed}", *str(found.failure).splitlines()[:_SHOWN_LINES]]
        lines += [f"  {line}" for line in str(found.case.function).splitlines()]
        lines.append(f"kept: {found.path}" if found.path else "not kept: --corpus FOLDER keeps it")
    return lines


def _json(summary: Summary) -> dict[str, object]:
    return {
        "seed": summary.seed,
        "seconds": summary.seconds,
        "cases": summary.cases,
        "interrupted": summary.interrupted,
        "isas": summary.isas,
        "applied": summary.applied,
        "refused": summary.refused,
        "refusals": summary.kinds,
        "cases_with": summary.present,
        "depths": {str(depth): count for depth, count in sorted(summary.depths.items())},
        "proofs": summary.proofs,
        "target_refused": summary.target_refused,
        "failures": [
            {
                "seed": found.seed,
                "stage": found.failure.stage,
                "kind": found.failure.kind,
                "message": found.failure.message,
                "case": found.case.to_json(),
                "file": None if found.path is None else str(found.path),
            }
            for found in summary.failures
        ],
    }
