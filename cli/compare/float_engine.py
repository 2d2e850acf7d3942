"""Our own engine in float32 as a peer of one that is narrower."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...runtime.arrays import Array
from ...runtime.engine.engine import Engine
from ...runtime.version import tool_version
from .peers import PeerSession


@dataclass(frozen=True, slots=True)
class FloatEngine:
    """The same model, compiled by the same options without a precision."""

    engine: Engine
    name: str = "float32"
    requirement: str = "tilewright"

    def is_installed(self) -> bool:
        return True

    def version(self) -> str:
        return tool_version()

    def settings(self, threads: int) -> Mapping[str, str]:
        return {"threads": str(threads)}

    def load(
        self,
        model: str | bytes,
        inputs: Mapping[str, Array],
        outputs: Sequence[str],
        threads: int,
    ) -> PeerSession:
        context = self.engine.context(threads).bind(inputs)
        return PeerSession(context.run, lambda: {name: context.outputs[name] for name in outputs})
