"""The closed set of core operators: every node of every Graph holds one of these."""

from __future__ import annotations

from .base import Operator
from .convolution import Conv
from .elementwise import Add, Mul, Relu, Sum
from .matmul import Gemm, MatMul
from .movement import Concat, Identity, Reshape, Transpose
from .normalisation import LRN, BatchNormalization
from .pooling import AveragePool, GlobalAveragePool, MaxPool
from .repetition import Expand, Tile
from .resize import Resize
from .slicing import Pad, Slice, Spread
from .softmax import Softmax
from .triangle import CumSum, Trilu

Spatial = Conv | MaxPool | AveragePool | GlobalAveragePool | BatchNormalization | LRN
Elementwise = Add | Mul | Sum | Relu
Movement = Concat | Expand | Pad | Slice | Spread | Tile | Transpose | Trilu

OPERATORS: tuple[type[Operator], ...] = (
    Add,
    AveragePool,
    BatchNormalization,
    Concat,
    Conv,
    CumSum,
    Expand,
    Gemm,
    GlobalAveragePool,
    Identity,
    LRN,
    MatMul,
    MaxPool,
    Mul,
    Pad,
    Relu,
    Reshape,
    Resize,
    Slice,
    Softmax,
    Spread,
    Sum,
    Tile,
    Transpose,
    Trilu,
)
