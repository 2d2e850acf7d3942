"""The tiny model as an engine, built once per process."""

from __future__ import annotations

from functools import cache

from tilewright.driver.build_program import build_program
from tilewright.driver.jobs import ProgramOptions
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.model.model import Model

from .tiny_program import constants, tiny


@cache
def tiny_engine(target: str | None = None) -> Engine:
    """An engine that carries everything that an engine may carry."""
    weights = constants()
    imported = Model(tiny(), weights).stored()
    options = ProgramOptions(
        notes=("not fused: relu and add, because this is a test",),
        lower_bound_bytes=2688,
        imported=imported,
    )
    return build_program(tiny(), weights, target, options=options)
