"""cli/compare/text.py: the page of `bench`, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tilewright.cli.compare.comparison import ThreadComparison
from tilewright.cli.compare.peers import PEERS
from tilewright.cli.compare.text import BenchReport
from tilewright.runtime.measure.rounds import Rounds
from tilewright.runtime.model.verification import OutputReport, Report

CONDITIONS = {
    "date": "2026-11-22",
    "cpu": "AMD EPYC",
    "isa": "avx512",
    "compiler": "cc (Debian 12.2.0-14) 12.2.0",
    "python": "3.11.7",
    "numpy": "2.4.6",
    "tilewright": "0.1.0",
    "onnxruntime": "1.31.1",
    "openvino": "2026.4.1",
}
DRIFT = (1.0, 1.1, 1.0, 1.3, 1.2, 1.0, 1.05)  # of the machine, from round to round


def rounds(onnxruntime: float, openvino: float, repeated: int = 0) -> Rounds:
    """Ours takes 10 ms in a calm round, with one late call; the peers' times are over ours, and
    shake by 2 %.
    """
    ours = [(0.010 * speed, 0.010 * speed, 0.015 * speed) for speed in DRIFT]

    def peer(ratio: float) -> tuple[tuple[float, ...], ...]:
        shake = [0.98, 1.02, 1.0, 0.99, 1.01, 1.0, 1.0]
        return tuple(
            tuple(ratio * by * call for call in calls)
            for calls, by in zip(ours, shake, strict=True)
        )

    seconds = {
        "tilewright": tuple(ours),
        "onnxruntime": peer(onnxruntime),
        "openvino": peer(openvino),
    }
    return Rounds(seconds, (50.0,) * 7, repeated)


def report(system: str, *shares: float) -> Report:
    outputs = (
        OutputReport(f"y{number}", share * 1e-5, share, (0, number))
        for number, share in enumerate(shares)
    )
    return Report(system, tuple(outputs))


def comparison(*blocks: ThreadComparison) -> BenchReport:
    return BenchReport(
        "small(x: float32[1, 8]) -> y0: float32[1, 4], y1: float32[1, 4]",
        "c:avx512",
        "random, seed 0",
        "1e-04 (float32) of an output's largest magnitude",
        CONDITIONS,
        tuple(PEERS.values()),
        blocks,
    )


EQUAL = (report("onnxruntime", 0.01, 0.02), report("openvino", 0.03, 0.0))
DIFFERENT = (report("onnxruntime", 0.01, 0.02), report("openvino", 2.5, 0.5))


def test_the_page_shows_a_win_a_loss_and_a_tie_alike(golden: Callable[[str, str], None]) -> None:
    found = comparison(
        ThreadComparison(1, EQUAL, rounds(1.25, 0.9)),
        ThreadComparison(2, EQUAL, rounds(1.005, 1.1, repeated=3)),
        ThreadComparison(4, EQUAL, rounds(0.8, 0.801)),
    )
    assert found.is_equal
    golden("cli/bench.txt", str(found))
    lines = [line.split() for line in str(found).splitlines()]
    verdicts = [(line[0], line[-1]) for line in lines if line[-1] in ("win", "loss", "tie")]
    assert verdicts == [
        ("onnxruntime", "win"),
        ("openvino", "loss"),
        ("onnxruntime", "tie"),
        ("openvino", "win"),
        ("onnxruntime", "loss"),
        ("openvino", "loss"),
    ]


def latency_of(found: Rounds) -> list[list[str]]:
    """The cells of the page's table of times and of that of ratios."""
    page = str(comparison(ThreadComparison(1, EQUAL, found)))
    return [line.split() for line in page.partition("latency")[2].splitlines()[1:]]


def test_the_slower_calls_are_told_where_there_are_a_hundred() -> None:
    few = rounds(1.25, 0.9)
    assert latency_of(few)[0] == ["system", "median", "95", "%", "interval", "p50"]
    many = Rounds({name: tuple(c * 5 for c in parts) for name, parts in few.seconds.items()})
    heads, ours, *_ = latency_of(many)
    assert heads[-3:] == ["p50", "p95", "p99"]
    assert ours[-6:] == ["12", "ms", "18", "ms", "19.5", "ms"]


def test_a_ratio_of_disturbed_rounds_is_not_told() -> None:
    calm = rounds(1.25, 0.9)
    slow = [0.6, 0.6, 3.5, 3.5, 3.5, 3.5, 0.6]
    parts = zip(calm.seconds["onnxruntime"], slow, strict=True)
    shaken = tuple(tuple(by * call for call in calls) for calls, by in parts)
    found = latency_of(Rounds({**calm.seconds, "onnxruntime": shaken}))
    (row,) = [cells for cells in found if cells[0] == "onnxruntime" and "to" in cells[1:3]]
    assert row[-1] == "disturbed"
    assert row[1:4] == ["0.735", "to", "4.419"]


def test_the_page_fits_its_width() -> None:
    page = str(comparison(ThreadComparison(128, EQUAL, rounds(123.4, 0.001))))
    assert max(map(len, page.splitlines())) <= 100
    heads = [line for line in page.splitlines() if "95 % interval" in line]
    assert len(heads) == 2


def test_outputs_that_differ_are_named_and_nothing_was_timed(
    golden: Callable[[str, str], None],
) -> None:
    found = comparison(ThreadComparison(1, EQUAL, None), ThreadComparison(2, DIFFERENT, None))
    assert not found.is_equal
    page = str(found)
    golden("cli/bench_different.txt", page)
    assert "openvino, 2 threads: different" in page
    assert "y0: error 2.5e-05 at [0, 0], 2.5 of the allowed" in page
    assert "y1: error 5e-06" not in page
    assert "latency" not in page


def test_json_holds_every_figure() -> None:
    found = json.loads(
        json.dumps(comparison(ThreadComparison(1, EQUAL, rounds(1.25, 0.9, 2))).to_json())
    )
    assert list(found) == ["conditions", "inputs_from", "allowed", "equal", "blocks"]
    assert found["conditions"] == CONDITIONS
    (block,) = found["blocks"]
    assert list(block) == ["threads", "settings", "held", "check", "timing"]
    assert block["held"] is True
    assert block["settings"]["openvino"]["INFERENCE_PRECISION_HINT"] == "f32"
    assert block["settings"]["onnxruntime"]["intra_op_num_threads"] == "1"
    assert block["check"][1] == {
        "system": "openvino",
        "equal": True,
        "outputs": [
            {"name": "y0", "error": pytest.approx(3e-7), "share": 0.03, "place": [0, 0]},
            {"name": "y1", "error": 0.0, "share": 0.0, "place": [0, 1]},
        ],
    }
    timing = block["timing"]
    assert (timing["rounds"], timing["repeated"]) == (7, 2)
    assert timing["peak_gflops"] == [50.0] * 7
    assert timing["fastest"] == ["openvino"]
    ours, onnxruntime, openvino = timing["systems"]
    assert list(ours) == [
        *("system", "median", "low", "high", "p50", "p95", "p99"),
        *("calls_per_round", "round_medians", "over_ours", "for_us"),
    ]
    assert ours["median"] == pytest.approx(0.0105)
    assert (ours["p50"], ours["p95"], ours["p99"]) == (pytest.approx(0.012), None, None)
    assert (ours["calls_per_round"], len(ours["round_medians"])) == (3, 7)
    assert (ours["over_ours"]["median"], ours["for_us"]) == (1.0, None)
    assert onnxruntime["over_ours"]["median"] == pytest.approx(1.25)
    assert onnxruntime["over_ours"]["low"] == pytest.approx(1.225)
    assert (onnxruntime["for_us"], openvino["for_us"]) == ("win", "loss")


def test_json_of_what_was_not_timed() -> None:
    found = comparison(ThreadComparison(1, DIFFERENT, None)).to_json()
    assert found["equal"] is False
    assert json.loads(json.dumps(found))["blocks"][0]["timing"] is None


def test_a_narrower_engine_says_what_it_is_and_how_far_off() -> None:
    block = ThreadComparison(2, DIFFERENT, None, is_held=False)
    found = replace(comparison(block), precision=("int8", "5 of 10 products multiply bytes"))
    said = str(found)
    assert found.is_equal
    assert "\nprecision  int8\n           5 of 10 products multiply bytes\ninputs" in said
    assert "openvino, 2 threads: y0 differs by 2.5e-05, 2.5 of its largest magnitude" in said
    assert "--check" not in said
    assert not ThreadComparison(2, DIFFERENT, None).is_equal
