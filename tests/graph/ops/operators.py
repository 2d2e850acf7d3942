"""One or more of each core operator, with arrays that it takes: what a test asks of all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.graph.ops.activation import Elu, Sigmoid, Softsign
from tilewright.graph.ops.attention import Attention
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.block_matmul import BlockMatMul
from tilewright.graph.ops.convolution import Conv, ExactConv, IntegerConv
from tilewright.graph.ops.data_size import DataSize, SizeWithin
from tilewright.graph.ops.elementwise import Elementwise
from tilewright.graph.ops.finding import Coordinates, CountTrue, FindTrue, RunStarts, TrueWords
from tilewright.graph.ops.folding import Col2Im
from tilewright.graph.ops.functions import Cast, Tanh
from tilewright.graph.ops.gathering import Gather, GatherElements, GatherND
from tilewright.graph.ops.half_products import HalfConv, HalfMatMul
from tilewright.graph.ops.kept_boxes import KeptBoxes
from tilewright.graph.ops.layer_norm import LayerNormalization, RMSNormalization
from tilewright.graph.ops.linear_algebra.determinant import Det
from tilewright.graph.ops.linear_algebra.elimination import EliminationStep
from tilewright.graph.ops.logic import Where
from tilewright.graph.ops.matmul import Gemm, IntegerMatMul, MatMul, RowProducts
from tilewright.graph.ops.movement import Concat, Identity, Reshape, Transpose
from tilewright.graph.ops.normalisation import LRN, BatchNormalization
from tilewright.graph.ops.overlap import BoxCandidates, ChosenBoxes, ChosenCounts, OverlapStep
from tilewright.graph.ops.pool_places import MaxPoolPlaces, MaxUnpool
from tilewright.graph.ops.pooled_regions.adaptive import AdaptiveRoiAlign
from tilewright.graph.ops.pooled_regions.max_roi_pool import MaxRoiPool
from tilewright.graph.ops.pooled_regions.roi_align import RoiAlign
from tilewright.graph.ops.pooled_regions.spans import RoiBins, RoiPoints
from tilewright.graph.ops.pooling import AveragePool, GlobalAveragePool, MaxPool, SumPool
from tilewright.graph.ops.quantization import DynamicQuantizeLinear
from tilewright.graph.ops.random.places import CountAtMost
from tilewright.graph.ops.random.threefry_word import ThreefryWord
from tilewright.graph.ops.ranges import RangeLength, RangeValues
from tilewright.graph.ops.ranking import ArgMax, ArgMin, TopK
from tilewright.graph.ops.recurrent import LstmCell
from tilewright.graph.ops.reduction import (
    IntegerSum,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
)
from tilewright.graph.ops.registry import OPERATORS
from tilewright.graph.ops.repetition import Expand, Tile
from tilewright.graph.ops.resampling import Resample
from tilewright.graph.ops.resize import SAME, Places, Resize, Stretch
from tilewright.graph.ops.rotation import Rotation
from tilewright.graph.ops.rounded_blocks import RoundBlocks, RoundedBlockMatMul
from tilewright.graph.ops.sampling import SampleAt
from tilewright.graph.ops.scattering import (
    CacheUpdate,
    ReverseSequence,
    ScatterElements,
    ScatterND,
)
from tilewright.graph.ops.size_values import SizeRange, SizeValues
from tilewright.graph.ops.slicing import Pad, Slice, Spread
from tilewright.graph.ops.softmax import LogSoftmax, Softmax
from tilewright.graph.ops.trees import Forest
from tilewright.graph.ops.triangle import CumProd, CumSum, Trilu
from tilewright.graph.types import Array, TensorType


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """An operator and what it reads."""

    op: Operator
    arrays: tuple[Array, ...]

    @property
    def types(self) -> tuple[TensorType, ...]:
        return tuple(TensorType(array.dtype.name, array.shape) for array in self.arrays)

    def __str__(self) -> str:
        return f"{self.op} of {', '.join(map(str, self.types))}"


def numbers(*shape: int, dtype: str = "float32") -> Array:
    """Distinct numbers, none of them 0, in no order."""
    count = int(np.prod(shape))
    order = np.random.default_rng(count).permutation(count)
    return ((order + 1) / (2 if dtype.startswith("float") else 1)).astype(dtype).reshape(shape)


# records of two trees of three and two leaves, each of which reads three features
TREES = (
    np.array([0, 2, 1, 0, 0, 3, 1, 2], np.int32),
    np.array([4, 3.5, 5, np.nan, np.nan, np.nan, np.nan, np.nan], np.float32),
    np.array([2, 4, 6, 3, 4, 5, 6, 7], np.int32),
)
BOX_LISTS = (
    numbers(2, 5, 4),
    numbers(2, 2, 5),
    np.array([[[0, 2, 4], [1, 5, 5]], [[5, 5, 5], [3, 4, 5]]], np.int32),
)
CHOSEN = np.array([[[4, 0, -1], [1, -1, -1]], [[-1, -1, -1], [3, -1, -1]]], np.int32)
# the scores of boxes in their order, and their numbers
ORDERED = (
    np.array([[[4, 3, 2, 2, 1], [3, 2, -np.inf, -np.inf, -np.inf]]] * 2, np.float32),
    np.array([[[2, 0, 4, 1, 3], [1, 3, 0, 2, 4]], [[4, 3, 2, 1, 0], [0, 1, 2, 3, 4]]], np.int64),
)
WORDS = np.array([5, 0, -1, 1 << 31, 0, 0x70F0], np.int64).astype(np.int32)


def _candidates(share: float) -> tuple[Array, ...]:
    """What an OverlapStep takes in its first turn."""
    boxes, _, listed = BOX_LISTS
    left, *edges, best, _ = BoxCandidates().reference(*BOX_LISTS)
    none, turn = np.full((2, 2, 2), -1, np.int32), np.array(0)
    return left, none, best, turn, listed, *edges, boxes, np.array(share, np.float32)


REGIONS = np.array([[0, 1, 4, 4], [-1, 0, 2, 6], [3, 3, 3, 3]], np.float32)
SPANS = (
    np.array([[0, 2], [1, 1], [0, 0]], np.int32),
    np.array([[2, 1], [3, 0], [1, 1]], np.int32),
    np.array([[0], [2], [1]], np.int32),
    np.array([[2], [2], [1]], np.int32),
)


def _words(rows: int) -> Array:
    """Words whose bits are of no order."""
    drawn = np.random.default_rng(rows).integers(0, 1 << 32, (rows, 5), np.uint32)
    return drawn.view(np.int32)


# bits, and the words, scales and zeros of two blocks of 16 steps of 5 columns
BLOCKS: tuple[tuple[int, tuple[Array, ...]], ...] = (
    (2, (_words(2), numbers(2, 5))),
    (4, (_words(4), numbers(2, 5), numbers(2, 5, dtype="uint8"))),
    (8, (_words(8), numbers(2, 5), numbers(2, 5))),
)
ROUNDED: tuple[tuple[int, tuple[Array, ...]], ...] = tuple(
    (
        bits,
        (
            numbers(2, 32, dtype=kind),
            *(numbers(2, 2), numbers(2, 2), words, scales),
            *(zero.astype("float32") for zero in zeros),
        ),
    )
    for (bits, (words, scales, *zeros)), kind in zip(BLOCKS, ("int8", "int16", "int8"), strict=True)
)
PLACES = np.array([[[[0, 2], [9, 14]]]])


def samples() -> tuple[Sample, ...]:
    """Those of all operators."""
    return (
        *_elementwise(),
        *_others(),
        *_of_places(),
        *_between_elements(),
        *_of_data_sizes(),
    )


def _elementwise() -> list[Sample]:
    """Each on a tensor of the shape of its result, and others that broadcast to it."""
    shapes, found = ((2, 3, 4), (3, 1), (4,)), list[Sample]()
    for kind in OPERATORS:
        if issubclass(kind, Elementwise):
            least, most = kind.arity
            dtype = {"bool": "bool", "integer": "int32"}.get(kind.takes, "float32")
            dtype = "uint32" if kind is ThreefryWord else dtype
            op = kind("int32") if kind is Cast else kind()
            for count in {least, 2 if most is None else most}:
                arrays = [numbers(*shape, dtype=dtype) for shape in (*shapes, (1,))[:count]]
                if kind is Where:
                    arrays[0] = arrays[0] > 5
                found.append(Sample(op, tuple(arrays)))
    return found


def _moves() -> list[tuple[Operator, tuple[Array, ...]]]:
    """Of operators that move elements, and compute nothing."""
    x = numbers(2, 3, 4)
    return [
        (Concat(1), (x, numbers(2, 5, 4))),
        (Concat(0), (x,)),
        (Expand((5, 2, 3, 4)), (x,)),
        (Tile((1, 2, 3)), (x,)),
        (Identity(), (x,)),
        (Reshape((4, 6)), (x,)),
        (Transpose((1, 0, 2)), (x,)),
        (Transpose((1, 0, 2)), (numbers(1, 3, 4),)),
        (Transpose((0, 1, 2)), (x,)),
        (Pad((1, 0, 0), (0, 2, 0)), (x,)),
        (Pad((1, 0, 0), (0, 2, 0), "edge"), (x,)),
        (Slice((1, 2, 0), (1, 2, 4), (1, -1, 1)), (x,)),
        (Spread((1, 2, 3)), (x,)),
    ]


def _convolutions(image: Array) -> tuple[tuple[Operator, tuple[Array, ...]], ...]:
    return (
        (Conv(pads=(1, 1, 1, 1)), (image, numbers(3, 4, 3, 3), numbers(3))),
        (Conv(groups=2), (image, numbers(6, 2, 3, 3))),
        (
            IntegerConv(pads=(1, 1, 1, 1), zero=3),
            (numbers(1, 4, 5, 6, dtype="uint8"), numbers(3, 4, 3, 3, dtype="int8")),
        ),
        (
            ExactConv(pads=(1, 1, 1, 1), groups=4, zero=3),
            (numbers(1, 4, 5, 6, dtype="uint8"), np.rint(9 * numbers(4, 1, 3, 3))),
        ),
    )


def _others() -> tuple[Sample, ...]:
    x, rows, image = numbers(2, 3, 4), numbers(6, 5), numbers(2, 4, 5, 6)
    per_channel = tuple(numbers(4) for _ in range(4))
    found: list[tuple[Operator, tuple[Array, ...]]] = [
        *_moves(),
        (ArgMax(1), (x,)),
        (ArgMin(2, False), (x,)),
        (ArgMax(1, last=True), (x,)),
        (TopK(1, 2), (x,)),
        (DynamicQuantizeLinear(), (x,)),
        (Attention(2, 0.5), tuple(numbers(1, n, 2, 4) / 10 for n in (3, 5, 5))),
        (Attention(2, 0.5, masked=True), tuple(numbers(1, n, 2, 4) / 10 for n in (3, 5, 5))),
        (AveragePool((2, 2)), (image,)),
        (GlobalAveragePool(), (image,)),
        (MaxPool((2, 2), pads=(1, 1, 0, 0)), (image,)),
        (SumPool((2, 2), pads=(1, 1, 0, 0)), (image,)),
        (BatchNormalization(), (image, *per_channel)),
        (LRN(3), (image,)),
        *_convolutions(image),
        (CumSum(1), (x,)),
        (CumProd(1, True), (x,)),
        (Gather(1), (x, np.array([2, 0]))),
        (GatherElements(1), (x, np.array([[[2], [0]]]))),
        (GatherND(1), (x, np.array([[1], [2]]))),
        (Gemm(0.5, 2.0, False, True), (rows, numbers(7, 5), numbers(7))),
        *((op(), (x, numbers(*s))) for op, s in ((MatMul, (4, 3)), (RowProducts, (3, 4)))),
        *((BlockMatMul(bits, 16), (numbers(2, 19), *blocks)) for bits, blocks in BLOCKS),
        (RoundBlocks(8), (numbers(2, 19),)),
        *((RoundedBlockMatMul(bits, 16), given) for bits, given in ROUNDED),
        (IntegerMatMul(), (numbers(2, 3, dtype="uint8"), numbers(3, 4, dtype="int8"))),
        (IntegerMatMul((3, -5)), (numbers(2, 3, dtype="uint8"), numbers(3, 4, dtype="int8"))),
        (IntegerMatMul((0, 0), True), (numbers(2, 3, dtype="int8"), numbers(3, 4, dtype="uint8"))),
        (IntegerSum((1,)), (numbers(2, 3, dtype="int8"),)),
        (HalfMatMul(), (numbers(2, 3), numbers(3, 4).astype("float16"))),
        (HalfConv(), (image, numbers(3, 4, 3, 3).astype("float16"))),
        (LstmCell(Sigmoid(), Tanh(), Tanh()), tuple(numbers(6, 5) / 9 for _ in range(5))),
        (
            LstmCell(Elu(), Tanh(), Softsign(), 0.5, True, True),
            tuple(numbers(*shape) / 9 for shape in ((6, 5), (6, 5), (6, 5), (6, 5), (5,), (5,))),
        ),
        (LayerNormalization(1), (rows, numbers(5), numbers(5))),
        (RMSNormalization(1), (rows, numbers(5))),
        (RMSNormalization(1, inverse=True), (rows, numbers(5))),
        (Softmax((1,)), (rows,)),
        (LogSoftmax((1,)), (rows,)),
        (ReduceMax((1,)), (x,)),
        (ReduceMean((0, 2), False), (x,)),
        (ReduceMin((0,), False), (x,)),
        *((kind((2,)), (x / 10,)) for kind in (ReduceProd, ReduceSumSquare)),
        (ReduceSum((1,), False), (x,)),
        (Resize((2, 6, 4), (SAME, Places(1, 0, 2), SAME), "linear"), (x,)),
        (Resize((2, 7, 4), (SAME, Stretch("half_pixel"), SAME), "linear"), (x,)),
        (Resize((2, 3, 5), (SAME, SAME, Stretch("align_corners")), "ceil"), (x,)),
        (SizeRange(2, 4, 3), ()),
        (SizeValues((2, 5, 7), (3,)), ()),
        (Trilu(), (x,)),
    ]
    return tuple(Sample(op, arrays) for op, arrays in found)


def _of_places() -> tuple[Sample, ...]:
    x = numbers(2, 3, 4)
    found: list[tuple[Operator, tuple[Array, ...]]] = [
        (ScatterElements("none", 1), (x, np.array([[[2], [0]]]), numbers(1, 2, 1))),
        (ScatterElements("add", 1), (x, np.array([[[2], [2]]]), numbers(1, 2, 1))),
        (ScatterND(), (x, np.array([[0, 1], [1, -1]]), numbers(2, 4))),
        (ScatterND("mul"), (x, np.array([[0, 1], [0, 1]]), numbers(2, 4))),
        (CacheUpdate(1), (x, numbers(2, 2, 4), np.array([1, 0]))),
        (Rotation(4), (numbers(2, 3, 5, 6), numbers(2, 3, 2), numbers(2, 3, 2))),
        (ReverseSequence(1, 0), (x, np.array([3, 2]))),
        (Det(), (numbers(2, 3, 3),)),
        (EliminationStep(), (numbers(2, 3, 3), np.array([[0, 1, 2]] * 2, np.int32), np.array(1))),
        (CountAtMost(), (numbers(2, 5), numbers(2, 3))),
    ]
    return tuple(Sample(op, arrays) for op, arrays in found)


def _between_elements() -> tuple[Sample, ...]:
    """Those that take from between the elements of images, or say where in them they took from."""
    x, image = numbers(2, 3, 4), numbers(2, 4, 5, 6)
    found: list[tuple[Operator, tuple[Array, ...]]] = [
        (MaxPoolPlaces((2, 2), pads=(1, 1, 0, 0)), (image,)),
        (MaxUnpool((2, 2), (2, 2), (0, 0, 0, 0)), (numbers(1, 1, 2, 2), PLACES)),
        (MaxUnpool((3, 3), (2, 2), (0, 0, 0, 0)), (numbers(1, 1, 2, 2), PLACES)),
        (Col2Im((5, 4), (2, 3), (2, 1), (1, 1, 0, 1), (1, 1)), (numbers(2, 12, 12),)),
        (RoiAlign(2, 3, 2), (image, REGIONS, np.array([1, 0, 1]))),
        (RoiAlign(2, 3, 1, 0.5, False, True), (image, REGIONS, np.array([1, 0, 1]))),
        (RoiPoints(2, 5, 0.5, True), (REGIONS,)),
        (RoiBins(2, 5, 1.0, True), (REGIONS,)),
        (AdaptiveRoiAlign(3, 2), (image, REGIONS, np.array([1, 0, 1]), *SPANS)),
        (AdaptiveRoiAlign(2, 2, 0.5, False, True), (image, REGIONS, np.array([1, 0, 1]), *SPANS)),
        (MaxRoiPool(3, 2), (image, REGIONS, *SPANS)),
        (Resample(1), (x, np.array([0, 2, 1]), numbers(3, 2) / 9)),
        (Forest(2, 2), (numbers(5, 3), *TREES, numbers(4, 2))),
        (Forest(2, 2, "max"), (numbers(5, 3), *TREES, numbers(4, 2))),
        (SampleAt(), (image, numbers(2, 2, 3, 2) / 4)),
        (SampleAt("cubic", "reflection", True), (image, numbers(2, 2, 3, 2) / 4)),
    ]
    return tuple(Sample(op, arrays) for op, arrays in found)


def _of_data_sizes() -> tuple[Sample, ...]:
    found: list[tuple[Operator, tuple[Array, ...]]] = [
        (TrueWords(40), (numbers(40) > 10,)),
        (TrueWords(100), (numbers(64),)),
        (CountTrue(), (WORDS,)),
        (FindTrue(80, 200, 1), (WORDS,)),
        (FindTrue(130, 200), (WORDS,)),
        (Coordinates((2, 3, 4)), (np.array([0, 5, 23, 7]),)),
        (RunStarts(), (np.array([1, 1, 3, 3, 3, 4], np.float32),)),
        (BoxCandidates(), BOX_LISTS[:3]),
        (BoxCandidates(True), BOX_LISTS[:3]),
        (OverlapStep(), _candidates(0.25)),
        (OverlapStep(True), _candidates(0.0)),
        (ChosenCounts(), (CHOSEN,)),
        (ChosenBoxes(4), (CHOSEN, np.array([[2, 1], [0, 1]]))),
        (KeptBoxes(4), (BOX_LISTS[0], *ORDERED, np.array(0.01, np.float32))),
        (KeptBoxes(2, True), (BOX_LISTS[0], *ORDERED, np.array(0.25, np.float32))),
        (RangeLength(), (np.array(1.0), np.array(9.5), np.array(2.0))),
        (RangeValues(3), (np.array(1.0), np.array(0.5))),
        (DataSize(4), (np.array(4),)),
        (SizeWithin(4, "k"), (np.array(5),)),
    ]
    return tuple(Sample(op, arrays) for op, arrays in found)
