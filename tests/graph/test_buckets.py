"""Buckets of an engine: bits of padded runs, what is refused, files, counts, memory."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tilewright as tw
from tests.graph.flow_models import model, node, value
from tests.graph.open_images import residual
from tests.graph.open_models import encoder, perceptron
from tilewright.driver.backends.table import read_code
from tilewright.graph import padded_variants
from tilewright.graph.options import OptionError
from tilewright.runtime.arrays import Array
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.engine.format import EngineFileError
from tilewright.runtime.engine.parts import Padding
from tilewright.runtime.engine.reader import EngineFile
from tilewright.runtime.engine.size_log import append_sizes
from tilewright.runtime.engine.writer import to_bytes
from tilewright.runtime.index_checks import IndexRangeError

pytestmark = pytest.mark.needs_cc

OPEN = {"batch": (1, 2, 8)}
IMAGES = {"batch": (1, 2, 4), "height": 16, "width": 16}
TEXTS = {"batch": (1, 2, 4), "seq": (1, 8, 12)}


def fast(padding: Engine, alone: Engine, sizes: Mapping[str, int]) -> tuple[float, float]:
    """In place of a clock: a padded run is never slower."""
    return 1e-6, 2e-6


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(padded_variants, "beside", fast)


def compiled(proto: onnx.ModelProto, **options: Any) -> Engine:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(padded_variants, "beside", fast)
        return tw.compile(proto, "c", cache=False, **options)


@cache
def rows() -> Engine:
    return compiled(perceptron(), shapes=OPEN, buckets={"batch": [4, 8]})


@cache
def images() -> Engine:
    return compiled(residual(4), shapes=IMAGES, buckets={"batch": [4]})


@cache
def texts() -> Engine:
    return compiled(encoder(), shapes=TEXTS, buckets={"batch": [4], "seq": 12})


ENGINES = {"rows": (rows, {}), "images": (images, {}), "texts": (texts, {"seq": 12})}


def extreme(array: Array, value: float) -> object:
    if array.dtype.kind == "f":
        return value
    return np.iinfo(array.dtype).min if value < 0 else np.iinfo(array.dtype).max


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("threads", [1, 3])
def test_padded_runs_have_the_bits_of_their_variant_whatever_stands_behind(
    name: str, threads: int
) -> None:
    make, others = ENGINES[name]
    engine = make()
    variant = engine.parts.variants[-1]
    largest, alone = dict(variant.sizes)["batch"], Engine(variant.parts)
    full = engine.random_inputs(sizes={"batch": largest, **others})
    for size in range(variant.padding.least, largest):  # type: ignore[union-attr]
        found = engine.run({n: a[:size].copy() for n, a in full.items()}, threads=threads)
        for poison in (np.nan, np.inf, -np.inf):
            given = {n: a.copy() for n, a in full.items()}
            for array in given.values():
                array[size:] = extreme(array, poison)
            wanted = {s.name: np.empty(s.shape, s.dtype) for s in alone.outputs}
            try:
                alone.run(given, out=wanted, threads=threads)
            except IndexRangeError:  # of the rows behind: it has run with the nearest index
                assert name == "texts"
            for output, array in found.items():
                assert array.shape[0] == size
                assert array.tobytes() == wanted[output][:size].tobytes()


def test_the_smallest_variant_that_holds_a_run_serves_it() -> None:
    engine = pickle.loads(pickle.dumps(rows()))
    assert [str(one) for one in engine.parts.variants] == ["batch 1 to 4", "batch 5 to 8"]
    x = np.ones((8, 24), np.float32)
    for size in (1, 3, 4, 5, 7, 8, 8):
        engine(x[:size])
    stats = engine.stats
    assert (stats.runs, stats.hits, stats.padded) == (7, 3, 4)
    assert stats.waste == 1 - (1 + 3 + 5 + 7) / (4 + 4 + 8 + 8)
    assert str(stats).splitlines()[0] == (
        "7 runs, 3 hits of 2 variants, 4 padded (of their rows 33.3% were added)"
    )


def test_a_context_pads_what_its_arrays_hold_when_it_runs() -> None:
    engine = rows()
    context = engine.context(threads=2)
    for size in (3, 8, 6, 3, 2):
        x = np.zeros((size, 24), np.float32)
        context.bind({"x": x})
        for turn in range(2):
            x[:] = np.random.default_rng(turn).standard_normal(x.shape)
            context.run()
            assert context.outputs["y"].tobytes() == engine(x).tobytes()
    assert context.time(0.01).median > 0


def test_added_rows_are_copies_of_the_last_one_at_each_run() -> None:
    context = rows().context()
    x = np.ones((3, 24), np.float32)
    context.bind({"x": x})
    for number in (1.0, 2.0):
        x[2] = number
        context.run()
        padded = context._frame._now._inputs[0].reshape(4, 24)  # type: ignore[attr-defined]
        assert (padded[3] == number).all()


def test_an_index_out_of_range_is_told_as_without_padding() -> None:
    engine = texts()
    given = engine.random_inputs(sizes={"batch": 3, "seq": 12})
    given["ids"][1, 2] = 77
    with pytest.raises(IndexRangeError, match=r"is 77; expected 0 to 49\."):
        engine.run(given)
    given["ids"][1, 2] = 7
    engine.run(given)


def test_a_saved_engine_keeps_its_buckets(tmp_path: Path) -> None:
    file = rows().save(tmp_path / "buckets.twe")
    loaded = tw.load(file)
    assert [one.padding for one in loaded.parts.variants] == [
        Padding("batch", 1),
        Padding("batch", 5),
    ]
    x = rows().random_inputs(sizes={"batch": 6})["x"]
    assert loaded(x).tobytes() == rows()(x).tobytes()
    assert loaded.stats.padded == 1
    assert str(loaded.memory_plan) == str(rows().memory_plan)
    assert to_bytes(loaded.parts) == file.read_bytes()


@pytest.mark.parametrize("padding", [Padding("rows", 1), Padding("batch", 0), Padding("batch", 9)])
def test_a_file_whose_padding_does_not_fit_is_refused(padding: Padding) -> None:
    *others, last = rows().parts.variants
    parts = replace(rows().parts, variants=(*others, replace(last, padding=padding)))
    with pytest.raises(EngineFileError, match=r"is not one of its program\."):
        EngineFile(to_bytes(parts)).parts(read_code)


def test_verification_and_explanations_cover_padded_runs() -> None:
    report = rows().verify()
    assert report
    assert [one.name for one in report.outputs] == [
        "y",
        "y at batch 4",
        "y at batch 1",
        "y at batch 8",
        "y at batch 5",
    ]
    text = str(rows().explain())
    assert "variant at batch 5 to 8: kernels 3: default 3" in text
    assert "note: bucket 'batch' 8: serves 5 to 8 (at 5 padded 1.0 us, open 2.0 us; at 6 " in text
    assert "<p>variant at batch 5 to 8: check ok" in rows().explain()._repr_html_()


def test_the_memory_plan_counts_padded_arrays_once() -> None:
    plan = rows().memory_plan
    assert plan.padding_bytes == 8 * 24 * 4 + 8 * 12 * 4
    assert "padded arrays 1.12 KiB per context" in str(plan)
    whole = plan.context_bytes(1)
    assert whole == plan.arena_bytes + plan.workspace_bytes + plan.thread_workspace_bytes + 1152
    least = plan.peak_bytes(1)
    with pytest.raises(tw.TilewrightError, match="expected at most"):
        compiled(perceptron(), shapes=OPEN, buckets={"batch": [4, 8]}, max_bytes=least - 1153)


def test_a_bucket_serves_no_size_at_which_it_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    def beside(padding: Engine, alone: Engine, sizes: Mapping[str, int]) -> tuple[float, float]:
        assert padding.parts.variants
        assert not alone.parts.variants
        return 5.5e-6, sizes["batch"] * 1e-6

    monkeypatch.setattr(padded_variants, "beside", beside)
    made = tw.compile(perceptron(), "c", shapes=OPEN, buckets={"batch": [4, 8]}, cache=False)
    assert [str(one) for one in made.parts.variants] == ["batch 4", "batch 6 to 8"]
    notes = [note for note in made.explain().notes if note.startswith("bucket")]
    assert notes == [
        "bucket 'batch' 4: serves no fewer rows (at 2 padded 5.5 us, open 2.0 us; "
        "at 3 padded 5.5 us, open 3.0 us)",
        "bucket 'batch' 8: serves 6 to 8 (at 5 padded 5.5 us, open 5.0 us; "
        "at 6 padded 5.5 us, open 6.0 us)",
    ]


def test_variants_and_buckets_stand_side_by_side() -> None:
    made = compiled(
        perceptron(), shapes=OPEN, buckets={"batch": [8]}, specialise=[{"batch": 3}, {"batch": 8}]
    )
    assert [str(one) for one in made.parts.variants] == ["batch 3", "batch 1 to 8"]
    for size in (3, 2, 8):
        made(np.ones((size, 24), np.float32))
    assert (made.stats.hits, made.stats.padded) == (2, 1)


def test_rows_may_lie_along_any_axis() -> None:
    nodes = [node("Softmax", ["x"], ["a"], axis=0), node("Transpose", ["a"], ["y"], perm=[1, 0, 2])]
    proto = model(nodes, [value("x", shape=(5, "batch", 3))], [value("y", shape=None)])
    made = compiled(proto, shapes=OPEN, buckets={"batch": [8]})
    x = np.random.default_rng(0).standard_normal((5, 8, 3)).astype(np.float32)
    wanted = made(x)
    for size in range(1, 8):
        found = made(np.ascontiguousarray(x[:, :size]))
        assert found.tobytes() == wanted[:size].tobytes()
    assert made.stats.padded == 7


def test_a_second_compile_finds_the_engine_with_its_buckets() -> None:
    for _ in range(2):
        made = tw.compile(perceptron(), "c", shapes=OPEN, buckets={"batch": [4, 8]})
        assert [str(one) for one in made.parts.variants] == ["batch 1 to 4", "batch 5 to 8"]
    assert not tw.compile(perceptron(), "c", shapes=OPEN).parts.variants


# -- from a log ------------------------------------------------------------------------------------


def test_the_best_sizes_of_a_log_are_padded_to(tmp_path: Path) -> None:
    log = tmp_path / "sizes.jsonl"
    append_sizes(log, "open", [({"batch": n}, often) for n, often in ((2, 90), (3, 5), (7, 5))])
    append_sizes(log, "other", [({"batch": 4}, 1000)])
    append_sizes(log, "open", [({"batch": 64}, 1000)])  # a run of an engine of other bounds
    made = compiled(perceptron(), shapes=OPEN, buckets=2, shape_log=log)
    assert [str(one) for one in made.parts.variants] == ["batch 1 to 2", "batch 3 to 7"]
    assert made.explain().notes[0] == (
        "buckets: 'batch' 2, 7, chosen of 3 sizes in 100 runs of the log: of the rows computed "
        "8.0% are added"
    )


def test_a_log_without_runs_of_the_model_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "sizes.jsonl"
    append_sizes(log, "other", [({"batch": 4}, 1)])
    with pytest.raises(OptionError) as caught:
        compiled(perceptron(), shapes=OPEN, buckets=2, shape_log=log)
    assert str(caught.value) == (
        f"OptionError: compile: option shape_log: '{log}' has no run of 'open' with 'batch' of 1 "
        "to 8. [buckets-log]\n"
        "  Hint: engine.log_sizes(path) and `tilewright run --shape-log` add runs."
    )


def test_a_hostile_log_is_refused_by_its_line(tmp_path: Path) -> None:
    log = tmp_path / "sizes.jsonl"
    append_sizes(log, "open", [({"batch": 4}, 1)])
    for line in ('{"model": "open", "sizes": {"batch": "many"}, "runs": 1}', "[" * 100_000):
        log.write_text(log.read_text().splitlines()[0] + "\n" + line + "\n")
        with pytest.raises(tw.TilewrightError, match=r"line 2 of .* \[size-log-line\]"):
            compiled(perceptron(), shapes=OPEN, buckets=2, shape_log=log)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "log"), [(0, "s"), (True, "s"), (2, None), (None, "s")])
def test_a_count_needs_a_log_and_one_open_size(count: object, log: str | None) -> None:
    with pytest.raises(OptionError) as caught:
        compiled(perceptron(), shapes=OPEN, buckets=count, shape_log=log, verify="off")
    assert str(caught.value) == (
        f"OptionError: compile: option buckets is {count!r} with shape_log={log!r}, and runs "
        "decide 'batch'; expected a count of 1 or more, a log of sizes, and one size that runs "
        "decide. [buckets-count]\n"
        '  Hint: buckets=4, shape_log="sizes.jsonl" chooses from a log that engine.log_sizes '
        "wrote.\n"
        '  Hint: buckets={"batch": [...]} says which.'
    )


@pytest.mark.parametrize(
    "wrong",
    [{}, {"batch": []}, {"batch": [9]}, {"batch": [0]}, {"batch": 4}, {"rows": [4]}, [4], "4"],
)
def test_sizes_that_no_run_has_are_refused(wrong: object) -> None:
    with pytest.raises(OptionError) as caught:
        compiled(perceptron(), shapes=OPEN, buckets=wrong, verify="off")
    assert str(caught.value) == (
        f"OptionError: compile: option buckets is {wrong!r}; expected sizes to pad to for one size "
        "that a run decides, a number for each other: 'batch' of 1 to 8. [buckets-sizes]\n"
        '  Hint: buckets={"batch": [2, 8]}'
    )


def test_a_model_of_one_size_has_no_buckets() -> None:
    with pytest.raises(OptionError) as caught:
        compiled(perceptron(), shapes={"batch": 2}, buckets={"batch": [2]}, verify="off")
    assert str(caught.value) == (
        "OptionError: compile: option buckets is {'batch': [2]}, and no run decides sizes of the "
        "model. [buckets-closed]\n"
        "  Hint: leave it out: the engine is for these sizes alone."
    )


def test_a_size_that_is_more_than_a_number_of_rows_is_refused_by_node() -> None:
    with pytest.raises(OptionError) as caught:
        compiled(encoder(), shapes=TEXTS, buckets={"batch": 2, "seq": [12]}, verify="off")
    assert str(caught.value) == (
        "OptionError: compile: option buckets: padding along 'seq' is not inert: 'transpose_29' "
        "does not read its own row of 'seq' alone, or might not: its part 'attention_scores' reads "
        "q[vb, vs, vh, vd]; expected each row to be computed from its own row of the inputs alone. "
        "[buckets-not-inert]\n"
        '  Hint: specialise=[{"batch": 2, "seq": 8}] makes variants for sizes that come often, '
        "without padding."
    )


def test_a_kernel_that_is_not_proved_pads_nothing() -> None:
    variant = rows().parts.variants[0]
    first, *others = variant.parts.report.kernels
    kernels = (replace(first, proof="unknown (operations)"), *others)
    parts = replace(variant.parts, report=replace(variant.parts.report, kernels=kernels))
    (dim,) = rows().interface.dims
    with pytest.raises(OptionError, match=r"kernel '\w+' is not proved: unknown \(operations\)"):
        padded_variants._prove(rows().parts, dim, replace(variant, parts=parts))


def test_runs_of_a_gpu_are_not_padded() -> None:
    with pytest.raises(OptionError) as caught:
        tw.compile(
            perceptron(),
            "cuda:sm_90a",
            shapes=OPEN,
            buckets={"batch": [4]},
            verify="off",
            cache=False,
        )
    assert str(caught.value) == (
        "OptionError: compile: option buckets is {'batch': [4]} for the target 'cuda:sm_90a'; "
        "expected one of a CPU: runs of a GPU are not padded. [buckets-target]\n"
        "  Hint: specialise=[{...}] makes variants for sizes that come often."
    )
