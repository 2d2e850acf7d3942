from __future__ import annotations

from dataclasses import replace

from tilewright.autotune.log.record import Trial
from tilewright.autotune.log.setting import Setting, by_setting, differences
from tilewright.tir.target.target import Target

from ..samples import trial

HERE = Setting.of(trial().conditions, "cold")


def under(made: Trial, **fields: object) -> Trial:
    """The trial under other conditions."""
    return replace(made, conditions=replace(made.conditions, **fields))


def on(made: Trial, **fields: object) -> Trial:
    """The trial on another target."""
    return under(made, target={**made.conditions.target, **fields})


def warm(made: Trial) -> Trial:
    return replace(made, method=replace(made.method, cache="warm"))


def test_trials_of_one_setting_stand_together_in_their_order() -> None:
    trials = [trial(n) for n in range(4)]
    assert by_setting(trials) == {HERE: trials}
    assert by_setting([]) == {}


def test_machines_threads_generators_and_caches_are_taken_apart() -> None:
    others = [
        under(trial(), cpu="another CPU"),
        on(trial(), threads=4),
        on(trial(), isa="avx2"),
        on(trial(), l2_bytes=1 << 21),
        under(trial(), tool="0.2.0"),
        under(trial(), compiler="cc 13"),
        under(trial(), flags=("-O2",)),
        warm(trial()),
    ]
    found = by_setting([trial(), *others])
    assert len(found) == 9
    told = [differences(setting, HERE) for setting in list(found)[1:]]
    assert told == [
        ("caches 'warm', not 'cold'",),  # of the setting that the first trial has
        ("CPU 'another CPU', not 'A CPU'",),
        ("threads 4, not 2",),
        ("instructions 'c:avx2', not 'c:avx512'",),
        ("sizes or speeds of the machine",),
        ("tilewright '0.2.0', not '0.1.0'",),
        ("compiler 'cc 13', not 'cc 12'",),
        ("flags '-O2', not '-O3'",),
    ]
    assert differences(HERE, HERE) == ()


def test_a_failed_trial_counts_in_every_cache_state_of_its_setting() -> None:
    failed = warm(trial(2, outcome="crashed"))  # nothing was timed, so its state says nothing
    found = by_setting([trial(0), failed, warm(trial(1)), on(failed, threads=4)])
    states = {(setting.threads, setting.cache): trials for setting, trials in found.items()}
    assert states == {
        (2, "cold"): [trial(0), failed],
        (2, "warm"): [failed, warm(trial(1))],
        (4, ""): [on(failed, threads=4)],
    }


def test_a_setting_is_told_in_words() -> None:
    assert str(HERE) == "A CPU, c:avx512, 2 threads, cold constants"
    assert str(Setting.of(on(trial(), threads=1, features=["vnni"]).conditions)) == (
        "A CPU, c:avx512+vnni, 1 thread"
    )


def test_a_gpu_is_one_setting_with_old_fields_and_with_new_ones() -> None:
    gpu = replace(
        trial().conditions,
        target=Target("cuda", "sm_90a").to_json(),
        cpu="NVIDIA H200",
    )
    old = {name: gpu.target[name] for name in ("kind", "isa", "threads", "features")}
    cpu = {"vector_bytes": 0, "l1_bytes": 32768, "l3_bytes": 33554432, "dram_gb_per_s": 40.0}
    before = replace(gpu, target={**old, **cpu})
    assert Setting.of(before) == Setting.of(gpu)
    assert Setting.of(replace(gpu, target={**gpu.target, "isa": "sm_80"})) != Setting.of(gpu)
