"""The closed set of core operators: every node of every Graph holds one of these."""

from __future__ import annotations

from .base import Operator
from .convolution import Conv
from .elementwise import Add, Mul, Relu, Sum
from .matmul import Gemm, MatMul
from .movement import Concat, Identity, Reshape, Transpose
from .normalisation import LRN, BatchNormalization
from .pooling import AveragePool, GlobalAveragePool, MaxPool
from .softmax import Softmax

Spatial = Conv | MaxPool | AveragePool | GlobalAveragePool | BatchNormalization | LRN
Elementwise = Add | Mul | Sum | Relu

OPERATORS: tuple[type[Operator], ...] = (
    Add,
    AveragePool,
    BatchNormalization,
    Concat,
    Conv,
    Gemm,
    GlobalAveragePool,
    Identity,
    LRN,
    MatMul,
    MaxPool,
    Mul,
    Relu,
    Reshape,
    Softmax,
    Sum,
    Transpose,
)
