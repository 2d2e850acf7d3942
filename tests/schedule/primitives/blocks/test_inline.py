"""schedule/primitives/blocks/inline.py: text, values, replay, refusals."""

from __future__ import annotations

from collections.abc import Callable

import tilewright as tw
from tilewright.schedule.rules.shape.structure import inline_chains
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.te import te

from ...programs import blur, body_of, chain, conv, matmul_relu, refusals, scheduled


def test_the_expression_takes_the_place_of_each_read() -> None:
    sch = scheduled(blur(2, 3), lambda s: s.compute_inline("R"))
    assert body_of(sch) == (
        "for i in range(2):\n"
        "    for j in range(3):\n"
        '        with block("Y", vi=spatial(2, i), vj=spatial(3, j)):\n'
        "            Y[vi, vj] = X[vi, vj] + X[vi, vj + 1] + (X[vi + 1, vj] + X[vi + 1, vj + 1])"
    )


def test_padding_is_inlined_into_a_convolution() -> None:
    sch = scheduled(conv(5, 4, 2, 4), lambda s: s.compute_inline("X_pad"))
    assert "X_pad" not in body_of(sch)
    assert "select(1 <= vh + vr" in body_of(sch)


def test_a_chain_is_inlined_from_either_end() -> None:
    def forwards(sch: Schedule) -> None:
        sch.compute_inline("P")
        sch.compute_inline("Q")

    def backwards(sch: Schedule) -> None:
        sch.compute_inline("Q")
        sch.compute_inline("P")

    texts = {body_of(scheduled(chain(3, 5), steps)) for steps in (forwards, backwards)}
    assert len(texts) == 1
    assert "alloc" not in texts.pop()


def test_a_packed_copy_may_be_inlined_again() -> None:
    def steps(sch: Schedule) -> None:
        sch.compute_inline(sch.pack("B", 4))

    assert "B_packed" not in body_of(scheduled(matmul_relu(3, 7, 2), steps))


def test_a_staged_copy_of_what_is_only_read_may_be_inlined_again() -> None:
    def steps(sch: Schedule) -> None:
        sch.stage("Y", "Q", sch.loops("Y")[0], "thread")
        sch.compute_inline("Q_local_in")

    sch = scheduled(chain(3, 5), steps)
    assert body_of(sch) == body_of(Schedule(chain(3, 5)))
    assert tw.prove(sch, "c:avx512").status == "proved"


def _tile_inlined(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    sch.reorder(k, i, j)
    sch.stage("C", "C", i, "register")
    sch.compute_inline("C_reg_in")


def test_prefetches_of_an_inlined_tensor_go_with_it() -> None:
    def steps(sch: Schedule) -> None:
        i, j = sch.loops("Q")
        sch.prefetch("P", i, spread=(j,))
        sch.compute_inline("P")

    assert "prefetch" not in body_of(scheduled(chain(3, 5), steps))


def test_the_producer_stores_what_its_reader_makes_of_each_element() -> None:
    sch = scheduled(residual(3), lambda s: s.reverse_compute_inline("Y"))
    assert body_of(sch) == (
        "for i in range(3):\n"
        '    with block("Y", vi=spatial(3, i)):\n'
        "        Y[vi] = max(X[vi] * 2.0, 0.0) + X[vi]"
    )


def test_the_producer_keeps_its_loops_and_their_kinds() -> None:
    def steps(sch: Schedule) -> None:
        outer, inner = sch.split(sch.loops("P")[0], (None, 2), tail="mask")
        sch.parallel(outer)
        sch.vectorize(inner)
        sch.reverse_compute_inline("Y")

    text = body_of(scheduled(residual(5), steps))
    assert "for i_1 in vectorized(2):" in text
    assert "where(i_0 * 2 + i_1 < 5)" in text


# -- refusals --------------------------------------------------------------------------------------


def residual(n: int) -> PrimFunc:
    """Y = max(P, 0) + X, P = 2 X."""
    x = te.placeholder((n,), "float32", name="X")
    p = te.compute((n,), lambda i: x[i] * 2.0, name="P")
    y = te.compute((n,), lambda i: te.maximum(p[i], 0.0) + x[i], name="Y")
    return te.func(x, y, name="residual")


def shorter() -> PrimFunc:
    """Y reads the first two of three elements."""
    x = te.placeholder((3,), "float32", name="X")
    p = te.compute((3,), lambda i: x[i] * 2.0, name="P")
    return te.func(x, te.compute((2,), lambda i: p[i] + 1.0, name="Y"), name="shorter")


def joined() -> PrimFunc:
    """Y reads two tensors that are computed."""
    x = te.placeholder((3,), "float32", name="X")
    p = te.compute((3,), lambda i: x[i] * 2.0, name="P")
    q = te.compute((3,), lambda i: x[i] + 1.0, name="Q")
    return te.func(x, te.compute((3,), lambda i: p[i] + q[i], name="Y"), name="joined")


def _staged(sch: Schedule) -> None:
    sch.stage("Q", "P", sch.loops("Q")[0], "thread")
    sch.compute_inline("P")


def _uses_a_stage(sch: Schedule) -> None:
    sch.stage("P", "X", sch.loops("P")[0], "thread")
    sch.compute_inline("P")


def _operand_in_its_nest(sch: Schedule) -> None:
    sch.compute_at("P", sch.loops("Q")[0])
    sch.set_scope("P", "thread")
    sch.compute_inline("Q")


def _into_private_storage(sch: Schedule) -> None:
    i, _ = sch.loops("Y")
    sch.compute_at("Q", i)
    sch.set_scope("Q", "thread")
    sch.reverse_compute_inline("Q")


def tall() -> PrimFunc:
    """Two chains of forty operations, one reading the other."""

    def forty(read: te.Tensor, name: str) -> te.Tensor:
        def element(i: Expr) -> Expr:
            value: Expr = read[i]
            for _ in range(40):
                value = value + 1.0
            return value

        return te.compute((4,), element, name=name)

    x = te.placeholder((4,), "float32", name="X")
    return te.func(x, forty(forty(x, "P"), "Y"), name="tall")


def test_a_chain_is_inlined_as_far_as_the_compiler_takes_its_expression() -> None:
    sch = Schedule(tall())
    inline_chains(sch)
    assert sch.blocks() == ("P", "Y")


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "compute_inline: the copy of a tile that is written": (matmul_relu(2, 3, 2), _tile_inlined),
    "compute_inline: not-pointwise": (matmul_relu(2, 3, 2), lambda s: s.compute_inline("C")),
    "compute_inline: inline-growth": (tall(), lambda s: s.compute_inline("P")),
    "compute_inline: not-intermediate": (residual(3), lambda s: s.compute_inline("Y")),
    "compute_inline: tensor-staged": (chain(2, 3), _staged),
    "compute_inline: block-staged": (chain(2, 3), _uses_a_stage),
    "compute_inline: operand-inside": (chain(2, 3), _operand_in_its_nest),
    "reverse_compute_inline: not-pointwise": (
        matmul_relu(2, 3, 2),
        lambda s: s.reverse_compute_inline("Y"),
    ),
    "reverse_compute_inline: inline-producer": (
        joined(),
        lambda s: s.reverse_compute_inline("Y"),
    ),
    "reverse_compute_inline: no producer": (
        residual(3),
        lambda s: s.reverse_compute_inline("P"),
    ),
    "reverse_compute_inline: inline-element": (
        blur(2, 3),
        lambda s: s.reverse_compute_inline("Y"),
    ),
    "reverse_compute_inline: inline-shape": (
        shorter(),
        lambda s: s.reverse_compute_inline("Y"),
    ),
    "reverse_compute_inline: storage-elsewhere": (chain(2, 3), _into_private_storage),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_inline.txt", refusals(CASES))
