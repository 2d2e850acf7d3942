"""driver/compile_ahead.py: kernels become units in their order, whole and once."""

from __future__ import annotations

import pytest

from tilewright.codegen.text.comments import comment
from tilewright.driver import compile_ahead
from tilewright.driver.compile_ahead import CompileAhead
from tilewright.driver.lower_program import lower_program
from tilewright.runtime.toolchain.compile import Units
from tilewright.runtime.toolchain.library import SharedObject
from tilewright.tir.target.target import Target

from ..tiny_program import tiny

TARGET = Target.parse("c:scalar")
OBJECT = SharedObject(b"", None, "", 0.0, "scalar")


class Recorded(Units):
    """Units that are noted and not compiled."""

    def __init__(self) -> None:
        self.sources: list[str] = []

    def add(self, source: str, target: Target) -> None:
        assert target == TARGET
        self.sources.append(source)

    def link(self) -> SharedObject:
        return OBJECT


def compiled() -> tuple[list[str], list[str]]:
    """The sources of the tiny program, and what each of its definitions begins with."""
    units = Recorded()
    ahead = CompileAhead("tiny", TARGET, units)
    lowered = lower_program(tiny(), TARGET, made=ahead.add)
    made = ahead.finish(lowered.program)
    artifact = made.artifact
    assert artifact.texts == tuple(ahead.texts[f.name].text for f in lowered.program.functions)
    assert made.shared is OBJECT
    symbols = [*(kernel.symbol for kernel in artifact.kernels), artifact.symbol]
    return units.sources, [f"\nvoid {symbol}(" for symbol in symbols]


def test_a_small_program_is_one_unit() -> None:
    (source,), definitions = compiled()
    assert [source.count(text) for text in definitions] == [1] * len(definitions)


def test_a_full_unit_is_compiled_before_the_next_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_ahead, "UNIT", 1)
    sources, definitions = compiled()
    assert len(sources) == 4  # the three kernels with their prepare functions, then the entry
    whole = "".join(sources)
    assert [whole.count(text) for text in definitions] == [1] * len(definitions)
    assert sorted(definitions, key=whole.index) == definitions
    assert definitions[-1] in sources[-1]


def test_the_schedule_stands_above_the_kernel() -> None:
    (source,), _ = compiled()
    kernels = lower_program(tiny(), TARGET).kernels.values()
    traces = [kernel.steps for kernel in kernels]
    assert any(traces)
    assert all(f"/* {comment(steps[0])}\n" in source for steps in traces if steps)
