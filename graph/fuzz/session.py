"""Random models until the time is over; those that fail are kept."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ...driver.fuzz.session import SEEDS, FuzzWorker
from .random_model import random_model

MODEL_SECONDS = 180.0  # that one model may take
Entry = dict[str, object]
_COMMAND = ("-m", "tilewright.graph.fuzz.worker")


@dataclass(frozen=True, slots=True)
class FailedModel:
    """A model that failed. path: where it is kept; None where nothing is."""

    seed: int
    kind: str
    nodes: int
    text: str
    path: Path | None


@dataclass(slots=True)
class ModelSummary:
    """What a run saw. kinds: models of each kind. beside: how many onnxruntime ran, too, or did
    not run; none where it is not installed.
    """

    seed: int
    seconds: float = 0.0
    cases: int = 0
    kernels: int = 0
    interrupted: bool = False
    kinds: Counter[str] = field(default_factory=Counter)
    beside: Counter[str] = field(default_factory=Counter)
    failures: list[FailedModel] = field(default_factory=list)


def fuzz_models(
    seconds: float,
    *,
    seed: int = 0,
    target: str | None = None,
    corpus: Path | None = None,
    progress: Callable[[ModelSummary], object] = lambda summary: None,
) -> ModelSummary:
    """Draw, compile and run models for `seconds`; Ctrl-C ends it early. The same seed draws the
    same models.

    corpus: the folder that models which fail are written to.
    """
    summary, worker, began = ModelSummary(seed), FuzzWorker(_COMMAND), time.monotonic()
    try:
        while time.monotonic() - began < seconds:
            number = seed * SEEDS + summary.cases
            answer = worker.ask({"seed": number, "target": target}, MODEL_SECONDS)
            died: Entry = {"failure": f"the worker {answer}"}
            _count(summary, number, died if isinstance(answer, str) else answer[0], corpus)
            summary.seconds = time.monotonic() - began
            progress(summary)
    except KeyboardInterrupt:
        summary.interrupted = True
    finally:
        worker.stop()
    summary.seconds = time.monotonic() - began
    return summary


def _count(summary: ModelSummary, seed: int, entry: Entry, corpus: Path | None) -> None:
    """Count a model, and keep it where it failed. Raises: OSError."""
    model = random_model(seed)
    summary.cases += 1
    summary.kinds[model.kind] += 1
    summary.kernels += int(str(entry.get("kernels", 0)))
    if not entry["failure"]:
        if beside := str(entry.get("beside", "")):
            summary.beside[beside.partition(":")[0]] += 1
        return
    path = None
    if corpus is not None:
        corpus.mkdir(parents=True, exist_ok=True)
        path = corpus / f"seed_{seed}.onnx"
        path.write_bytes(model.proto.SerializeToString())
    nodes = len(model.proto.graph.node)
    summary.failures.append(FailedModel(seed, model.kind, nodes, str(entry["failure"]), path))
