"""What the numeric checks find, and what they say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.artifact import Artifact, Parameter
from tilewright.driver import lower
from tilewright.driver.check.chain import check_chain
from tilewright.driver.check.check import CheckError, check_kernel
from tilewright.driver.interpreted import interpreted
from tilewright.runtime.arrays import Array
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.kernel_code import Code
from tilewright.schedule.verdict import Failure, Iteration, Verdict
from tilewright.tir.target.target import Target


def scaled(factor: float, name: str = "scaled") -> tw.PrimFunc:
    x = te.placeholder((4,), "float32", name="X")
    return te.func(x, te.compute((4,), lambda i: x[i] * factor, name="Y"), name=name)


class Overrunning(Code):
    """Code that writes one element too many."""

    def run(self, arrays: Sequence[Array], threads: int) -> None:
        x, y = arrays
        longer = np.lib.stride_tricks.as_strided(y, shape=(5,))
        longer[:4] = x * np.float32(2)
        longer[4] = 0


def test_a_right_kernel_passes_and_tells_its_error() -> None:
    func = scaled(2.0)
    comparison = check_kernel(interpreted(func, Target.parse("python"), {}), func, {})
    assert comparison
    assert comparison.ratio == 0.0


def test_a_wrong_kernel_is_found_with_its_worst_element() -> None:
    kernel = interpreted(scaled(3.0), Target.parse("python"), {})
    with pytest.raises(CheckError) as caught:
        check_kernel(kernel, scaled(2.0), {})
    assert str(caught.value) == (
        "CheckError: check: the results of kernel 'scaled' differ from its reference: "
        "max error / bound 1.47e+06 at Y[2]: got -1.27971482, expected -0.853143215 "
        "within 2.89e-07 [check-differs]"
    )


def test_a_write_outside_of_an_array_is_found() -> None:
    func = scaled(2.0)
    parameters = tuple(Parameter(p.name, p.dtype, p.buffer.shape, p.role) for p in func.parameters)
    artifact = Artifact("scaled", "scaled", "", Target.parse("python"), parameters)
    with pytest.raises(CheckError) as caught:
        check_kernel(Kernel(artifact, Overrunning()), func, {})
    assert str(caught.value) == (
        "CheckError: check: kernel 'scaled': it wrote outside of 'Y'. [check-fence]"
    )


def test_a_canonical_form_of_another_value_is_found() -> None:
    with pytest.raises(CheckError) as caught:
        check_chain(scaled(2.0), scaled(3.0))
    assert str(caught.value) == (
        "CheckError: check: the schedule of 'scaled' changes the value of 'Y'. [check-chain]"
    )


def test_a_refuted_proof_stops_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = Failure("P1", "a point runs twice", (Iteration("Y", (("i", 0),)),), "Y[0]")
    monkeypatch.setattr(lower, "prove", lambda *given: Verdict("refuted", (failure,)))
    with pytest.raises(tw.TilewrightError) as caught:
        tw.build(scaled(2.0), "c:scalar")
    assert str(caught.value) == (
        "InternalError: proof: the nest of 'scaled' does not compute what it defines: "
        "P1: a point runs twice; Y(i=0). [proof-refuted]\n"
        "  in scaled:\n"
        "  def scaled(X: float32[4], Y: output(float32[4])):\n"
        "      for i in range(4):\n"
        '          with block("Y", vi=spatial(4, i)):\n'
        "              Y[vi] = X[vi] * 2.0\n"
        "  Hint: this is a defect of tilewright; please report it with the program that led here."
    )
