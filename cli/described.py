"""The description of an engine as JSON, which several verbs print."""

from __future__ import annotations

from collections.abc import Sequence

from ..runtime.artifact_json import plan_to_json
from ..runtime.engine.engine import Engine
from ..runtime.engine.parts import Variant
from ..runtime.model.interface import TensorSpec
from ..runtime.model.precision_json import precision_to_json
from ..runtime.version import tool_version


def described(engine: Engine) -> dict[str, object]:
    """Model, target, interface, counts of kernels and verdicts, what products compute with, memory
    in bytes, variants, build seconds.
    """
    report, plan = engine.explain(), engine.memory_plan
    return {
        "tool": tool_version(),
        "model": engine.name,
        "target": str(engine.parts.artifact.target),
        "inputs": _specs(engine.inputs),
        "outputs": _specs(engine.outputs),
        "kernels": len(report.kernels),
        "launches": len(engine.parts.artifact.launches),
        "proofs": report.proofs,
        "coverage": dict(report.coverage.counts),
        "precision": precision_to_json(report.precision),
        "memory": plan_to_json(plan),
        "variants": [_variant(one) for one in engine.parts.variants],
        "build_seconds": dict(report.seconds),
    }


def _variant(variant: Variant) -> dict[str, object]:
    """The sizes of a variant, and the least of each that it serves."""
    return {
        "sizes": dict(variant.sizes),
        "least": {name: least for name, least, _ in variant.widths},
    }


def _specs(specs: Sequence[TensorSpec]) -> list[dict[str, object]]:
    return [
        {"name": spec.name, "dtype": spec.dtype.name, "shape": list(spec.shape)} for spec in specs
    ]
