"""Facts of the sizes of a call: what a function states, who checks it, and what the proof makes of
it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.codegen.artifact import sizes_of
from tilewright.driver.build import prove
from tilewright.driver.check.budget import checked_sizes
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.verdict import PROVED, REFUTED
from tilewright.tir.analysis.facts import agree, fact_at
from tilewright.tir.analysis.specialise import specialise
from tilewright.tir.dim import Dim
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.errors import IRError
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.program.program import Launch, Program, ProgramTensor, Slice
from tilewright.tir.program.syncs import verify_program
from tilewright.tir.sizes import AnySize, size_of
from tilewright.tir.te import te
from tilewright.tir.text.canonical import workload_key
from tilewright.tir.text.equal import equal
from tilewright.tir.verify.verify import Stage, VerificationError, verify

N, M = Dim("n", low=3, high=21), Dim("m", low=1, high=10, typical=4)


def pairs(*facts: te.Expr) -> PrimFunc:
    """Sums of two neighbours and the one behind, at every second element."""
    x = te.placeholder((N,), "float32", name="X")
    y = te.compute((M,), lambda i: x[2 * i] + x[2 * i + 1] + x[2 * i + 2], name="Y")
    return replace(te.func(x, y, name="pairs", sizes=[M]), facts=facts)


FITS = N - 2 * M - 1


def test_a_fact_is_a_form_of_the_dims() -> None:
    assert fact_at(FITS, {N: 9, M: 4}) == 0
    assert agree((FITS,), {N: 9, M: 4})
    assert not agree((FITS,), {N: 8, M: 4})
    n = size_of(N)
    assert fact_at(FITS, {N: n, M: (n - 1) // 2}) == n - 2 * ((n - 1) // 2) - 1


@pytest.mark.parametrize(
    ("facts", "verdict"), [((FITS,), PROVED), ((), REFUTED), ((N - 2 * M,), REFUTED)]
)
def test_the_proof_goes_by_what_is_stated_and_no_further(
    facts: tuple[te.Expr, ...], verdict: str
) -> None:
    assert prove(Schedule(pairs(*facts))).status == verdict


def test_it_is_printed_and_read_and_part_of_what_a_function_is() -> None:
    func = pairs(FITS)
    assert "    assume(n - 2 * m - 1 >= 0)\n" in str(func)
    assert equal(parse(str(func)), func)
    assert not equal(parse(str(func)), pairs())
    keys = {workload_key(pairs(*facts)) for facts in ((), (FITS,), (N - 2 * M,))}
    assert len(keys) == 3


def test_sizes_that_do_not_belong_together_are_refused() -> None:
    assert specialise(pairs(FITS), {N: 9, M: 4}).inputs[0].shape == (9,)
    with pytest.raises(IRError) as caught:
        specialise(pairs(FITS), {N: 9, M: 5})
    assert str(caught.value) == (
        "IRError: specialise: the sizes n 9, m 5 of 'pairs' do not belong together; expected "
        "n - 2 * m - 1 >= 0. [specialise-facts]"
    )


def test_a_kernel_is_tried_at_sizes_that_belong_together() -> None:
    tried = checked_sizes(pairs(FITS))
    assert {N: 3, M: 1} in tried
    assert {N: 3, M: 10} not in tried
    assert all(agree((FITS,), sizes) for sizes in tried)


def test_no_array_of_a_call_tells_what_facts_tie_together() -> None:
    assert [size.parameter for size in sizes_of(pairs(FITS))] == [None, None]
    assert [size.parameter for size in sizes_of(pairs())] == [0, 1]


def test_a_fact_of_something_else_is_refused() -> None:
    with pytest.raises(VerificationError) as caught:
        verify(pairs(N * M - 1), Stage.TENSOR)
    assert str(caught.value).splitlines()[0] == (
        "VerificationError: verify: a fact is n * m - 1; expected a linear form of the function's "
        "dims. [verify-fact]"
    )


def launching(n: AnySize, m: AnySize) -> Program:
    """A program that launches the function at these sizes."""
    x, y = (Slice(space, 0, FLOAT32, (size,)) for space, size in (("input", n), ("output", m)))
    tensors = [ProgramTensor(name, FLOAT32, (size,)) for name, size in (("x", n), ("y", m))]
    launch = Launch("pairs", (x, y), sizes=(n, m))
    return Program("p", (tensors[0],), (tensors[1],), (), (pairs(FITS),), (launch,), 0)


def test_a_program_sees_to_facts_for_all_sizes_of_a_run() -> None:
    n = size_of(N)
    verify_program(launching(n, (n - 1) // 2))
    with pytest.raises(IRError) as caught:
        verify_program(launching(n, n // 2))
    assert str(caught.value) == (
        "IRError: program: 'pairs' takes sizes of which n - 2 * m - 1 is 0 or more; got n, n//2, "
        "where it is n - 2*(n//2) - 1. [program-size-fact]"
    )
