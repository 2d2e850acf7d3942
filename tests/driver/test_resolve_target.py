from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

import tilewright as tw
from tilewright.driver.resolve_target import resolve_target
from tilewright.runtime.cuda.device import availability
from tilewright.runtime.cuda.device.availability import Available, NoDevice, Unavailable
from tilewright.runtime.machine.host import host_target
from tilewright.tir.target.target import ISAS, Target

from ..schedule.programs import chain


def test_nothing_and_c_are_the_cpu_that_is_here() -> None:
    assert resolve_target(None) == resolve_target("c") == host_target()
    scalar = Target.parse("c:scalar")
    assert resolve_target("c:scalar") == scalar
    assert resolve_target(scalar) is scalar


def test_an_open_target_is_this_machine_s_but_for_what_it_gives() -> None:
    here = host_target()
    assert resolve_target(Target("c")) == resolve_target(Target.parse("c")) == here
    assert resolve_target(Target("c", threads=7)) == replace(here, threads=7)
    small = resolve_target(Target("c", l1_bytes=1 << 10, clock_ghz=1.5))
    assert small == replace(here, l1_bytes=1 << 10, clock_ghz=1.5)
    assert str(small) == str(here)


@pytest.mark.parametrize("isa", ISAS)
def test_a_target_with_an_instruction_set_is_complete(isa: str) -> None:
    target = Target("c", isa=isa, threads=7)
    assert resolve_target(target) is target


@pytest.mark.needs_cc
@pytest.mark.parametrize("target", [Target("c", threads=2), "c", None])
def test_an_open_target_is_built_and_proved_for_this_machine(target: Target | str | None) -> None:
    assert tw.build(chain(4, 64), target).artifact.target.isa == host_target().isa
    assert tw.prove(chain(4, 64), target).status == "proved"


def test_cuda_alone_is_the_gpu_that_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    none = Unavailable("nothing is here", "buy one.")
    monkeypatch.setattr(availability, "availability", lambda: none)
    with pytest.raises(NoDevice) as refusal:
        resolve_target("cuda")
    assert str(refusal.value) == (
        "NoDevice: cuda: nothing is here. [cuda-unavailable]\n  Hint: buy one."
    )
    found = Available(None, (SimpleNamespace(arch="sm_86"),))  # type: ignore[arg-type]
    monkeypatch.setattr(availability, "availability", lambda: found)
    assert resolve_target("cuda") == Target.parse("cuda:sm_86")
    assert resolve_target(Target("cuda", threads=3)) == Target("cuda", "sm_86", threads=3)
