from __future__ import annotations

from dataclasses import replace

from tilewright.runtime.model.report import (
    EngineReport,
    KernelReport,
    MemoryPlan,
)

PROOF = "proved (P1 to P5, 3 questions, 1.5 ms)"
CONV = KernelReport(
    "conv",
    "s1",
    ("n1", "n2"),
    "contraction",
    "tuned",
    PROOF,
    0.0015,
    "ok",
    0.1,
    0.25,
    "normal data",
)
RELU = KernelReport("relu", "s2", ("n3",), "elementwise", "rule", "unknown (P1 to P5, 0 questions)")
REPORT = EngineReport((CONV, RELU), ("a & b",), (("lower", 1.0),))


def test_a_report_counts_and_lists() -> None:
    assert str(REPORT) == (
        "kernels 2: tuned 1, default 1\n"
        "proofs: proved 1, unknown 1\n"
        "whole engine: check off\n"
        f"  conv x 2: contraction (tuned); {PROOF}; check ok (0.25 of the bound; normal data)\n"
        "  relu x 1: elementwise (rule); unknown (P1 to P5, 0 questions); check off\n"
        "note: a & b\n"
        "built in lower 1.00 s"
    )


def test_a_report_says_how_well_a_log_knows_a_schedule() -> None:
    report = EngineReport((replace(CONV, state="candidate"), RELU))
    assert str(report.coverage) == "kernels 2: candidate 1, default 1; 1 in the log"
    assert "conv x 2: contraction (tuned, candidate); proved" in str(report)
    assert "<td>contraction (tuned, candidate)</td>" in report._repr_html_()


def test_a_report_shows_itself_in_a_notebook() -> None:
    html = REPORT._repr_html_()
    assert html.count("<tr>") == 3
    assert "<td>0.25</td>" in html
    assert html.endswith(">1 note</summary><ul><li>a &amp; b</li></ul></details>")
    assert "<details" not in EngineReport((CONV,))._repr_html_()


def test_a_memory_plan_adds_up() -> None:
    plan = MemoryPlan(1 << 20, 3 << 10, 64, 128, 2 << 10, 5)
    assert plan.context_bytes(2) == (3 << 10) + 64 + 256
    assert plan.peak_bytes(2, 2) == (1 << 20) + 2 * plan.context_bytes(2)
    assert str(plan) == (
        "weights 1 MiB (shared) + arena 3 KiB (lower bound 2 KiB) + workspace 64 B + "
        "128 B per thread per context; kept to save: 5 B"
    )
    assert plan._repr_html_().startswith("<p>weights 1 MiB (shared)")


def test_a_plan_leaves_out_what_is_not_there() -> None:
    assert str(MemoryPlan(0, 0, 0, 0)) == "weights 0 B (shared) + arena 0 B per context"
