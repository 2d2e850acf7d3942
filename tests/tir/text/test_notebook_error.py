"""tir/text/notebook_error.py: the message once, hints first, an arrow at the loop, no frame of
ours.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tilewright import te
from tilewright.schedule.schedule import Schedule
from tilewright.tir.errors import InternalError, TilewrightError
from tilewright.tir.func import PrimFunc
from tilewright.tir.text.notebook_error import mark_loop


def chain() -> PrimFunc:
    """A product, and what comes behind it: two loops are called i, two j."""
    A = te.placeholder((8, 16), "float32", name="A")
    B = te.placeholder((16, 4), "float32", name="B")
    k = te.reduce_axis(16, name="k")
    C = te.compute((8, 4), lambda i, j: te.sum(A[i, k] * B[k, j], k), name="C")
    D = te.compute((8, 4), lambda i, j: te.exp(C[i, j]), name="D")
    return te.func(A, B, D, name="chain")


def raised(call: Callable[[], object]) -> TilewrightError:
    with pytest.raises(TilewrightError) as caught:
        call()
    return caught.value


def refusal() -> TilewrightError:
    schedule = Schedule(chain())
    return raised(lambda: schedule.vectorize(schedule.loops("C")[2]))


def test_a_refusal_says_what_to_do_and_points_at_the_loop() -> None:
    assert refusal()._notebook_text() == (
        "ScheduleError: vectorize: iterations of loop 'k' write the same element: block 'C' "
        "reduces over it. [loop-conflict]\n"
        "  Hint: choose a loop over an axis of 'C' that is not reduced.\n"
        "  Note: iterations (i=0, j=0, k=0) and (i=0, j=0, k=1) both write C[0, 0].\n"
        "  in chain:\n"
        "  def chain(A: float32[8, 16], B: float32[16, 4], D: output(float32[8, 4])):\n"
        '      C = alloc(float32[8, 4], "global")\n'
        "      for i in range(8):\n"
        "          for j in range(4):\n"
        "  -->         for k in range(16):\n"
        '                  with block("C", vi=spatial(8, i), vj=spatial(4, j), '
        "vk=reduce(16, k)):\n"
        "                      ... 7 more lines"
    )


def test_of_loops_of_one_name_that_around_the_block_is_meant() -> None:
    where = f"in chain:\n{chain()}"
    marked = [line for line in mark_loop(where, "a loop 'i' of block 'D'") if "-->" in line]
    assert marked == ["--> for i in range(8):"]
    assert mark_loop(where, "loop 'i'") == where.rstrip("\n").split("\n")


def test_a_block_is_marked_where_no_loop_is_named() -> None:
    (marked,) = (line for line in mark_loop(str(chain()), "block 'D' is") if "-->" in line)
    assert marked.lstrip("-> ").startswith('with block("D"')
    assert mark_loop(str(chain()), "nothing is named") == str(chain()).rstrip("\n").split("\n")


def test_of_several_loops_the_one_that_is_named_first_is_marked() -> None:
    where = str(chain())
    marked = [
        line for line in mark_loop(where, "loop 'k' and loop 'i' of block 'C'") if "-->" in line
    ]
    assert [line.lstrip("-> ") for line in marked] == ["for k in range(16):"]


def test_nothing_is_marked_where_two_blocks_may_be_meant_or_there_is_no_margin() -> None:
    twice = str(chain()) + str(chain())
    assert mark_loop(twice, "block 'D' is") == twice.rstrip("\n").split("\n")
    bare = "for i in range(2):\n    pass"
    assert mark_loop(bare, "loop 'i'") == bare.split("\n")


def test_a_short_program_is_shown_whole() -> None:
    where = "def f():\n    for i in range(2):\n        pass\n"
    assert mark_loop(where, "loop 'i'") == ["def f():", "--> for i in range(2):", "        pass"]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    shell = InteractiveShell(colors="nocolor")
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    return shell


def test_ipython_shows_the_callers_frames_and_the_message_once(shell: InteractiveShell) -> None:
    shown = "\n".join(refusal()._render_traceback_())
    assert "in raised(call)" in shown
    assert "schedule/recorder.py" not in shown
    assert "schedule/schedule.py" not in shown
    assert "ScheduleError: ScheduleError" not in shown
    assert shown.endswith(refusal()._notebook_text())


def test_frames_of_a_defect_of_ours_are_shown(shell: InteractiveShell) -> None:
    defect = InternalError("a pass failed.", code="test-internal")
    namespace = {"__name__": "tilewright.some.module", "defect": defect}
    exec("def step():\n    raise defect", namespace)
    error = raised(namespace["step"])  # type: ignore[arg-type]
    assert ", in step()" in "\n".join(error._render_traceback_())


def test_without_ipython_the_callers_frames_and_the_text_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    *frames, text = refusal()._render_traceback_()
    assert text == refusal()._notebook_text()
    assert frames
    assert not any("schedule.py" in frame for frame in frames)
