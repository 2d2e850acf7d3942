from __future__ import annotations

from types import SimpleNamespace

import pytest

from tilewright.driver.resolve_target import resolve_target
from tilewright.runtime.cuda import availability
from tilewright.runtime.cuda.availability import Available, NoDevice, Unavailable
from tilewright.runtime.host import host_target
from tilewright.tir.target import Target


def test_nothing_and_c_are_the_cpu_that_is_here() -> None:
    assert resolve_target(None) == resolve_target("c") == host_target()
    scalar = Target.parse("c:scalar")
    assert resolve_target("c:scalar") == scalar
    assert resolve_target(scalar) is scalar


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
    assert str(resolve_target("cuda")) == "cuda:sm_86"
