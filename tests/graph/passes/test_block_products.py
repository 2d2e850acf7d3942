"""BlockProducts: which weights stay levels, in which blocks, and which become floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
from ml_dtypes import int2, int4, uint4

from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add, Mul, Sub
from tilewright.graph.ops.block_matmul import BlockMatMul, dequantised
from tilewright.graph.ops.functions import Cast
from tilewright.graph.ops.matmul import Gemm, MatMul
from tilewright.graph.ops.movement import Reshape, Transpose
from tilewright.graph.ops.repetition import Expand
from tilewright.graph.passes.block_products import BlockProducts
from tilewright.graph.passes.grid_block_products import GridBlockProducts
from tilewright.graph.passes.pipeline import GraphPass, left_out, run_by
from tilewright.graph.types import Array, Floats, TensorType, owned
from tilewright.tir.target.target import Target

from .quantised import Quantised

Apply = Callable[[GraphPass, Graph], Graph]
K, N = 96, 48
RNG = np.random.default_rng(0)
LEVELS = RNG.integers(-8, 8, (K, N)).astype(int4)
SCALES = RNG.uniform(0.01, 0.1, (3, N)).astype(np.float32)  # of blocks of 32
ZEROS = RNG.integers(-8, 8, (3, N)).astype(int4)


class Net(Quantised):
    """A product of 2 x 5 rows of an input and weights."""

    def __init__(self, dtype: str = "float32") -> None:
        super().__init__()
        self.x = self.input("x", TensorType(dtype, (2, 5, K)))

    def spread(self, table: Array) -> str:
        """Numbers of blocks for each row, as DequantizeLinear is spelled."""
        blocks, columns = table.shape
        value = self.add(Reshape((blocks, 1, columns)), self.array(table))
        value = self.add(Expand((blocks, K // blocks, columns)), value)
        return self.add(Reshape((K, columns)), value)

    def blocked(self, levels: Array, scales: Array, zeros: Array | None = None) -> str:
        w = self.constant(self.fresh("w"), owned(levels))
        return self.real(w, self.spread(scales), "" if zeros is None else self.spread(zeros))

    def product(self, weights: str) -> Graph:
        self.add(MatMul(), self.x, weights, output="y")
        return self.finish(("y",))


def the_product(graph: Graph) -> tuple[BlockMatMul, list[Array]]:
    (node,) = [node for node in graph.nodes if isinstance(node.op, BlockMatMul)]
    tables = [np.asarray(graph.constants[name]) for name in node.inputs[1:]]
    return cast(BlockMatMul, node.op), tables


def weights_of(graph: Graph) -> Floats:
    op, (levels, scales, *zeros) = the_product(graph)
    return dequantised(op.bits, op.group, levels, cast(Floats, scales), *zeros)[:K]


def expected(levels: Array, scales: Array, zeros: Array | None = None) -> Floats:
    rows = np.repeat(scales, K // len(scales), axis=0)
    less = np.repeat(zeros, K // len(zeros), axis=0) if zeros is not None else np.zeros(())
    return (levels.astype(np.float32) - less.astype(np.float32)) * rows


@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("kind", [int4, uint4, np.int8, np.uint8])
def test_blocks_stay_packed(apply: Apply, kind: type, has_zeros: bool) -> None:
    least = {int4: -8, uint4: 0, np.int8: -128, np.uint8: 0}[kind]
    most = {int4: 8, uint4: 16, np.int8: 128, np.uint8: 256}[kind]
    levels = RNG.integers(least, most, (K, N)).astype(kind)
    zeros = RNG.integers(least, most, (3, N)).astype(kind) if has_zeros else None
    net = Net()
    made = apply(BlockProducts(), net.product(net.blocked(levels, SCALES, zeros)))
    op, (words, scales, *_) = the_product(made)
    assert op == BlockMatMul(4 if kind in (int4, uint4) else 8, 32)
    assert words.nbytes == K * N * op.bits // 8
    assert scales.shape == (3, N)
    assert np.array_equal(weights_of(made), expected(levels, SCALES, zeros))


def test_zeros_that_are_supposed_are_not_stored(apply: Apply) -> None:
    net = Net()
    levels = LEVELS.astype(np.int8) + np.int8(8)
    zeros = np.full((3, N), 8, np.int8)
    made = apply(BlockProducts(), net.product(net.blocked(levels, SCALES, zeros)))
    assert len(the_product(made)[1]) == 2
    assert np.array_equal(weights_of(made), expected(levels, SCALES, zeros))


@pytest.mark.parametrize(
    ("kind", "ends", "bits"),
    [
        (int2, (-2, 1), 2),
        (int4, (-8, 7), 4),
        (np.int8, (-8, 7), 4),
        (np.int8, (-8, 8), 8),
        (np.uint8, (0, 15), 4),
        (np.uint8, (0, 16), 8),
    ],
)
def test_levels_take_as_few_bits_as_hold_them(
    apply: Apply, kind: type, ends: tuple[int, int], bits: int
) -> None:
    levels = RNG.integers(ends[0], ends[1] + 1, (K, N)).astype(kind)
    levels[0, :2] = ends
    net = Net()
    made = apply(BlockProducts(), net.product(net.blocked(levels, SCALES)))
    assert the_product(made)[0].bits == bits
    assert np.array_equal(weights_of(made), expected(levels, SCALES))


@pytest.mark.parametrize("rows", [1, 2])
def test_scales_of_columns_or_of_all_are_those_of_one_block(apply: Apply, rows: int) -> None:
    net = Net()
    scale = SCALES[:1] if rows == 1 else SCALES[:1, :1]
    w = net.real(net.constant("w", owned(LEVELS)), net.array(scale))
    made = apply(BlockProducts(), net.product(w))
    assert the_product(made)[0] == BlockMatMul(4, K)
    assert np.array_equal(weights_of(made), expected(LEVELS, np.broadcast_to(scale, (1, N))))


def test_the_last_block_may_be_cut_and_words_be_filled_up(apply: Apply) -> None:
    net = Net()
    scales = np.concatenate([np.repeat(SCALES[:1], 64, axis=0), np.repeat(SCALES[1:2], 32, axis=0)])
    w = net.real(net.constant("w", owned(LEVELS)), net.array(scales))
    made = apply(BlockProducts(), net.product(w))
    op, (words, few) = the_product(made)
    assert (op, words.shape, few.shape) == (BlockMatMul(4, 64), (16, N), (2, N))
    assert np.array_equal(weights_of(made), LEVELS.astype(np.float32) * scales)


def test_rows_that_fill_no_word_are_filled_up(apply: Apply) -> None:
    net, levels = Net(), LEVELS[:90]
    x = net.input("z", TensorType("float32", (7, 90)))
    net.add(MatMul(), x, net.real(net.constant("w", owned(levels)), net.array(SCALES[0])))
    made = apply(BlockProducts(), net.finish(("matmul",)))
    op, (words, few) = the_product(made)
    assert (op, words.shape, few.shape) == (BlockMatMul(4, 96), (12, N), (1, N))
    assert np.array_equal(weights_of(made)[:90], levels.astype(np.float32) * SCALES[0])


def test_rows_of_columns_as_pytorch_has_them(apply: Apply) -> None:
    """Groups of the last axis of [N, K], then turned."""
    net = Net()
    grouped = net.add(Reshape((N * 3, 32)), net.constant("w", owned(LEVELS.T.copy())))
    scales, zeros = (net.array(one.T.reshape(-1, 1)) for one in (SCALES, ZEROS))
    turned = net.add(Reshape((N, K)), net.real(grouped, scales, zeros))
    made = apply(BlockProducts(), net.product(net.add(Transpose((1, 0)), turned)))
    assert the_product(made)[0] == BlockMatMul(4, 32)
    assert np.array_equal(weights_of(made), expected(LEVELS, SCALES, ZEROS))


@pytest.mark.parametrize("has_zeros", [False, True])
def test_integers_that_what_follows_scales_have_scales_of_1(apply: Apply, has_zeros: bool) -> None:
    net = Net()
    w = net.add(Cast("float32"), net.constant("w", owned(LEVELS)))
    if has_zeros:
        w = net.add(Sub(), w, net.add(Cast("float32"), net.spread(ZEROS)))
    net.add(Mul(), net.add(MatMul(), net.x, w), net.array(SCALES[0]), output="y")
    made = apply(BlockProducts(), net.finish(("y",)))
    assert the_product(made)[0] == BlockMatMul(4, 32 if has_zeros else K)
    ones = np.ones((1, N), np.float32)
    assert np.array_equal(weights_of(made), expected(LEVELS, ones, ZEROS if has_zeros else None))


def test_a_gemm_keeps_its_bias_and_products_that_share_weights_share_levels(apply: Apply) -> None:
    net = Net()
    rows = net.add(Reshape((10, K)), net.x)
    w = net.real(net.constant("w", owned(LEVELS.T.copy())), net.array(SCALES[:1].T))
    bias = net.array(RNG.standard_normal(N, np.float32))
    net.add(Gemm(trans_b=True), rows, w, bias, output="y")
    net.add(Gemm(trans_b=True), rows, w, output="z")
    made = apply(BlockProducts(), net.finish(("y", "z")))
    products = [node for node in made.nodes if isinstance(node.op, BlockMatMul)]
    assert len(products) == 2
    assert products[0].inputs == products[1].inputs
    assert sum(isinstance(node.op, Add) for node in made.nodes) == 1


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_products_of_16_bits_have_scales_of_16_bits(apply: Apply, kind: str) -> None:
    def graph(scales: Array) -> Graph:
        net = Net(kind)
        return net.product(net.add(Cast(kind), net.blocked(LEVELS, scales)))

    plain = np.round(SCALES * 128) / np.float32(128)
    made = apply(BlockProducts(), graph(plain))
    assert the_product(made)[1][1].dtype == kind
    rounded = graph(SCALES)
    assert BlockProducts()(rounded) is rounded


def test_levels_stay_packed_where_a_rule_unpacks_them() -> None:
    both: tuple[GraphPass, ...] = (BlockProducts(), GridBlockProducts())
    for name in ("c:avx512", "c:avx2", "c:neon"):
        assert run_by(both, Target.parse(name)) == both[:1]
    for name in ("cuda:sm_80", "cuda:sm_90a"):
        assert run_by(both, Target.parse(name)) == both[1:]
    reports = left_out(both, Target.parse("c:scalar"))
    assert [report.problem for report in reports] == [
        f"it pays on {where}, and the target is 'c:scalar'"
        for where in ("avx512 and avx2 and neon", "cuda")
    ]


@pytest.mark.parametrize(
    ("kind", "rows", "packed"),
    [
        *(("float32", 1, True), ("float32", 500, True), ("float16", 8, True)),
        *(("float16", 9, False), ("bfloat16", 8, True), ("bfloat16", 9, False)),
    ],
)
def test_many_rows_of_16_bits_are_for_tensor_cores(
    apply: Apply, kind: str, rows: int, packed: bool
) -> None:
    net = Net(kind)
    net.x = net.input("rows", TensorType(kind, (2, rows, K)))
    scales = np.full((3, N), 0.25, np.float32)
    w = net.blocked(LEVELS, scales)
    graph = net.product(w if kind == "float32" else net.add(Cast(kind), w))
    made = apply(GridBlockProducts(), graph)
    assert any(isinstance(node.op, BlockMatMul) for node in made.nodes) == packed


@pytest.mark.parametrize(
    "case",
    [
        *("few", "no words", "no number", "zeros between", "zeros below", "wider zeros", "a run"),
        *("moved to", "floats", "scaled"),
    ],
)
def test_other_weights_become_floats(case: str) -> None:
    net = Net()
    levels, scales, zeros = LEVELS, SCALES, ZEROS
    match case:
        case "few":
            levels, scales, zeros = levels[:, :4], scales[:, :4], zeros[:, :4]
        case "no words":
            scales = np.repeat(scales, 8, axis=0) * np.arange(1, 25, dtype=np.float32)[:, None]
        case "no number":
            scales = np.where(np.arange(N) == 3, np.float32(np.inf), scales)
        case "zeros between":
            zeros = zeros.astype(np.float32) + np.float32(0.5)
        case "zeros below":
            levels, zeros = levels.astype(np.int8), np.full(zeros.shape, -100, np.int8)
        case "floats":
            levels = levels.astype(np.float32)
    if case == "zeros between":
        w = net.add(Cast("float32"), net.constant("w", owned(levels)))
        w = net.add(Mul(), net.add(Sub(), w, net.spread(zeros)), net.spread(scales))
    elif case == "wider zeros":
        w = net.add(Cast("float32"), net.constant("w", owned(levels[:, :1].copy())))
        w = net.add(Sub(), w, net.add(Cast("float32"), net.spread(zeros)))
        w = net.add(Mul(), w, net.spread(scales))
    elif case == "a run":
        w = net.real(net.input("w", TensorType("int8", (K, N))), net.spread(scales))
    elif case == "moved to":
        w = net.add(Add(), net.blocked(levels, scales), net.number(1.0))
    else:
        w = net.blocked(levels, scales, zeros)
    if case == "scaled":
        rows = net.add(Reshape((10, K)), net.x)
        net.add(Gemm(alpha=2.0), rows, w, output="y")
        graph = net.finish(("y",))
    else:
        graph = net.product(w)
    assert BlockProducts()(graph) is graph
