"""Faults planted in the text of emitted kernels are found by the emulation, each one: by what it
reports, or by the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.cuda.artifact import CudaArtifact
from tilewright.runtime.cuda.emulator.emulator import emulate
from tilewright.runtime.cuda.emulator.report import EmulationReport

from ...schedule.grids import products_of_warps, tiled
from ...schedule.programs import matmul
from .test_emit import A100, PROGRAMS, built, numbers
from .test_warp_sums import Case as Product

pytestmark = pytest.mark.needs_cxx

BARRIER = "__syncthreads();"
STORED_IF = r"\bif \((.*)\) \{(?=\n +(?:const int .*;\n +)*\w+\[.*\] = )"
Case = tuple[CudaArtifact, tuple[np.ndarray, ...], np.ndarray]


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    made = {}
    for name, (func, steps, expected, arrays) in PROGRAMS.items():
        artifact = built(func, steps).artifact
        assert isinstance(artifact, CudaArtifact)
        made[name] = artifact, arrays, expected(*arrays)
    return made


def run(case: Case, source: str) -> tuple[EmulationReport, bool]:
    """Run a source in the place of an artifact's own; what is reported, and is the result right?"""
    artifact, given, expected = case
    parameters = artifact.run.parameters
    inputs = [p.name for p in parameters if p.role == "input"]
    arrays = dict(zip(inputs, given, strict=True))
    places = (*(p for p in parameters if p.name not in inputs), *artifact.run.temporaries)
    arrays |= {place.name: np.zeros(place.shape, place.dtype.numpy) for place in places}
    report = emulate(source, artifact.run.launches, arrays, checked=True)
    (output,) = (p.name for p in parameters if p.role == "output")
    return report, np.array_equal(arrays[output], expected)


def without(source: str, what: str, instead: str) -> Iterator[str]:
    """The source with one place changed at a time."""
    for match in re.finditer(what, source):
        yield source[: match.start()] + match.expand(instead) + source[match.end() :]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_barriers_of_an_emitted_kernel_are_needed(name: str, cases: dict[str, Case]) -> None:
    report, right = run(cases[name], cases[name][0].source)
    assert report, str(report)
    assert right
    assert len(report.barriers) == cases[name][0].source.count(BARRIER)
    idle = [barrier for barrier in report.barriers if not barrier.needed]
    assert not idle


def test_a_barrier_is_needed_just_where_removing_it_is_a_race(cases: dict[str, Case]) -> None:
    needed, races = [], []
    for case in cases.values():
        needed += [barrier.needed > 0 for barrier in run(case, case[0].source)[0].barriers]
        for source in without(case[0].source, re.escape(BARRIER), ""):
            kinds = {finding.kind for finding in run(case, source)[0].findings}
            assert kinds <= {"race", "unwritten"}
            races.append("race" in kinds)
    assert races == needed
    assert sum(races) > 3


def test_each_removed_bound_of_a_store_is_found(cases: dict[str, Case]) -> None:
    found = []
    for case in cases.values():
        for source in without(case[0].source, STORED_IF, r"if (true || (\1)) {"):
            report, right = run(case, source)
            assert not report or not right, source
            found.append(report.findings[0].kind if not report else "value")
    assert len(found) > 10
    assert set(found) <= {"out-of-bounds", "race", "value"}


def ahead(stages: int) -> Case:
    """A product whose slices are fetched ahead."""
    artifact = built(matmul(16, 16, 24), tiled(depth=4, stages=stages)).artifact
    assert isinstance(artifact, CudaArtifact)
    given = numbers(16, 24), numbers(24, 16)
    return artifact, given, given[0] @ given[1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stages", [2, 3])
def test_a_wait_for_too_few_copies_is_found(stages: int) -> None:
    case = ahead(stages)
    assert run(case, case[0].source) == (run(case, case[0].source)[0], True)
    wait = f"tw_cp_async_wait<{stages - 2}>();\n"
    assert case[0].source.count(wait) == 2
    found = []
    for instead in ("", f"tw_cp_async_wait<{stages - 1}>();\n", "tw_cp_async_wait<7>();\n"):
        for source in without(case[0].source, re.escape(wait), instead):
            report, right = run(case, source)
            found += [finding.kind for finding in report.findings]
            assert not report or not right, source
    assert "early" in found
    assert set(found) <= {"early", "race"}  # what comes later meets other threads


def test_a_group_that_is_not_ended_is_found() -> None:
    case = ahead(3)
    for source in without(case[0].source, r"tw_cp_async_commit\(\);(?=\n +\S)", ""):
        report, right = run(case, source)
        assert not report or not right, source


def test_a_wrong_place_in_shared_memory_is_found() -> None:
    """Rows of a factor that a warp loads from another place, or stores to one."""
    product = Product("mma_m16n8k16_f16", transposed=True)
    steps = products_of_warps(product.intrinsic, 16, warps=(1, 1), tiles=(1, 2), stages=2)
    kernel = built(product.func(16, 16, 128), steps)
    artifact = kernel.artifact
    assert isinstance(artifact, CudaArtifact)
    a, b, expected = product.arrays(16, 16, 128)
    case = artifact, (a, b), expected
    assert run(case, artifact.source)[1]
    changed = [
        *without(artifact.source, r"\(tx & 7\) \* 40", "(tx & 7) * 48"),
        *without(artifact.source, r"\(tx & 7\) \* 40", "(tx & 3) * 40"),
        *without(
            artifact.source, r"\(A_cache_part, A_cache_part_1", "(A_cache_part_1, A_cache_part"
        ),
        *without(artifact.source, r"k_0 & 1", "0"),
    ]
    assert len(changed) > 5
    for source in changed:
        report, right = run(case, source)
        assert not report or not right, source


@pytest.mark.slow
def test_a_wrong_swizzle_is_found() -> None:
    """Each place at which pieces of a row are put, or looked for, in another order."""
    product = Product("mma_m16n8k16_f16", transposed=True)
    artifact = tw.build(product.func(16, 32, 64), A100).artifact
    assert isinstance(artifact, CudaArtifact)
    a, b, expected = product.arrays(16, 32, 64)
    case = artifact, (a, b), expected
    report, right = run(case, artifact.source)
    assert report, str(report)
    assert right
    body = artifact.source.index("__global__")
    places = artifact.source[body:].count("tw_swizzled<3, 6, 7>(")
    assert places >= 4
    head, text = artifact.source[:body], artifact.source[body:]
    for instead in ("tw_swizzled<3, 5, 7>(", "tw_swizzled<3, 6, 1>(", "("):
        for source in without(text, r"tw_swizzled<3, 6, 7>\(", instead):
            report, right = run(case, head + source)
            assert not report or not right, source
