"""Variants of an engine for sizes that come often: bits, shared weights, files, refusals."""

from __future__ import annotations

import ctypes
import pickle
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.exported import exported
from tests.graph.flow_models import INT64, model, node, value
from tests.graph.open_models import encoder, perceptron
from tilewright.driver.backends.table import read_code
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.options import OptionError
from tilewright.runtime.arrays import Array, address, empty_aligned
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.engine.format import EngineFileError
from tilewright.runtime.engine.parts import EngineParts
from tilewright.runtime.engine.reader import EngineFile
from tilewright.runtime.engine.writer import to_bytes

pytestmark = pytest.mark.needs_cc

PERCEPTRON = {"batch": (1, 4, 16)}
ENCODER = {"batch": (1, 2, 3), "seq": (1, 8, 20)}
CHOSEN = [{"batch": 1, "seq": 20}, {"seq": 8, "batch": 2}]


@cache
def engine() -> Engine:
    return tw.compile(encoder(), "c", shapes=ENCODER, specialise=CHOSEN)


@cache
def small() -> Engine:
    return tw.compile(perceptron(), "c", shapes=PERCEPTRON, specialise=[{"batch": 1}, {"batch": 8}])


def rows(batch: int) -> Array:
    return np.random.default_rng(batch).standard_normal((batch, 24), dtype=np.float32)


def words(batch: int, seq: int) -> dict[str, Array]:
    rng = np.random.default_rng(batch * 100 + seq)
    mask = (rng.random((batch, seq)) < 0.8).astype(np.int64)
    mask[:, 0] = 1
    return {"ids": rng.integers(0, 50, (batch, seq)), "mask": mask}


def arrays(parts: EngineParts) -> dict[int, int]:
    """The bytes of the constants of runs, by where they lie."""
    return {address(a): a.nbytes for a in parts.constants if a is not None and a.nbytes}


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("sizes", CHOSEN)
def test_a_variant_has_the_bits_of_the_engine_for_these_sizes_alone(sizes: dict[str, int]) -> None:
    given = words(**sizes)
    alone = tw.compile(encoder(), "c", shapes=sizes)
    for threads in (1, 2, 3):
        wanted = alone.run(given, threads=threads)["y"]
        assert engine().run(given, threads=threads)["y"].tobytes() == wanted.tobytes()


def test_runs_at_all_sizes_in_any_order_are_right_and_counted() -> None:
    one = pickle.loads(pickle.dumps(engine()))
    everywhere = tw.compile(encoder(), "c", shapes=ENCODER)
    order = [(1, 20), (3, 20), (2, 8), (2, 7), (1, 20), (1, 1), (2, 8), (3, 3)]
    for threads, (batch, seq) in enumerate(order):
        given = words(batch, seq)
        found = one.run(given, threads=1 + threads % 4)["y"]
        np.testing.assert_allclose(found, everywhere.run(given)["y"], atol=3e-6)
    assert (one.stats.runs, one.stats.hits) == (8, 4)
    hits = {tuple(use.sizes.values()): use.hits for use in one.stats.sizes if use.hits}
    assert hits == {(1, 20): 2, (2, 8): 2}


def test_a_context_goes_from_variant_to_variant_in_one_memory() -> None:
    context = small().context(threads=2)
    for batch in (8, 16, 1, 3, 8, 1):
        x = rows(batch)
        context.bind({"x": x}).run()
        assert context.outputs["y"].tobytes() == small()(x).tobytes()
    frame = context._frame
    memories = {id(one._memory) for one in (frame._open, *frame._frames.values())}  # type: ignore[attr-defined]
    assert len(frame._frames) == 2  # type: ignore[attr-defined]
    assert len(memories) == 1


def test_weights_are_held_once_and_the_plan_counts_what_is_not_shared() -> None:
    for one in (engine(), small()):
        base = arrays(one.parts)
        own: dict[int, int] = {}
        for variant in one.parts.variants:
            mine = arrays(variant.parts)
            assert base.keys() & mine.keys()
            own |= {place: size for place, size in mine.items() if place not in base}
        alone = tw.compile(*_asked(one))
        added = one.memory_plan.weights_bytes - alone.memory_plan.weights_bytes
        assert added == sum(own.values())
        assert one.memory_plan.arena_bytes >= alone.memory_plan.arena_bytes
        for variant in one.parts.variants:
            assert variant.parts.plan.arena_bytes <= one.memory_plan.arena_bytes
            assert variant.parts.reference is None


def _asked(one: Engine) -> tuple[object, str]:
    model, shapes = (encoder(), ENCODER) if one is engine() else (perceptron(), PERCEPTRON)
    return import_onnx(model, shapes=shapes), "c"


def test_the_originals_are_held_once() -> None:
    def originals(parts: EngineParts) -> list[Array]:
        assert parts.plain is not None
        return [a for a in parts.plain.constants.values() if any(a.strides)]

    base = {(a.shape, a.tobytes()): address(a) for a in originals(engine().parts)}
    for variant in engine().parts.variants:
        shared = [a for a in originals(variant.parts) if (a.shape, a.tobytes()) in base]
        assert len(shared) >= 10
        assert all(address(a) == base[a.shape, a.tobytes()] for a in shared)


def test_a_saved_engine_keeps_its_variants_and_shares_in_the_file(tmp_path: Path) -> None:
    file = small().save(tmp_path / "variants.twe")
    loaded = tw.load(file)
    assert str(loaded.memory_plan) == str(small().memory_plan)
    assert [str(one) for one in loaded.parts.variants] == ["batch 1", "batch 8"]
    for batch in (1, 3, 8):
        assert loaded(rows(batch)).tobytes() == small()(rows(batch)).tobytes()
    assert loaded.stats.hits == 2
    places = arrays(loaded.parts)
    for variant, mine in zip(loaded.parts.variants, small().parts.variants, strict=True):
        shared = places.keys() & arrays(variant.parts).keys()
        assert len(shared) == len(arrays(small().parts).keys() & arrays(mine.parts).keys())
        assert shared
    assert to_bytes(loaded.parts) == file.read_bytes()


def test_verification_covers_the_variants() -> None:
    report = engine().verify()
    assert report
    assert [one.name for one in report.outputs] == [
        "y",
        "y at batch 1, seq 20",
        "y at batch 2, seq 8",
    ]
    wrong = _with_weights_of_ones(small())
    assert [bool(one.share <= 1) for one in wrong.verify().outputs] == [True, False, True]


def _with_weights_of_ones(one: Engine) -> Engine:
    """The engine with other weights in its first variant."""
    first, *others = one.parts.variants
    ones = tuple(None if a is None else np.ones_like(a) for a in first.parts.constants)
    changed = replace(first, parts=replace(first.parts, constants=ones))
    return Engine(replace(one.parts, variants=(changed, *others)))


def test_explanations_list_the_variants() -> None:
    text = str(small().explain())
    for batch in (1, 8):
        assert (
            f"variant at batch {batch}: kernels 3: default 3; proofs: proved 3; whole: check "
            in text
        )
    assert "<p>variant at batch 8: check ok" in small().explain()._repr_html_()
    profile = small().profile({"x": rows(8)}, threads=1, rounds=3)
    assert len(profile.steps) == len(small().parts.variants[1].parts.artifact.launches)


def test_a_second_compile_finds_the_engine_with_its_variants() -> None:
    again = tw.compile(
        perceptron(), "c", shapes=PERCEPTRON, specialise=[{"batch": 1}, {"batch": 8}]
    )
    assert len(again.parts.variants) == 2
    assert not tw.compile(perceptron(), "c", shapes=PERCEPTRON).parts.variants


def test_a_graph_gets_variants_too() -> None:
    graph = import_onnx(perceptron(), shapes=PERCEPTRON)
    made = tw.compile(graph, "c", specialise=[{"batch": 8}], verify="kernels")
    assert made(rows(8)).tobytes() == small()(rows(8)).tobytes()
    assert made.stats.hits == 1


def test_a_machine_of_another_kind_builds_the_variants_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = small().save(tmp_path / "elsewhere.twe")
    monkeypatch.setattr(EngineFile, "missing", lambda self, isas: ("it was built elsewhere.",))
    built = tw.load(file)
    assert [str(one) for one in built.parts.variants] == ["batch 1", "batch 8"]
    assert built(rows(8)).tobytes() == small()(rows(8)).tobytes()
    assert built.stats.hits == 1


class ExportedModel:
    """An engine as C, called on the engine's inputs and outputs; scratch memory is given."""

    def __init__(self, one: Engine, folder: Path) -> None:
        self.library, self.weights = exported(one, folder)
        self.engine = one
        self.library.open_scratch_bytes.restype = ctypes.c_size_t

    def run(self, given: dict[str, Array], y: Array, sizes: Sequence[int], threads: int) -> int:
        """What the run says. y: its output."""
        memory = empty_aligned((self.library.open_scratch_bytes(threads),), np.uint8)
        taken = [*(given[spec.name] for spec in self.engine.inputs), y, memory]
        pointers = [ctypes.c_void_p(address(array)) for array in taken]
        told = map(ctypes.c_int64, sizes)
        return int(
            self.library.open_run(self.weights, *pointers[:-1], *told, pointers[-1], threads)
        )


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_its_c_has_the_bits_of_the_engine_at_every_size(tmp_path: Path) -> None:
    made = ExportedModel(small(), tmp_path)
    for batch in range(1, 17):
        x = rows(batch)
        for threads in (1, 2, 3):
            y = np.full((batch, 12), np.nan, np.float32)
            assert made.run({"x": x}, y, (batch,), threads) == 0
            assert y.tobytes() == small().run({"x": x})["y"].tobytes()
    untouched = np.full((16, 12), 7, np.float32)
    for batch in (0, 17, -1):
        assert made.run({"x": rows(16)}, untouched, (batch,), 1) == -2
    assert (untouched == 7).all()
    header = (tmp_path / "c" / "model.h").read_text()
    assert " *   batch 1\n *   batch 8\n" in header


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_its_c_chooses_by_all_sizes_and_holds_equal_weights_once(tmp_path: Path) -> None:
    made = ExportedModel(engine(), tmp_path)
    for batch, seq in ((1, 20), (2, 8), (1, 8), (2, 20), (3, 20), (1, 1)):
        given = words(batch, seq)
        wanted = engine().run(given)["y"]
        for threads in (1, 2):
            y = np.full_like(wanted, np.nan)
            assert made.run(given, y, (batch, seq), threads) == 0
            assert y.tobytes() == wanted.tobytes()
    parts = [engine().parts, *(one.parts for one in engine().parts.variants)]
    held = {(a.size, a.tobytes()): -(-a.nbytes // 64) * 64 for one in parts for a in _read(one)}
    assert (tmp_path / "c" / "weights.bin").stat().st_size == sum(held.values())
    plan = engine().memory_plan
    needed = plan.arena_bytes + plan.workspace_bytes + 2 * plan.thread_workspace_bytes
    assert made.library.open_scratch_bytes(2) <= needed


def _read(parts: EngineParts) -> list[Array]:
    """The constants of runs as they lie in memory."""
    constants = (parts.constants[position] for position in parts.artifact.read)
    return [np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in constants if a is not None]


@pytest.mark.parametrize("wrong", [{"batch": 17}, {"batch": 0}, {"rows": 1}, {}, 8, {"batch": 2.0}])
def test_sizes_that_no_run_has_are_refused(wrong: object) -> None:
    with pytest.raises(OptionError) as caught:
        tw.compile(perceptron(), "c", shapes=PERCEPTRON, specialise=[wrong])  # type: ignore[list-item]
    assert str(caught.value) == (
        f"OptionError: compile: option specialise has {wrong!r}; expected a number for each size "
        "that a run decides, 'batch' of 1 to 16. [specialise-sizes]\n"
        '  Hint: specialise=[{"batch": 4}]'
    )


def test_a_model_of_one_size_has_no_variants() -> None:
    with pytest.raises(OptionError) as caught:
        tw.compile(perceptron(), "c", shapes={"batch": 2}, specialise=[{"batch": 2}])
    assert str(caught.value) == (
        "OptionError: compile: option specialise has {'batch': 2}, and no run decides sizes of the "
        "model. [specialise-closed]\n"
        "  Hint: leave it out: the engine is for these sizes alone."
    )


@pytest.mark.parametrize("sizes", [(("batch", 17),), (("batch", 3),), (("rows", 1),), ()])
def test_a_file_whose_variant_does_not_fit_is_refused(sizes: tuple[tuple[str, int], ...]) -> None:
    first, *others = small().parts.variants
    data = to_bytes(replace(small().parts, variants=(replace(first, sizes=sizes), *others)))
    with pytest.raises(EngineFileError) as caught:
        EngineFile(data).parts(read_code)
    said = ", ".join(f"{name} {size}" for name, size in sizes)
    assert f"the variant for {said} is not one of its program." in str(caught.value)


def test_sizes_of_runs_are_logged_once_and_chosen_for_variants(tmp_path: Path) -> None:
    log = tmp_path / "sizes.jsonl"
    one = tw.compile(perceptron(), "c", shapes=PERCEPTRON, verify="off")
    for batch in (8, 3, 8):
        one(rows(batch))
    one.log_sizes(log)
    one.log_sizes(log)
    one(rows(3))
    one.log_sizes(log)
    assert log.read_text().splitlines() == [
        '{"model": "open", "sizes": {"batch": 8}, "runs": 2}',
        '{"model": "open", "sizes": {"batch": 3}, "runs": 1}',
        '{"model": "open", "sizes": {"batch": 3}, "runs": 1}',
    ]
    chosen = tw.frequent_sizes(log, 1)
    made = tw.compile(perceptron(), "c", shapes=PERCEPTRON, specialise=chosen, verify="off")
    assert [str(variant) for variant in made.parts.variants] == ["batch 8"]


def counting() -> Engine:
    """Finds what is not zero; a run computes how many there are."""
    nodes = [node("NonZero", ["x"], ["found"])]
    made = model(nodes, [value("x", shape=("batch", 6))], [value("found", INT64, (2, "count"))])
    return tw.compile(made, "c", shapes={"batch": (1, 2, 4)}, specialise=[{"batch": 2}])


def test_a_variant_of_a_model_whose_data_decide_sizes_gives_true_shapes(tmp_path: Path) -> None:
    one = counting()
    library, weights = exported(one, tmp_path)
    for batch in (2, 3, 2):
        x = np.random.default_rng(batch).integers(0, 2, (batch, 6)).astype(np.float32)
        wanted = np.array(np.nonzero(x))
        np.testing.assert_array_equal(one(x), wanted)
        y, count = np.zeros(2 * batch * 6, np.int64), ctypes.c_int64(-1)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (x, y)]
        sizes = ctypes.c_int64(batch), ctypes.byref(count)
        assert library[f"{one.name}_run"](weights, *pointers, *sizes, None, 2) == 0
        np.testing.assert_array_equal(y[: 2 * count.value].reshape(2, -1), wanted)
    assert one.stats.hits == 2
