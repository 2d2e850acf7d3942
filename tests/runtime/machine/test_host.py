from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from tilewright.runtime.machine.host import (
    HostError,
    allowed_cpus,
    default_threads,
    host,
    host_target,
    most_threads,
    read_host,
    why_not_run,
)
from tilewright.tir.target.target import Target

INTEL = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model name\t: Example CPU @ 2.00GHz
cpu MHz\t\t: 2000.125
flags\t\t: fpu sse2 avx2 fma f16c {more}

processor\t: 1
flags\t\t: fpu
"""
AVX512 = "avx512f avx512bw avx512dq avx512vl"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_first_processor_of_cpuinfo_decides(tmp_path: Path) -> None:
    found = read_host(write(tmp_path, {"proc/cpuinfo": INTEL.format(more=AVX512)}))
    assert found.isas == ("avx512", "avx2", "scalar")
    assert (found.model, found.clock_ghz) == ("Example CPU @ 2.00GHz (family 6)", 2.0)
    assert found.fma_per_cycle == 2


def test_a_model_that_virtual_machines_hide_is_told_by_its_numbers(tmp_path: Path) -> None:
    text = INTEL.format(more=AVX512).replace("model name", "model\t: 2\nmodel name")
    found = read_host(write(tmp_path, {"proc/cpuinfo": text}))
    assert found.model == "Example CPU @ 2.00GHz (family 6, model 2)"


def test_features_are_those_of_the_best_instruction_set(tmp_path: Path) -> None:
    files = {"proc/cpuinfo": INTEL.format(more=f"{AVX512} avx512_vnni")}
    found = read_host(write(tmp_path, files))
    assert (found.features, found.instructions[0]) == (("vnni",), "avx512+vnni")
    files = {"proc/cpuinfo": INTEL.format(more=f"{AVX512} avx512_bf16 avx512_vnni")}
    assert read_host(write(tmp_path, files)).instructions[0] == "avx512+vnni+bf16"
    files = {"proc/cpuinfo": INTEL.format(more="avx512_vnni")}
    found = read_host(write(tmp_path, files))
    assert (found.features, found.instructions) == ((), ("avx2", "scalar"))


@pytest.mark.parametrize(
    ("flags", "instructions"),
    [
        ("avx_vnni", ("avx2+vnni", "scalar")),
        (f"{AVX512} avx_vnni", ("avx512", "avx2+vnni", "scalar")),
        (f"{AVX512} avx512_vnni avx_vnni", ("avx512+vnni", "avx2+vnni", "scalar")),
    ],
)
def test_each_instruction_set_has_features_of_its_own(
    tmp_path: Path, flags: str, instructions: tuple[str, ...]
) -> None:
    found = read_host(write(tmp_path, {"proc/cpuinfo": INTEL.format(more=flags)}))
    assert found.instructions == instructions
    assert found.isas == tuple(name.partition("+")[0] for name in instructions)


@pytest.mark.parametrize(
    ("most", "instructions"),
    [
        ("avx512+vnni", ("avx512+vnni", "avx2+vnni", "scalar")),
        ("avx512+bf16", ("avx512+bf16", "avx2", "scalar")),
        ("avx2+vnni", ("avx2+vnni", "scalar")),
        ("avx2", ("avx2", "scalar")),
    ],
)
def test_features_that_are_not_named_are_hidden_from_each_instruction_set(
    tmp_path: Path, most: str, instructions: tuple[str, ...]
) -> None:
    text = INTEL.format(more=f"{AVX512} avx512_vnni avx512_bf16 avx_vnni")
    found = read_host(write(tmp_path, {"proc/cpuinfo": text}), most)
    assert found.instructions == instructions


def test_arm_names_its_products_of_bytes(tmp_path: Path) -> None:
    text = "processor\t: 0\nFeatures\t: fp asimd asimddp i8mm\n"
    found = read_host(write(tmp_path, {"proc/cpuinfo": text}))
    assert found.instructions == ("neon+dotprod+i8mm", "scalar")
    text = "processor\t: 0\nFeatures\t: fp asimd asimddp\n"
    assert read_host(write(tmp_path, {"proc/cpuinfo": text})).instructions[0] == "neon+dotprod"


def test_one_missing_feature_rules_an_instruction_set_out(tmp_path: Path) -> None:
    files = {"proc/cpuinfo": INTEL.format(more="avx512f avx512bw avx512vl")}
    assert read_host(write(tmp_path, files)).isas == ("avx2", "scalar")


def test_zen_4_starts_one_wide_multiply_add_per_cycle(tmp_path: Path) -> None:
    text = INTEL.format(more=AVX512).replace("GenuineIntel", "AuthenticAMD")
    files = {"proc/cpuinfo": text.replace("cpu family\t: 6", "cpu family\t: 25")}
    assert read_host(write(tmp_path, files)).fma_per_cycle == 1


@pytest.mark.parametrize(
    ("vendor", "family", "rate"),
    [("GenuineIntel", "6", 0.5), ("AuthenticAMD", "25", 1.0), ("AuthenticAMD", "26", 2.0)],
)
def test_products_of_bfloat16_have_a_rate_of_their_own(
    tmp_path: Path, vendor: str, family: str, rate: float
) -> None:
    text = INTEL.format(more=f"{AVX512} avx512_bf16").replace("GenuineIntel", vendor)
    text = text.replace("cpu family\t: 6", f"cpu family\t: {family}")
    assert read_host(write(tmp_path, {"proc/cpuinfo": text})).bf16_per_cycle == rate


@pytest.mark.parametrize(
    ("most", "instructions", "fma_per_cycle"),
    [
        ("", ("avx512+vnni+bf16", "avx2", "scalar"), 1),
        ("avx512+vnni+bf16", ("avx512+vnni+bf16", "avx2", "scalar"), 1),
        ("avx512+bf16", ("avx512+bf16", "avx2", "scalar"), 1),
        ("avx512", ("avx512", "avx2", "scalar"), 1),
        ("avx2", ("avx2", "scalar"), 2),
        ("scalar", ("scalar",), 2),
    ],
)
def test_a_host_is_lowered_to_what_is_named(
    tmp_path: Path, most: str, instructions: tuple[str, ...], fma_per_cycle: int
) -> None:
    text = INTEL.format(more=f"{AVX512} avx512_vnni avx512_bf16")
    text = text.replace("GenuineIntel", "AuthenticAMD").replace("family\t: 6", "family\t: 25")
    found = read_host(write(tmp_path, {"proc/cpuinfo": text}), most)
    assert found.instructions == instructions
    assert found.fma_per_cycle == fma_per_cycle
    assert found.model == read_host(tmp_path).model


@pytest.mark.parametrize(
    ("most", "wrong"),
    [
        ("avx512", "which this machine lacks"),
        ("avx2+vnni", "which this machine lacks"),
        ("neon", "which this machine lacks"),
        ("AVX2", "which is no instruction set"),
    ],
)
def test_a_host_is_never_raised(tmp_path: Path, most: str, wrong: str) -> None:
    with pytest.raises(HostError) as caught:
        read_host(write(tmp_path, {"proc/cpuinfo": INTEL.format(more="")}), most)
    assert str(caught.value) == (
        f"HostError: cpu: TILEWRIGHT_CPU is '{most}', {wrong}; expected one of avx2, scalar. "
        "[host-cpu]\n"
        "  Hint: it hides what a machine has and adds nothing: TILEWRIGHT_CPU=scalar"
    )


def test_the_environment_lowers_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = host()
    monkeypatch.setenv("TILEWRIGHT_CPU", "scalar")
    assert (host().instructions, str(host_target())) == (("scalar",), "c:scalar")
    assert host().model == whole.model
    better = Target.parse("c:neon" if whole.isa == "neon" else "c:avx2")
    assert why_not_run(better) == "which this machine lacks; it has scalar"
    monkeypatch.setenv("TILEWRIGHT_CPU", "sse9")
    with pytest.raises(HostError, match="TILEWRIGHT_CPU is 'sse9', which is no instruction set"):
        host_target()


def test_a_machine_that_tells_nothing_is_scalar(tmp_path: Path) -> None:
    found = read_host(tmp_path)
    assert (found.isas, found.clock_ghz, found.quota) == (("scalar",), 0.0, None)
    assert (found.l1_bytes, found.l2_bytes, found.l3_bytes) == (0, 0, 0)


def test_caches_are_read_by_level_without_the_instruction_cache(tmp_path: Path) -> None:
    base = "sys/devices/system/cpu/cpu0/cache/index"
    levels = (("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2M"))
    files = {
        f"{base}{index}/{name}": text + "\n"
        for index, level in enumerate(levels)
        for name, text in zip(("level", "type", "size"), level, strict=True)
    }
    found = read_host(write(tmp_path, files))
    assert (found.l1_bytes, found.l2_bytes, found.l3_bytes) == (48 << 10, 2 << 20, 0)


def test_the_frequency_driver_knows_the_clock_better_than_cpuinfo(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": INTEL.format(more=""),
        "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "4200000\n",
    }
    assert read_host(write(tmp_path, files)).clock_ghz == 4.2


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "150000 100000\n"}, 1.5),
        ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "max 100000\n"}, None),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/box\n1:memory:/box\n",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "300000\n",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
            },
            3.0,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/elsewhere\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
)
def test_the_smallest_quota_around_the_process_counts(
    tmp_path: Path, files: dict[str, str], quota: float | None
) -> None:
    assert read_host(write(tmp_path, files)).quota == quota


def test_threads_follow_the_affinity_of_the_process_now() -> None:
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no affinity masks")
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert (allowed_cpus(), default_threads(), host_target().threads) == (1, 1, 1)
    finally:
        os.sched_setaffinity(0, before)


def test_the_variable_goes_before_the_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "7")
    assert default_threads() == 7


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5", "10000", "9" * 20, "9" * 5000])
def test_a_variable_that_is_no_count_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", text)
    monkeypatch.setattr("tilewright.runtime.machine.host.allowed_cpus", lambda: 2)
    with pytest.raises(HostError) as caught:
        default_threads()
    assert str(caught.value) == textwrap.dedent(f"""\
        HostError: threads: TILEWRIGHT_NUM_THREADS is '{text[:40]}'; expected a whole number \
from 1 to {most_threads()}. [host-threads]
          Hint: export TILEWRIGHT_NUM_THREADS=2""")
    assert isinstance(caught.value, ValueError)


def test_the_target_of_this_machine_has_its_instruction_set() -> None:
    target = host_target()
    assert (target.kind, target.isa) == ("c", host().isa)
    assert min(target.l1_bytes, target.l2_bytes, target.l3_bytes, target.threads) > 0
