"""cli/demo/demo.py: a real model on the fast path; a tiny one and advice without a compiler."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tilewright.cli.demo import demonstration
from tilewright.cli.demo.demo import WAYS
from tilewright.cli.demo.demonstration import Demonstration
from tilewright.cli.demo.text import lines
from tilewright.graph.samples.samples import tiny_model

from ..conftest import Command
from ..fake_peer import FakePeer

LABELS = (
    *("tilewright", "model", "compiled", "fused", "proved", "checked", "memory", "latency"),
    *("beside", "source", "next"),
)


@pytest.fixture(scope="module")
def demo() -> Demonstration:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demonstration, "installed", lambda: (FakePeer(),))
        return Demonstration.make(tiny_model(), timing=0.02)


@pytest.mark.needs_cc
def test_a_demonstration_says_everything_that_was_promised(demo: Demonstration) -> None:
    parts = {label: "\n".join(text) for label, *text in lines(demo)}
    assert tuple(parts) == LABELS
    assert "6 nodes" in parts["model"]
    assert re.search(r"in [\d.]+ s.*: 4 launches of 4 kernels", parts["compiled"])
    assert "1 groups of nodes run as one kernel each: 1 x Conv+Relu" in parts["fused"]
    assert parts["proved"].startswith("4 proved, 0 proved under assumptions, 0 unknown; in ")
    assert parts["checked"].startswith("4 of 4 kernels, on poisoned data: largest error 0.")
    assert re.search(r"equal within \de-0\d of the largest value; same class", parts["checked"])
    assert re.match(r"peak [\d.]+ KiB on \d thread\(s\), promised", parts["memory"])
    assert re.search(r"^ +1 +[\d.]+ [mun]s .* of \d+$", parts["latency"], re.MULTILINE)
    first, second, *_ = parts["beside"].splitlines()
    assert re.fullmatch(r"NumPy in float64, node by node: [\d.]+ [mun]s a run", first)
    timed = r"fake on 1 thread\(s\), in turns with ours: [\d.]+ [mun]s, \d+\.\d\d times ours"
    assert re.fullmatch(timed, second)
    source = demo.source.read_text(encoding="utf-8")
    assert str(demo.source) in parts["source"]
    assert f"void {demo.slowest.kernel}(void *const *args" in source
    assert "#include" in source


@pytest.mark.needs_cc
def test_what_cannot_be_timed_beside_it_is_told(
    demo: Demonstration, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beside(*peers: FakePeer) -> list[str]:
        monkeypatch.setattr(demonstration, "installed", lambda: peers)
        found = demonstration.compare(demo.engine, demo.sample, (1,), 0.02)
        return next(t for label, _, *t in lines(replace(demo, beside=found)) if label == "beside")

    assert beside() == []
    assert beside(FakePeer(error=1.0)) == [
        "on 1 thread(s) another result than ours, so nothing is timed"
    ]
    assert beside(FakePeer(refusal=ValueError("no Conv"))) == [
        "bench: fake 9.9 cannot run this model: no Conv"
    ]
    assert "has the shape" in beside(FakePeer(axes=1))[0]


@pytest.mark.slow
@pytest.mark.needs_cc
def test_the_demo_is_a_page_about_a_real_model(tilewright: Command) -> None:
    done = tilewright("demo")
    assert (done.code, done.err) == (0, "")
    shown = done.out.splitlines()
    assert len(shown) < 40
    assert tuple(re.findall(r"^(\w+) ", done.out, re.MULTILINE)) == LABELS
    assert "SqueezeNet 1.1" in done.out
    assert re.search(r"checked +(\d+) of \1 kernels", done.out)
    assert "0 unknown" in done.out


def test_without_a_compiler_the_first_and_the_last_line_say_how_to_get_one(
    tilewright: Command, no_compiler: None
) -> None:
    done = tilewright("demo")
    assert (done.code, done.err) == (0, "")
    first, *middle, last = done.out.splitlines()
    for way in WAYS:
        command = way.partition(": ")[2].partition("{python}")[2] or way
        assert command in first
        assert command in last
    assert first.startswith("No C compiler was found: ")
    assert re.search(r"equal within \de-0\d", "\n".join(middle))


def test_a_compiler_that_does_not_run_is_named(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    done = tilewright("demo")
    assert done.code == 0
    assert done.out.startswith("$CC does not run: ")


def test_a_compiler_that_cannot_compile_is_treated_as_none(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "false-compiler")
    monkeypatch.setattr("tilewright.runtime.cpu.pool.pool_source", lambda: "#include <no_such.h>\n")
    monkeypatch.delenv("CC")
    done = tilewright("demo")
    assert done.code == 0
    assert done.out.startswith("The C compiler that was found does not work: ")
