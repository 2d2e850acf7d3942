"""runtime/foreign.py: a kernel for another kind of processor has a source and refuses to run."""

from __future__ import annotations

import pickle
import platform

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.compile import assembly
from tilewright.runtime.host import is_foreign
from tilewright.tir.errors import TargetError
from tilewright.tir.target import Target

from ..schedule.programs import chain

NEON = Target.parse("c:neon")


@pytest.fixture(autouse=True)
def _on_x86(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


def test_what_is_foreign_depends_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_foreign(NEON)
    assert not is_foreign(Target.parse("c:avx2"))
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert not is_foreign(NEON)
    assert is_foreign(Target.parse("c:avx2"))
    assert not is_foreign(Target.parse("c:scalar"))


def test_a_kernel_for_neon_has_a_source_and_a_proof_but_does_not_run() -> None:
    kernel = pickle.loads(pickle.dumps(tw.build(chain(2, 8), "c:neon")))
    assert "#include <arm_neon.h>" in kernel.source
    assert kernel.proof.status == "proved"
    x, bias = np.ones((2, 8), np.float32), np.ones(8, np.float32)
    with pytest.raises(TargetError) as caught:
        kernel(x, bias)
    assert str(caught.value) == (
        "TargetError: run: 'chain' is for c:neon, another kind of processor than this machine's. "
        "[run-foreign]\n"
        "  Hint: kernel.source is its C, to be compiled there; target 'c' is this machine."
    )


def test_nothing_is_compiled_for_another_kind_of_processor() -> None:
    with pytest.raises(TargetError) as caught:
        assembly("int x;", NEON)
    assert str(caught.value) == (
        "TargetError: compile: 'kernel' is for c:neon, another kind of processor than this "
        "machine's. [compile-foreign]\n"
        "  Hint: target 'c' is this machine; tw.build(func, target).source is the C text."
    )
