"""Operators that move more than they compute, against peers: softmax, normalisation, activations
and a chain of elementwise operators.

    python -m benchmarks.pointwise [NAME ...] [--threads 1,2] [--rounds 7] [--rows 128,1024]
                                   [--write]

A time is the slope of a chain: one repeat and nine, each of which reads what the one before wrote,
in one engine or session. Nine repeats should be nine passes over memory for every system:

- A repeat of a softmax or a normalisation needs whole rows of the one before. Neither we nor the
  two peers join two of them, though a compiler could that keeps a row in a cache through both.
- Repeats of elementwise operators stand apart by a Reshape, from [M, N] to [2, M / 2, N] and back,
  which costs nothing in any of the systems and behind which onnxruntime fuses nothing. We would:
  our engine is compiled without the pass ReshapeMotion, which takes such Reshapes out of the way.

Our engine is refused where its number of kernels is not that of the repeats. The plans of the peers
(onnxruntime 1.31.1, OpenVINO 2026.4) show nine passes or more, since onnxruntime has no kernel for
a whole chain of five, with one exception: OpenVINO drops the Reshapes between nine Gelus, which
depend on no axis, and makes one pass of them all. That row is in its favour: it moves a ninth.

The traffic of a repeat is its tensors, each read or written once; weights of a row are left out. A
share is that traffic per second over what a loop that only reads gets from the level of memory that
holds as many bytes (`runtime/measure/limits.py`). A write to a line that no cache holds reads it
first, so where data lives in memory half of that rate is all that ordinary stores leave, and stores
that go past the caches up to all of it.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

import tilewright as tw
from tilewright.cli.arguments import counts
from tilewright.cli.compare.comparison import OURS
from tilewright.cli.compare.peers import Peer, installed
from tilewright.graph.passes.pipeline import PIPELINE
from tilewright.graph.passes.reshape_motion import ReshapeMotion
from tilewright.runtime.arrays import Array
from tilewright.runtime.measure.limits import limits
from tilewright.runtime.measure.rounds import is_disturbed
from tilewright.tir.program.program import Launch

from . import report
from .chains import LONG, Chain, slopes

SHAPES = ((128, 768), (128, 3072), (1024, 1024), (4096, 4096))
REPEATS = 9
PASSES = tuple(one for one in PIPELINE if not isinstance(one, ReshapeMotion))


@dataclass(frozen=True)
class Case:
    """What is repeated. nodes: those that make `to` of `x`; a second tensor is called r, a row s
    and b. reads: tensors of the full shape.
    """

    name: str
    nodes: Callable[[str, str, str], list[NodeProto]]
    reads: int = 1
    apart: bool = True  # whether a Reshape must stand between two repeats


def _node(operator: str, *names: str, **attributes: int) -> NodeProto:
    """A node; the last name is that of its output."""
    return helper.make_node(operator, names[:-1], names[-1:], **attributes)


def _norm(x: str, to: str) -> NodeProto:
    return _node("LayerNormalization", x, "s", "b", to, axis=-1)


def _chain(x: str, r: str, to: str) -> list[NodeProto]:
    """max(silu((x + r) * s), -0.2)."""
    return [
        _node("Add", x, r, f"{to}_sum"),
        _node("Mul", f"{to}_sum", "s", f"{to}_scaled"),
        _node("Sigmoid", f"{to}_scaled", f"{to}_gate"),
        _node("Mul", f"{to}_scaled", f"{to}_gate", f"{to}_gated"),
        _node("Max", f"{to}_gated", "low", to),
    ]


CASES = (
    Case("softmax", lambda x, _, to: [_node("Softmax", x, to, axis=-1)], apart=False),
    Case("layernorm", lambda x, _, to: [_norm(x, to)], apart=False),
    Case("gelu", lambda x, _, to: [_node("Gelu", x, to)]),
    Case(
        "bias+gelu",
        lambda x, _, to: [_node("Add", x, "b", f"{to}_sum"), _node("Gelu", f"{to}_sum", to)],
    ),
    Case(
        "add+layernorm",
        lambda x, r, to: [_node("Add", x, r, f"{to}_sum"), _norm(f"{to}_sum", to)],
        reads=2,
        apart=False,
    ),
    Case("chain of 5", _chain, reads=2),
)


@dataclass(frozen=True)
class Row:
    """One case at one shape: microseconds of a repeat by system, the best peer, its time over ours
    with its interval, and the share of the bandwidth that ours reaches.
    """

    case: str
    rows: int
    columns: int
    threads: int
    microseconds: dict[str, float]
    best_peer: str
    ratio: float
    low: float
    high: float
    gb_per_s: float
    limit_gb_per_s: float


def model(case: Case, shape: tuple[int, int], repeats: int) -> ModelProto:
    """The ONNX model of a case."""
    rng = np.random.default_rng(0)
    rows, columns = shape
    forms = {"flat": [rows, columns], "deep": [2, rows // 2, columns]}
    constants = {name: np.array(form, np.int64) for name, form in forms.items()}
    for name, mean in (("s", 1.0), ("b", 0.0)):
        constants[name] = (mean + 0.1 * rng.standard_normal(columns)).astype(np.float32)
    constants["low"] = np.array(-0.2, np.float32)
    nodes = [_node("Reshape", "r", "deep", "r_deep")] if case.apart and case.reads == 2 else []
    at, form = "x", "flat"
    for number in range(repeats):
        if number and case.apart:
            form = "deep" if form == "flat" else "flat"
            nodes.append(_node("Reshape", at, form, f"{at}_{form}"))
            at = f"{at}_{form}"
        nodes += case.nodes(at, "r_deep" if form == "deep" else "r", f"y{number}")
        at = f"y{number}"
    used = {name for node in nodes for name in node.input}
    inputs = ["x", "r"][: case.reads]
    graph = helper.make_graph(
        nodes,
        case.name,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in inputs],
        [helper.make_tensor_value_info(at, TensorProto.FLOAT, forms[form])],
        [numpy_helper.from_array(array, name) for name, array in constants.items() if name in used],
    )
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    checker.check_model(found)
    return found


def inputs_of(case: Case, shape: tuple[int, int]) -> dict[str, Array]:
    """Random data."""
    rng = np.random.default_rng(1)
    return {name: rng.standard_normal(shape, np.float32) for name in ["x", "r"][: case.reads]}


def chain_of(case: Case, shape: tuple[int, int]) -> Chain:
    """One case at one shape.

    Raises: RuntimeError where our engine has not a kernel for each repeat.
    """
    chain = Chain.of(
        case.name,
        lambda repeats: model(case, shape, repeats),
        REPEATS,
        lambda proto: tw.compile(proto, passes=PASSES),
    )
    kernels = sum(isinstance(s, Launch) for s in chain.engines[LONG].parts.artifact.body)
    if kernels != REPEATS:
        raise RuntimeError(f"{case.name}: {kernels} kernels for {REPEATS} repeats")
    return chain


def measure(
    case: Case, shape: tuple[int, int], threads: int, rounds: int, peers: Sequence[Peer]
) -> Row:
    """One case at one shape in every system."""
    found = slopes(chain_of(case, shape), inputs_of(case, shape), peers, threads, rounds)
    best = found.best_peer()
    ratio = found.ratio(best)
    size = shape[0] * shape[1] * 4 * (case.reads + 1)
    times = {system: found.timing(system).median for system in found.seconds}
    return Row(
        case.name,
        *shape,
        threads,
        {system: seconds * 1e6 for system, seconds in times.items()},
        best,
        ratio.median,
        ratio.low,
        ratio.high,
        size / times[OURS] / 1e9,
        limits().gb_per_s(threads, size),
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown, and the geometric mean of the ratios at each number of threads, but for
    those of disturbed rounds.
    """
    systems = list(rows[0].microseconds)
    head = ("case", "shape", "threads", *(f"{s}, us" for s in systems))
    head += ("best peer / ours", "interval", "GB/s", "of the level's bandwidth")
    cells = [
        (
            row.case,
            f"{row.rows} x {row.columns}",
            row.threads,
            *(f"{row.microseconds[system]:.1f}" for system in systems),
            report.ratio_text(row.ratio, row.low, row.high),
            f"{row.low:.2f} to {row.high:.2f}",
            f"{row.gb_per_s:.0f}",
            f"{row.gb_per_s / row.limit_gb_per_s:.0%}",
        )
        for row in rows
    ]
    means = []
    calm = [row for row in rows if not is_disturbed(row.low, row.high)]
    for threads in dict.fromkeys(row.threads for row in calm):
        ratios = [row.ratio for row in calm if row.threads == threads]
        means.append(
            f"At {threads} thread(s) the geometric mean of best peer / ours is "
            f"{statistics.geometric_mean(ratios):.2f}, the least {min(ratios):.2f}."
        )
    return report.table(head, cells) + "\n\n" + "\n".join(means)


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [case.name for case in CASES]
    parser.add_argument("cases", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=counts, default=tuple(rows for rows, _ in SHAPES))
    parser.add_argument("--write", action="store_true", help="keep the result in results/")
    args = parser.parse_args()
    peers = installed()
    rows = []
    for case in CASES:
        for shape in SHAPES:
            wanted = case.name in (args.cases or names) and shape[0] in args.rows
            for threads in args.threads if wanted else ():
                rows.append(measure(case, shape, threads, args.rounds, peers))
                print(table(rows[-1:]).splitlines()[2], flush=True)
    text = table(rows)
    print(text)
    if args.write:
        report.write("pointwise", text, [asdict(row) for row in rows], peers)


if __name__ == "__main__":
    main()
