"""Each fault that checked mode knows is planted in a small kernel and found."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.cuda.emulator.emulator import emulate
from tilewright.runtime.cuda.emulator.report import AccessSite, EmulationReport, EmulatorFinding

from ...launches import flat

pytestmark = pytest.mark.needs_cxx

HEAD = 'extern "C" __global__ void f(const float* __restrict__ x, float* __restrict__ out)\n{\n'


def check(
    body: str,
    *,
    grid: int = 1,
    block: int = 64,
    x: np.ndarray | None = None,
    out: np.ndarray | None = None,
    head: str = HEAD,
    shared_bytes: int = 0,
) -> EmulationReport:
    """Run a kernel of `x` and `out` in checked mode; by default both have 4096 floats."""
    arrays = {
        "x": np.arange(4096, dtype=np.float32) if x is None else x,
        "out": np.zeros(4096, np.float32) if out is None else out,
    }
    indices = "    const int tx = (int)threadIdx.x, bx = (int)blockIdx.x;"
    indices += " (void)tx; (void)bx; (void)x; (void)out;\n"
    launch = flat("f", grid, block, ("x", "out"), shared_bytes)
    return emulate(f"{head}{indices}{body}}}\n", [launch], arrays, checked=True)


def only(report: EmulationReport, kind: str) -> EmulatorFinding:
    """The one finding of a report, which is of a kind."""
    assert [finding.kind for finding in report.findings] == [kind], str(report)
    return report.findings[0]


def races(report: EmulationReport) -> set[tuple[int | None, ...]]:
    """The lines of each race; what was not yet written when it was read may be found beside."""
    kinds = {finding.kind for finding in report.findings}
    assert "race" in kinds, str(report)
    assert kinds <= {"race", "unwritten"}, str(report)
    return {tuple(lines(finding)) for finding in report.findings if finding.kind == "race"}


def lines(finding: EmulatorFinding) -> list[int | None]:
    return [party.line for party in finding.parties]


def site(report: EmulationReport, buffer: str, action: str) -> AccessSite:
    (found,) = (s for s in report.sites if (s.buffer, s.action) == (buffer, action))
    return found


def test_a_removed_barrier_is_a_race_of_write_and_read() -> None:
    body = """\
    __shared__ float tile[64];
    tile[tx] = x[tx];
    {barrier}
    out[tx] = tile[63 - tx];
"""
    assert check(body.format(barrier="__syncthreads();"))
    report = check(body.format(barrier=""))
    assert str(report) == (
        "unwritten in 'f' at tile[63], 32 times\n"
        "  thread (0, 0, 0) of block (0, 0, 0) reads, line 7: out[tx] = tile[63 - tx];\n"
        "race in 'f' at tile[32], 32 times\n"
        "  thread (31, 0, 0) of block (0, 0, 0) reads, line 7: out[tx] = tile[63 - tx];\n"
        "  thread (32, 0, 0) of block (0, 0, 0) writes, line 5: tile[tx] = x[tx];\n"
        "race in 'f' at tile[31], 32 times\n"
        "  thread (31, 0, 0) of block (0, 0, 0) writes, line 5: tile[tx] = x[tx];\n"
        "  thread (32, 0, 0) of block (0, 0, 0) reads, line 7: out[tx] = tile[63 - tx];"
    )


def test_a_removed_barrier_at_a_loops_end_is_a_race_of_read_and_write() -> None:
    body = """\
    __shared__ float tile[64];
    float sum = 0.0f;
    for (int i = 0; i < 8; ++i) {{
        tile[tx] = x[i * 64 + tx];
        __syncthreads();
        sum += tile[63 - tx];
        {barrier}
    }}
    out[tx] = sum;
"""
    assert check(body.format(barrier="__syncthreads();"))
    assert races(check(body.format(barrier=""))) == {(9, 7), (7, 9)}


def test_two_writes_of_one_element_are_a_race() -> None:
    finding = only(check("    out[tx / 2] = x[tx];\n"), "race")
    assert (finding.buffer, finding.element, finding.times) == ("out", 0, 32)
    assert [party.action for party in finding.parties] == ["writes", "writes"]
    assert [party.thread[0] for party in finding.parties] == [0, 1]


def test_nothing_stands_between_blocks() -> None:
    body = "    if (tx == 0) out[bx] = 1.0f;\n    __syncthreads();\n    if (tx == 0) {use}\n"
    assert check(body.format(use="out[64 + bx] = out[bx];"), grid=4)
    finding = only(check(body.format(use="out[64 + bx] = out[bx / 2];"), grid=4), "race")
    assert [party.block[0] for party in finding.parties] == [0, 1]
    assert [party.action for party in finding.parties] == ["writes", "reads"]
    # the first block reads what the third writes; those between read it too
    late = "    if (bx < 3) out[64 * bx + tx + 64] = out[0]; else if (tx == 0) out[0] = x[0];\n"
    finding = only(check(late, grid=4), "race")
    assert [party.action for party in finding.parties] == ["reads", "writes"]


def test_a_later_launch_comes_after_an_earlier_one() -> None:
    source = HEAD + "    out[threadIdx.x] = x[threadIdx.x] + out[63 - threadIdx.x];\n}\n"
    arrays = {name: np.zeros(64, np.float32) for name in ("x", "out")}
    assert emulate(source, [flat("f", 1, 32, ("x", "out"))] * 2, arrays, checked=True)


def test_atomic_sums_do_not_race_with_each_other_but_with_plain_accesses() -> None:
    body = "    atomicAdd(&out[0], x[tx]);\n    {}\n"
    assert check(body.format(""), grid=4)
    report = check(body.format("if (tx == 5) out[1] = out[0];"))
    actions = [tuple(party.action for party in finding.parties) for finding in report.findings]
    assert sorted(actions) == [("adds atomically", "reads"), ("reads", "adds atomically")]


def test_syncwarp_orders_a_warp_and_not_two() -> None:
    body = """\
    __shared__ float tile[64];
    tile[tx] = x[tx];
    {meet}
    out[tx] = tile[tx ^ {mask}];
"""
    assert check(body.format(meet="__syncwarp();", mask=31))
    assert races(check(body.format(meet="__syncwarp();", mask=32))) == {(5, 7), (7, 5)}
    shuffle = "if (__shfl_sync(0xffffffffu, tx, 0) < 0) out[tx] = 0.0f;"
    assert races(check(body.format(meet=shuffle, mask=31))) == {(5, 7)}
    halves = "__syncwarp(tx % 32 < 16 ? 0xffffu : 0xffff0000u);"
    assert check(body.format(meet=halves, mask=15))
    assert races(check(body.format(meet=halves, mask=16)))


def test_neighbouring_bytes_do_not_race() -> None:
    head = 'extern "C" __global__ void f(const signed char* x, signed char* out)\n{\n'
    bytes_ = np.arange(64, dtype=np.int8)
    body = """\
    __shared__ signed char tile[64];
    tile[tx] = x[tx];
    __syncthreads();
    out[tx] = tile[63 - tx];
"""
    out = np.zeros(64, np.int8)
    assert check(body, x=bytes_, out=out, head=head)
    np.testing.assert_array_equal(out, bytes_[::-1])


@pytest.mark.parametrize(
    ("body", "buffer", "element"),
    [
        ("if (bx > 0) out[tx] = x[64 * bx + tx];", "x", 100),
        ("if (64 * bx + tx < 100) out[tx + 37] = x[64 * bx + tx];", "out", 100),
        ("out[tx - 1] = x[tx];", "out", -1),
        ("const float4 v = *(const float4*)&x[tx * 4]; if (v.x > 0.0f) out[tx] = v.y;", "x", 100),
        ("__shared__ float tile[64]; tile[tx + 1] = x[tx]; out[tx] = tile[tx + 1];", "tile", 64),
    ],
)
def test_a_missing_bound_is_found_before_it_does_harm(body: str, buffer: str, element: int) -> None:
    x, out = np.zeros(100, np.float32), np.zeros(100, np.float32)
    finding = only(check(f"    {body}\n", x=x, out=out, grid=1 + (element == 100)), "out-of-bounds")
    assert (finding.buffer, finding.element) == (buffer, element)
    assert lines(finding) == [4]


def test_shared_memory_of_a_launch_ends_where_the_launch_says() -> None:
    body = """\
    extern __shared__ __align__(16) unsigned char tile[];
    float* mine = (float*)tile;
    mine[tx] = x[tx];
    out[tx] = mine[tx];
"""
    assert check(body, shared_bytes=256)
    finding = only(check(body, shared_bytes=252), "out-of-bounds")
    assert (finding.buffer, finding.element) == ("tile", 252)


def test_shared_memory_that_nobody_wrote_is_not_read() -> None:
    body = """\
    __shared__ float tile[64];
    if (tx < {n}) tile[tx] = x[tx];
    __syncthreads();
    out[64 * bx + tx] = tile[tx];
"""
    assert check(body.format(n=64), grid=2)
    finding = only(check(body.format(n=60), grid=2), "unwritten")
    assert str(finding) == (
        "unwritten in 'f' at tile[60], 8 times\n"
        "  thread (60, 0, 0) of block (0, 0, 0) reads, line 7: out[64 * bx + tx] = tile[tx];"
    )


@pytest.mark.parametrize(("first", "fault"), [(64, None), (60, 60)])
def test_memory_that_no_kernel_wrote_is_not_read_by_a_later_one(
    first: int, fault: int | None
) -> None:
    source = """\
extern "C" __global__ void make(float* made, int n)
{
    const int tx = (int)threadIdx.x;
    if (tx < n) made[tx] = 1.0f;
}
extern "C" __global__ void use(const float* __restrict__ made, float* out)
{
    out[threadIdx.x] = made[threadIdx.x];
    out[threadIdx.x] = out[threadIdx.x] * 2.0f;
}
"""
    launches = [flat("make", 1, 64, ("made", "n")), flat("use", 1, 64, ("made", "out"))]
    given = {"made": np.zeros(64, np.float32), "out": np.zeros(64, np.float32), "n": first}
    assert emulate(source, launches, given, checked=True)
    report = emulate(source, launches, given, checked=True, fresh=("made", "out"))
    if fault is None:
        assert report, str(report)
        return
    found = only(report, "unwritten")
    assert (found.kernel, found.buffer, found.element) == ("use", "made", fault)
    assert (found.times, lines(found)) == (4, [8])


DOUBLE_BUFFER = """\
    __shared__ __align__(16) float tile[2][256];
    float sum = 0.0f;
    tw_cp_async_16(&tile[0][tx * 4], &x[tx * 4]);
    tw_cp_async_commit();
    for (int i = 0; i < 4; ++i) {{
        if (i < 3) tw_cp_async_16(&tile[(i + 1) % 2][tx * 4], &x[(i + 1) * 256 + tx * 4]);
        tw_cp_async_commit();
        tw_cp_async_wait<{pending}>();
        {landed}
        sum += tile[i % 2][255 - tx];
        {read}
    }}
    out[tx] = sum;
"""
BARRIER = "__syncthreads();"


def test_two_buffers_with_the_right_wait_and_barriers_are_clean() -> None:
    out = np.zeros(64, np.float32)
    assert check(DOUBLE_BUFFER.format(pending=1, landed=BARRIER, read=BARRIER), out=out)
    x = np.arange(1024, dtype=np.float32).reshape(4, 256)
    np.testing.assert_array_equal(out, x[:, ::-1][:, :64].sum(0))


def test_a_wrong_wait_count_is_data_that_is_read_too_early() -> None:
    report = check(DOUBLE_BUFFER.format(pending=2, landed=BARRIER, read=BARRIER))
    kinds = {finding.kind for finding in report.findings}
    assert "early" in kinds
    early = next(finding for finding in report.findings if finding.kind == "early")
    assert (early.buffer, early.parties[0].action, early.parties[1].action) == (
        *("tile", "writes", "reads"),
    )
    assert "tw_cp_async_16" in early.parties[0].text
    assert early.parties[1].line == 13


def test_a_wait_without_a_barrier_is_a_race_with_the_copying_thread() -> None:
    report = check(DOUBLE_BUFFER.format(pending=1, landed="", read=BARRIER))
    found = {(finding.kind, *lines(finding)) for finding in report.findings}
    assert {("race", 6, 13), ("early", 9, 13)} <= found
    report = check(DOUBLE_BUFFER.format(pending=1, landed=BARRIER, read=""))
    assert {(finding.kind, *lines(finding)) for finding in report.findings} == {
        ("race", 13, 9),
        ("early", 9, 13),
    }


def test_a_barrier_is_for_all_threads() -> None:
    left = only(check("    if (tx >= 40) return;\n    __syncthreads();\n"), "barrier")
    assert str(left) == (
        "barrier in 'f'\n"
        "  thread (0, 0, 0) of block (0, 0, 0) waits at a barrier, line 5: __syncthreads();\n"
        "  thread (40, 0, 0) of block (0, 0, 0) left"
    )
    elsewhere = "    if (tx < 32)\n        __syncthreads();\n    else\n        __syncthreads();\n"
    assert lines(only(check(elsewhere), "barrier")) == [5, 7]


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("if (tx % 2) sum = __shfl_xor_sync(0xffffffffu, sum, 2);", "warp", ""),
        ("if (tx < 16) sum = __shfl_xor_sync(0xffffu, sum, 16);", "refused", "takes no part"),
        ("sum = __shfl_xor_sync(0xfffffffeu, sum, 2);", "refused", "its own lane is not named"),
        (
            "if (tx % 2) sum = __shfl_xor_sync(0xffffffffu, sum, 2);"
            " else sum = __shfl_down_sync(0xffffffffu, sum, 2);",
            "warp",
            "",
        ),
    ],
)
def test_lanes_meet_in_one_call_or_the_launch_ends(body: str, kind: str, said: str) -> None:
    finding = only(check(f"    float sum = x[tx];\n    {body}\n    out[tx] = sum;\n"), kind)
    assert said in finding.note
    assert lines(finding)[0] == 5


def test_lanes_that_left_are_missed_and_those_that_never_were_are_not() -> None:
    body = "    {leave}\n    out[tx] = __shfl_xor_sync(0xffffffffu, x[tx], {mask});\n"
    out = np.zeros(48, np.float32)
    assert check(body.format(leave="", mask=1), block=48, out=out)
    np.testing.assert_array_equal(out, np.arange(48) ^ 1)
    assert lines(only(check(body.format(leave="", mask=16), block=48), "refused")) == [5]
    missed = only(check(body.format(leave="if (tx % 32 > 15) return;", mask=8)), "warp")
    assert [party.action for party in missed.parties] == ["waits for lanes", "left"]
    assert [party.thread[0] for party in missed.parties] == [0, 16]


def test_a_product_takes_a_whole_warp() -> None:
    body = """\
    {leave}
    float c0 = 0.0f, c1 = 0.0f, c2 = 0.0f, c3 = 0.0f;
    tw_mma_m16n8k8_tf32(c0, c1, c2, c3, 0u, 0u, 0u, 0u, 0u, 0u);
    out[tx] = c0;
"""
    assert check(body.format(leave=""))
    assert "a whole warp" in only(check(body.format(leave=""), block=48), "refused").note
    finding = only(check(body.format(leave="if (tx == 7) return;")), "warp")
    assert [party.action for party in finding.parties] == ["waits for lanes", "left"]
    assert (lines(finding)[0], finding.parties[1].thread) == (6, (7, 0, 0))


def test_a_vector_lies_at_a_multiple_of_its_size() -> None:
    body = "    *(float4*)&out[tx * 4] = *(const float4*)&x[tx * 4{}];\n"
    assert check(body.format(""))
    finding = only(check(body.format(" + 2")), "misaligned")
    assert (finding.buffer, finding.element, lines(finding)) == ("x", 2, [4])


def test_an_array_that_is_read_only_is_not_written() -> None:
    x = np.zeros(64, np.float32)
    x.flags.writeable = False
    head = 'extern "C" __global__ void f(float* x, float* out)\n{\n'
    assert check("    out[tx] = x[tx];\n", x=x, head=head)
    finding = only(check("    x[tx] = out[tx];\n", x=x, head=head), "read-only")
    assert (finding.buffer, finding.element, finding.times) == ("x", 0, 64)
    assert not x.any()


TRANSPOSE = """\
    __shared__ float tile[32 * {row}];
    for (int i = 0; i < 32; ++i) tile[i * {row} + {write}] = x[i * 32 + tx];
    __syncwarp();
    for (int i = 0; i < 32; ++i) out[i * 32 + tx] = tile[tx * {row} + {read}];
"""


@pytest.mark.parametrize(
    ("row", "write", "read", "degree"),
    [(32, "tx", "i", 32), (33, "tx", "i", 1), (32, "(tx ^ i)", "(i ^ tx)", 1), (36, "tx", "i", 4)],
)
def test_bank_conflicts_of_a_transpose(row: int, write: str, read: str, degree: int) -> None:
    x, out = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    report = check(TRANSPOSE.format(row=row, write=write, read=read), x=x, out=out, block=32)
    assert report, str(report)
    np.testing.assert_array_equal(out.reshape(32, 32), x.reshape(32, 32).T)
    found = site(report, "tile", "reads")
    assert found.bank_conflict_degree == degree
    assert (found.requests, found.parts, found.least) == (32, 32 * degree, 32)
    assert site(report, "tile", "writes").bank_conflict_degree == 1


def test_a_wrong_swizzle_shows_in_the_values_or_in_the_conflicts() -> None:
    x, out = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    other = TRANSPOSE.format(row=32, write="(tx ^ i)", read="(i ^ (tx & 15))")
    assert check(other, x=x, out=out, block=32)
    assert (out.reshape(32, 32) != x.reshape(32, 32).T).any()
    weak = TRANSPOSE.format(row=32, write="(tx ^ (i & 3))", read="(i ^ (tx & 3))")
    report = check(weak, x=x, out=out, block=32)
    np.testing.assert_array_equal(out.reshape(32, 32), x.reshape(32, 32).T)
    assert site(report, "tile", "reads").bank_conflict_degree == 8


@pytest.mark.parametrize(
    ("stored", "loaded", "right", "degree"),
    [
        ("0", "0", True, 8),
        ("row % 8", "row % 8", True, 1),
        ("row / 2 % 4", "row / 2 % 4", True, 2),
        ("row % 8", "row / 2 % 8", False, 2),
    ],
)
def test_a_swizzle_of_rows_that_ldmatrix_loads(
    stored: str, loaded: str, right: bool, degree: int
) -> None:
    body = f"""\
    __shared__ __align__(16) unsigned short tile[16 * 64];
    for (int i = tx; i < 128; i += 32) {{
        const int row = i / 8;
        *(uint4*)&tile[row * 64 + ((i % 8) ^ ({stored})) * 8] = ((const uint4*)x)[i];
    }}
    __syncwarp();
    for (int k = 0; k < 8; k += 2) {{
        const int row = tx % 16;
        unsigned a0, a1, a2, a3;
        tw_ldmatrix_x4(a0, a1, a2, a3, &tile[row * 64 + ((k + tx / 16) ^ ({loaded})) * 8]);
        ((uint4*)out)[k / 2 * 32 + tx] = make_uint4(a0, a1, a2, a3);
    }}
"""
    x, out = np.arange(1024, dtype=np.uint16), np.zeros(1024, np.uint16)
    report = check(body, x=x.view(np.float32), out=out.view(np.float32), block=32)
    assert report, str(report)
    # lane, register, element -> row, column of each 16 by 16 part
    expected = x.reshape(2, 8, 4, 2, 4, 2).transpose(2, 1, 4, 3, 0, 5)
    assert np.array_equal(out.reshape(expected.shape), expected) == right
    assert site(report, "tile", "reads").bank_conflict_degree == degree


def test_wide_requests_go_by_parts_of_a_warp() -> None:
    body = """\
    __shared__ __align__(16) float tile[2048];
    for (int i = tx; i < 2048; i += 32) tile[i] = x[i];
    __syncwarp();
    const float4 row = *(float4*)&tile[tx * {stride}];
    const float2 half = *(float2*)&tile[tx * 2];
    out[tx] = row.x + half.x;
"""
    report = check(body.format(stride=4), block=32)
    wide, half = (s for s in report.sites if s.buffer == "tile" and s.action == "reads")
    assert (wide.bytes, wide.parts, wide.least, wide.worst) == (16, 4, 4, 1)
    assert (half.bytes, half.parts, half.least, half.worst) == (8, 2, 2, 1)
    wide, _ = (
        s
        for s in check(body.format(stride=32), block=32).sites
        if s.buffer == "tile" and s.action == "reads"
    )
    assert (wide.parts, wide.worst) == (32, 8)


@pytest.mark.parametrize(
    ("index", "sectors", "least", "efficiency"),
    [("tx", 4, 4, 1.0), ("tx * 32", 32, 4, 0.125), ("0", 1, 1, 1.0), ("tx + 1", 5, 4, 0.8)],
)
def test_sectors_of_a_request(index: str, sectors: int, least: int, efficiency: float) -> None:
    found = site(check(f"    out[tx] = x[{index}];\n", block=32), "x", "reads")
    assert (found.requests, found.parts, found.least) == (1, sectors, least)
    assert found.efficiency == efficiency
    assert found.bank_conflict_degree == 1


def test_a_shared_array_is_known_by_its_own_name_and_its_elements_by_their_size() -> None:
    body = """\
    __shared__ unsigned short tile_0[64];
    { __shared__ unsigned short tile_0[64]; tile_0[tx] = 2; out[tx] = tile_0[tx]; }
    tile_0[tx] = 1;
    out[tx] = tile_0[tx + 64];
"""
    finding = only(check(body), "out-of-bounds")
    assert (finding.buffer, finding.element) == ("tile_0", 64)


def test_a_barrier_that_nothing_needs_is_told_from_one_that_something_needs() -> None:
    body = """\
    __shared__ float tile[64];
    for (int i = 0; i < 8; ++i) {
        tile[tx] = x[i * 64 + tx];
        __syncthreads();
        out[i * 64 + tx] = tile[63 - tx];
        __syncthreads();
    }
    __syncthreads();
    out[512 + tx] = tile[63 - tx];
"""
    report = check(body, grid=1)
    assert report
    assert [(b.line, b.passed, b.needed) for b in report.barriers] == [
        *((7, 8, 8), (9, 8, 7), (11, 1, 0)),
    ]
    assert str(report.barriers[1]) == "line 9: passed 8 times, needed 7: __syncthreads();"


def test_lanes_that_take_other_ways_are_summed_up_together() -> None:
    body = """\
    if (tx < 20) out[tx] = x[tx];
    for (int i = tx; i < 100; i += 32) out[64 + i] = x[64 + i];
"""
    report = check(body, block=32)
    first, second = (s for s in report.sites if s.buffer == "x")
    assert (first.requests, first.parts) == (1, 3)
    assert (second.requests, second.parts) == (4, 13)
    assert str(second) == (
        "line 5: reads x, 4 bytes a thread: 4 requests, 13 sectors where 13 would do, 4 for the "
        "worst: for (int i = tx; i < 100; i += 32) out[64 + i] = x[64 + i];"
    )
    assert str(second) in report.table
