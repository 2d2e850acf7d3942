"""`tilewright bench`: time a model against other systems, in one process, in interleaved rounds.
First every system's outputs must be equal to ours; exit code 1 where one differs. With
`--precision`, the same model in float32 is one of the systems.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from .arguments import (
    add_bound,
    add_json,
    add_model,
    add_schedules,
    add_sizes,
    add_verb,
    counts,
    described_by,
    seconds,
    sizes_of,
    whole,
)
from .constants import constants_of
from .errors import MISMATCH, OK, UsageError
from .precision import GivenPrecision, add_precision, precision_of
from .text import working

if TYPE_CHECKING:
    from ..runtime.engine.engine import Engine
    from .arguments import Verbs
    from .compare.comparison import ThreadComparison, Tolerance
    from .compare.peers import Peer

_FEWEST = 7  # rounds; fewer give no 95 % interval
_EXAMPLES = """\
  tilewright bench model.onnx --against onnxruntime
  tilewright bench model.onnx --against onnxruntime,openvino --threads 1,2
  tilewright bench model.onnx --against openvino --shapes batch:8 --duration 20
  tilewright bench model.onnx --against onnxruntime --load-inputs in.npz --json
  tilewright bench model.onnx --precision bfloat16          beside float32
  tilewright bench model.onnx --precision int8 --calibration model.npz --against onnxruntime
"""


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "bench",
        "time a model against other systems",
        described_by(__doc__),
        _EXAMPLES,
        "MODEL (--against PEER,... | --precision TYPE)",
    )
    add_model(parser, archives=False)
    add_precision(parser)
    add_schedules(parser)
    parser.add_argument(
        "--against",
        type=_names,
        default=(),
        metavar="PEER,...",
        help='onnxruntime, openvino; pip install -e ".[peers]" brings them',
    )
    parser.add_argument(
        "--load-inputs", metavar="FILE", help=".npz by name, or .npy for one input; else random"
    )
    parser.add_argument("--seed", type=whole, default=0, help="of random inputs (default 0)")
    add_sizes(parser)
    add_bound(parser, "ours", "1e-4")
    parser.add_argument(
        "--threads", type=counts, metavar="N,...", help="time at these numbers of threads"
    )
    parser.add_argument(
        "--rounds", type=_rounds, default=_FEWEST, metavar="N", help="at least 7 (default 7)"
    )
    parser.add_argument(
        "--warmup", type=whole, default=3, metavar="N", help="runs first (default 3)"
    )
    parser.add_argument(
        "--iterations", type=whole, metavar="N", help="calls in a round; 0: do not time"
    )
    parser.add_argument(
        "--duration",
        type=seconds,
        default=5.0,
        metavar="S",
        help="time for S seconds at each number of threads (default 5)",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile, check and time; fail before compiling where a peer is missing."""
    from ..graph.given_model import is_archive  # start-up
    from .compare.float_engine import FloatEngine
    from .compare.peers import choose_peers
    from .compare.text import BenchReport
    from .conditions import conditions
    from .described import described
    from .engines import SUFFIX, engine_of

    given = precision_of(arguments)
    if not arguments.against and not given.kinds:
        raise UsageError(
            "bench: there is nothing to time the model against; expected --against or --precision.",
            code="cli-bench-alone",
            hints=("`tilewright run` times it alone.",),
        )
    peers = choose_peers(arguments.against)
    if arguments.model.endswith(SUFFIX):
        raise UsageError(
            f"bench: '{arguments.model}' is an engine; expected a model, which peers run too.",
            code="cli-bench-engine",
        )
    if is_archive(arguments.model):
        raise UsageError(
            f"bench: '{arguments.model}' is an archive of torch.export, which no peer here runs; "
            "expected an ONNX model.",
            code="cli-bench-archive",
            hints=("`tilewright run` times it alone.",),
        )
    engine = engine_of(arguments, given)
    if given.kinds:
        peers = (FloatEngine(engine_of(arguments, GivenPrecision())), *peers)
    tolerance = _tolerance(arguments, engine, given)
    report = BenchReport(
        str(engine.interface),
        str(engine.parts.artifact.target),
        arguments.load_inputs or f"random, seed {arguments.seed}",
        _allowed(engine, tolerance),
        conditions(peers),
        peers,
        _blocks(arguments, engine, peers, tolerance),
        _precision(engine, given),
    )
    if arguments.json:
        print(json.dumps({**described(engine), **report.to_json()}, indent=1))
    else:
        print(report)
    return OK if report.is_equal else MISMATCH


def _blocks(
    arguments: argparse.Namespace,
    engine: Engine,
    peers: tuple[Peer, ...],
    tolerance: Tolerance,
) -> tuple[ThreadComparison, ...]:
    from ..runtime.machine.host import default_threads  # start-up
    from ..runtime.model.interface import ClosedSpec  # start-up
    from .compare.comparison import Effort, compare_systems
    from .compare.peer_model import peer_model
    from .tensors import load_inputs

    inputs = (
        engine.random_inputs(arguments.seed, sizes=sizes_of(arguments.sizes))
        if arguments.load_inputs is None
        else load_inputs(arguments.load_inputs, engine.inputs)
    )
    specs = [ClosedSpec(name, a.dtype, a.shape) for name, a in inputs.items()]
    model = peer_model(arguments.model, specs, constants_of(arguments.constants))
    threads = tuple(dict.fromkeys(arguments.threads or (default_threads(),)))
    effort = Effort(arguments.rounds, arguments.warmup, arguments.iterations, arguments.duration)
    with working("comparing"):
        return compare_systems(engine, model, inputs, peers, threads, tolerance, effort)


def _tolerance(arguments: argparse.Namespace, engine: Engine, given: GivenPrecision) -> Tolerance:
    """By how much outputs may differ: of 16 bits, what two systems of that type may; of bytes, what
    the caller says, and else they are held to nothing.
    """
    from ..runtime.model.verification import share_of_types  # start-up
    from .compare.comparison import Tolerance

    atol, rtol = arguments.atol, arguments.rtol
    if not {"int8", "auto"}.isdisjoint(given.kinds) and atol is None and rtol is None:
        return Tolerance(accepted=1.0, is_held=False)
    accepted = engine.parts.report.tolerance
    return Tolerance(atol, rtol, max(share_of_types(given.kinds) or 0.0, accepted or 0.0) or None)


def _precision(engine: Engine, given: GivenPrecision) -> tuple[str, ...]:
    """What our engine was asked for, and what it computes with."""
    if not given.kinds:
        return ()
    found = engine.explain().precision
    return (str(given), *(line for _, lines in found.summary for line in lines))


def _allowed(engine: Engine, tolerance: Tolerance) -> str:
    """The tolerance in words."""
    if not tolerance.is_held:
        return "any difference: bytes round by their ranges; --rtol R says what is allowed"
    if tolerance.atol is not None or tolerance.rtol is not None:
        return f"{tolerance.atol or 0:g} + {tolerance.rtol or 0:g} * |ours|, element by element"
    from ..runtime.model.verification import RELATIVE, SLACK, allowed_share  # start-up

    names = dict.fromkeys(spec.dtype.name for spec in engine.outputs)
    shares = [
        f"{allowed_share(name, SLACK, tolerance.accepted):.0e} ({name})"
        for name in names
        if name in RELATIVE
    ]
    parts = [f"{' and '.join(shares)} of an output's largest magnitude"] if shares else []
    if len(shares) < len(names):
        parts.append("integers are the same")
    return "; ".join(parts)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _rounds(text: str) -> int:
    rounds = whole(text)
    if rounds < _FEWEST:
        raise argparse.ArgumentTypeError(f"'{text}' is below {_FEWEST} rounds")
    return rounds
