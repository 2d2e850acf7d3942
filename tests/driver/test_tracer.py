"""The tracer kernel at full size: a hand-written schedule reaches the form of the best known
kernels.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver.lower import lower_function
from tilewright.tir.reference.error_bound import reference
from tilewright.tir.stmt import Block, Role
from tilewright.tir.target.target import Target
from tilewright.tir.visit import blocks, loads, stores

from ..isas import reads_x86
from .assembly import innermost_loops, spills

ROOT = Path(__file__).parents[2]
TRACER = runpy.run_path(str(ROOT / "benchmarks" / "subjects" / "gelu_matmul.py"))
SHAPES = TRACER["SHAPES"]
TARGET = Target.parse("c:avx512")


def scheduled(shape: tuple[int, int, int]) -> tw.Schedule:
    return tw.Schedule(TRACER["gelu_matmul"](*shape)).apply(TRACER["fast"])


def constants(shape: tuple[int, int, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    _, columns, inner = shape
    weights = rng.standard_normal((inner, columns), dtype=np.float32) / np.float32(inner**0.5)
    return {"W": weights, "bias": rng.standard_normal(columns, dtype=np.float32)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_nest_of_the_tracer_is_proved(shape: tuple[int, int, int]) -> None:
    verdict = lower_function(scheduled(shape), TARGET).verdict
    assert verdict.status == "proved"


def test_the_tile_is_stored_by_two_blocks_loaded_by_two_and_ends_in_gelu() -> None:
    nest = lower_function(scheduled(SHAPES[0]), TARGET).nest
    found = []
    for block in blocks(nest.body):
        (store,) = stores(block.body)
        touches_y = store.buffer.name == "Y" or any(x.buffer.name == "Y" for x in loads(block.body))
        if block.family != "W_packed" and touches_y:
            found.append(how(block))
    # K block 0 stores; block 1 loads and stores; block 2 loads and stores what GELU makes of it
    assert found == ["store", "load", "store", "load", "gelu"]


def how(block: Block) -> str:
    """What a block does with Y."""
    (store,) = stores(block.body)
    if block.role is not Role.COPY:
        assert "erf" in str(store.value) or block.name == "Y"
        return "gelu"
    return "store" if store.buffer.name == "Y" else "load"


def test_edges_are_cut_late_into_variants_without_guards() -> None:
    text = str(lower_function(scheduled(SHAPES[1]), TARGET).nest)
    guards = set(re.findall(r"where\((.*)\)", text))
    # all that is left is the mask of the last vector of the last panel: 1021 = 21 * 48 + 13
    assert {re.sub(r"\w+ <", "lane <", guard) for guard in guards} == {"lane < 13"}
    assert "if j_0 < 21:" in text


@pytest.mark.sampled(2)
@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("shape", SHAPES)
def test_the_tracer_equals_its_reference_with_the_same_bits_on_any_number_of_threads(
    shape: tuple[int, int, int],
) -> None:
    bound = constants(shape)
    kernel = tw.build(scheduled(shape), constants=bound, verify="off")
    x = np.random.default_rng(2).standard_normal((shape[0], shape[2]), dtype=np.float32)
    results = [kernel(x, threads=threads) for threads in (1, 2, 3)]
    comparison = reference(kernel_func(shape), {"X": x, **bound}).compare({"Y": results[0]})
    assert comparison, str(comparison)
    assert all(result.tobytes() == results[0].tobytes() for result in results)


def kernel_func(shape: tuple[int, int, int]) -> tw.PrimFunc:
    return TRACER["gelu_matmul"](*shape)


@reads_x86
@pytest.mark.isa
@pytest.mark.needs_cc
def test_the_micro_kernel_keeps_its_tile_in_registers() -> None:
    kernel = tw.build(scheduled(SHAPES[0]), TARGET, constants=constants(SHAPES[0]), verify="off")
    inner = innermost_loops(kernel.assembly, 24)
    assert len(inner) == 3  # one per K block
    assert not any(map(spills, inner))
