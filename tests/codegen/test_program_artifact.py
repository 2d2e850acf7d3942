from __future__ import annotations

import pytest

from tilewright.codegen.artifact import Entry, Parameter
from tilewright.codegen.program_artifact import ProgramArtifact
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.program.program import Launch, Sync
from tilewright.tir.target.target import Target

W, V = (Parameter(name, FLOAT32, (3,), "constant") for name in "WV")
X, Y = Parameter("X", FLOAT32, (2,), "input"), Parameter("Y", FLOAT32, (4,), "output")
MADE = ProgramArtifact(
    name="m",
    symbol="tw_model_m",
    target=Target.parse("c:scalar"),
    inputs=(X,),
    constants=(W, V),
    read=(1,),
    outputs=(Y,),
    kernels=(Entry("k", (X, Y)),),
    texts=("",),
    main="",
    body=(Launch("k", ()), Sync(), Launch("k", ())),
    arena_bytes=128,
    workspace_bytes=64,
    thread_workspace_bytes=192,
)


def test_its_entry_takes_inputs_then_constants_then_outputs() -> None:
    assert MADE.entry == Entry("tw_model_m", (X, V, Y), 192, 192)
    assert MADE.scratch_bytes(2) == 128 + 64 + 2 * 192


def test_its_kernels_are_found_by_symbol() -> None:
    assert MADE.kernel("k") is MADE.kernels[0]
    assert len(MADE.launches) == 2
    with pytest.raises(KeyError):
        MADE.kernel("l")
