from __future__ import annotations

import pytest

from tilewright.runtime.cuda.driver.architecture import capability_of, runs_on
from tilewright.tir.target.gpu import GPUS


@pytest.mark.parametrize(
    ("arch", "capability", "runs"),
    [
        ("sm_80", (8, 0), True),
        ("sm_80", (8, 6), True),
        ("sm_86", (8, 0), False),
        ("sm_80", (9, 0), False),
        ("sm_90a", (9, 0), True),
        ("sm_100", (12, 0), False),
    ],
)
def test_machine_code_runs_on_its_own_major_version(
    arch: str, capability: tuple[int, int], runs: bool
) -> None:
    assert runs_on(arch, capability) == runs


def test_every_architecture_names_a_capability() -> None:
    assert [capability_of(arch) for arch in GPUS] == [
        *((8, 0), (8, 6), (8, 9), (9, 0), (9, 0), (10, 0), (12, 0)),
    ]
