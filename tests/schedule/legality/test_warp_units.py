"""schedule/legality/tensorized.py: nests that a warp computes together: text, values, proof,
replay, refusals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import tilewright as tw
from tilewright.codegen.lower.loops.erase_blocks import EraseBlocks
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.codegen.lower.vector.tensorize import Tensorize
from tilewright.driver.lower import lower_function
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.references import LoopRef
from tilewright.tir.errors import InternalError
from tilewright.tir.func import PrimFunc
from tilewright.tir.instructions.warp_products import WARP_PRODUCTS
from tilewright.tir.node import Node
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import For
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.equal import equal
from tilewright.tir.visit import transform

from ..grids import products_of_warps
from ..programs import assert_meaning_kept, body_of, refusals, scheduled

A100 = Target.parse("cuda:sm_80")
F16 = "mma_m16n8k16_f16"
Steps = Callable[[Schedule], object]


def halves(m: int, n: int, k: int, *, kind: str = "float16") -> PrimFunc:
    """C[i, j] = the sum of A[i, k] * B[k, j] in float32."""
    a, b = (te.placeholder(s, kind, name=name) for s, name in (((m, k), "A"), ((k, n), "B")))
    q = te.reduce_axis(k, name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(te.cast(a[i, q], "float32") * te.cast(b[q, j], "float32"), axis=q),
        name="C",
    )
    return te.func(a, b, c, name="halves")


def test_the_nest_keeps_its_loops_and_what_a_thread_holds_is_touched_element_by_element() -> None:
    sch = scheduled(halves(16, 8, 32), products_of_warps(F16, 16, warps=(1, 1), tiles=(1, 1)))
    text = body_of(sch)
    nest = text.partition("for i_4_j_3 in ")[2].splitlines()
    assert [line.strip() for line in nest[:4]] == [
        'bound(32, axis="threadIdx.x"):',
        f'for i_3 in tensorized(2, intrinsic="{F16}"):',
        "for j_4 in range(2):",
        "for k_2 in range(16):",
    ]
    lowered = str(assert_meaning_kept(sch))
    init = lowered.partition('init="C_cache"')[0].splitlines()[-3:-1]
    assert [line.strip() for line in init] == ["for i_3 in unrolled(2):", "for j_4 in unrolled(2):"]


def test_a_proof_reads_it_as_plain_loops() -> None:
    for product in WARP_PRODUCTS.values():
        element, total = str(product.element), str(product.total)
        a, b = (te.placeholder((40, 40), element, name=name) for name in "AB")
        k = te.reduce_axis(40, name="k")
        c = te.compute(
            (40, 40),
            lambda i, j, a=a, b=b, k=k, to=total: te.sum(
                te.cast(a[i, k], to) * te.cast(b[k, j], to), axis=k
            ),
            name="C",
        )
        sch = Schedule(te.func(a, b, c, name="square"), A100)
        sch.apply(products_of_warps(product.name, product.points))
        assert tw.prove(sch, A100).status == "proved"


def test_lowered_text_is_read_back() -> None:
    sch = Schedule(halves(16, 8, 32), A100)
    sch.apply(products_of_warps(F16, 16, warps=(1, 1), tiles=(1, 1)))
    run = lower_function(sch, A100).parts.run
    text = str(run)
    assert text.count(f'warp_sum("{F16}", (C_cache_0_0[()], C_cache_0_1[()], ') == 2
    assert text.count("rows(A_cache[") == 2
    assert text.count("columns(B_cache[") == 2
    assert equal(parse(text), run)


def test_a_nest_that_a_pass_has_changed_is_a_defect() -> None:
    sch = Schedule(halves(16, 8, 32), A100)
    sch.apply(products_of_warps(F16, 16, warps=(1, 1), tiles=(1, 1)))
    nest = EraseBlocks()(lower_to_nest(sch.func))

    def shorter(node: Node) -> Node:
        unit = isinstance(node, For) and node.intrinsic
        return replace(node, extent=1) if isinstance(node, For) and unit else node

    with pytest.raises(InternalError) as caught:
        Tensorize(A100)(nest.with_body(transform(nest.body, shorter)))
    assert str(caught.value).splitlines()[0] == (
        "InternalError: tensorize: the nest of loop 'i_3' is no longer 'mma_m16n8k16_f16': its "
        "loops are 'i_3' of 1, 'j_4' of 2, 'k_2' of 16; expected 2 halves of the rows, 2 columns "
        "and 16 reduction points, each directly inside the other. [lower-warp]"
    )


# -- refusals --------------------------------------------------------------------------------------


def lanes(sch: Schedule, *, rows: int = 8, bound: bool = True) -> tuple[LoopRef, LoopRef]:
    """C by lanes. Returns the loops of lanes and of halves."""
    i, j, k = sch.loops("C")
    i, half, group = sch.split(i, (None, 2, rows))
    j, place, pair = sch.split(j, (None, 4, 2))
    k, point = sch.split(k, (None, 16))
    sch.reorder(i, j, k, group, place, half, pair, point)
    lane = sch.fuse(group, place)
    if bound:
        sch.bind(i, "blockIdx.x")
        sch.bind(lane, "threadIdx.x")
    return lane, half


def on_lanes(**options: object) -> Steps:
    def steps(sch: Schedule) -> None:
        _, half = lanes(sch, **options)  # type: ignore[arg-type]
        sch.tensorize(half, F16)

    return steps


def of_neighbours(sch: Schedule) -> None:
    """A thread has rows that lie side by side."""
    i, j, k = sch.loops("C")
    i, group, half = sch.split(i, (None, 8, 2))
    j, place, pair = sch.split(j, (None, 4, 2))
    k, point = sch.split(k, (None, 16))
    sch.reorder(i, j, k, group, place, half, pair, point)
    lane = sch.fuse(group, place)
    sch.bind(i, "blockIdx.x")
    sch.bind(lane, "threadIdx.x")
    sch.tensorize(half, F16)


def in_registers(sch: Schedule) -> None:
    products_of_warps(F16, 16, warps=(1, 1), tiles=(1, 1))(sch)
    sch.set_scope("A_cache", "register")


def of_points(sch: Schedule) -> None:
    lane, _ = lanes(sch)
    del lane
    sch.tensorize(sch.loops("C")[-1], F16)


CASES: dict[str, tuple[PrimFunc, Steps]] = {
    "tensorize-match: no warp": (halves(16, 8, 16), on_lanes(bound=False)),
    "tensorize-match: half a warp": (halves(16, 8, 16), on_lanes(rows=4)),
    "tensorize-match: loops": (halves(16, 8, 16), of_points),
    "tensorize-match: rows": (halves(16, 8, 16), of_neighbours),
    "tensorize-match: types": (halves(16, 8, 16, kind="bfloat16"), on_lanes()),
    "tensorize-warp-guard": (halves(13, 8, 16), on_lanes()),
    "tensorize-match: registers": (halves(16, 8, 16), in_registers),
}


def on_a_cpu(sch: Schedule) -> None:
    _, half = lanes(sch, bound=False)
    sch.target = Target.parse("c:avx512")
    sch.tensorize(half, F16)


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    cases = {**CASES, "tensorize-target: a CPU": (halves(16, 8, 16), on_a_cpu)}
    golden("errors/schedule_warp_units.txt", refusals(cases))
