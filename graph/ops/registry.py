"""The closed set of core operators: every node of every Graph holds one of these."""

from __future__ import annotations

from .activation import Gelu, LeakyRelu, Relu, Sigmoid, Softplus
from .arithmetic import Add, Div, Max, Min, Mul, Pow, Sub, Sum
from .attention import Attention
from .base import Operator
from .convolution import Conv
from .functions import Abs, Cast, Ceil, Erf, Exp, Floor, Log, Round, Sqrt, Tanh
from .gathering import Gather, GatherElements, GatherND
from .layer_norm import LayerNormalization, RMSNormalization
from .logic import And, Equal, IsNaN, Less, LessOrEqual, Not, Or, Where
from .matmul import Gemm, MatMul
from .movement import Concat, Identity, Reshape, Transpose
from .normalisation import LRN, BatchNormalization
from .pooling import AveragePool, GlobalAveragePool, MaxPool
from .ranking import ArgMax, ArgMin, TopK
from .reduction import ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum
from .repetition import Expand, Tile
from .resize import Resize
from .slicing import Pad, Slice, Spread
from .softmax import LogSoftmax, Softmax
from .triangle import CumSum, Trilu

Spatial = Conv | MaxPool | AveragePool | GlobalAveragePool | BatchNormalization | LRN
Rows = LayerNormalization | LogSoftmax | RMSNormalization | Softmax
Movement = (
    Concat
    | Expand
    | Gather
    | GatherElements
    | GatherND
    | Pad
    | Slice
    | Spread
    | Tile
    | Transpose
    | Trilu
)

OPERATORS: tuple[type[Operator], ...] = (
    Abs,
    Add,
    And,
    ArgMax,
    ArgMin,
    Attention,
    AveragePool,
    BatchNormalization,
    Cast,
    Ceil,
    Concat,
    Conv,
    CumSum,
    Div,
    Equal,
    Erf,
    Exp,
    Expand,
    Floor,
    Gather,
    GatherElements,
    GatherND,
    Gelu,
    Gemm,
    GlobalAveragePool,
    Identity,
    IsNaN,
    LayerNormalization,
    LeakyRelu,
    Less,
    LessOrEqual,
    Log,
    LogSoftmax,
    LRN,
    MatMul,
    Max,
    MaxPool,
    Min,
    Mul,
    Not,
    Or,
    Pad,
    Pow,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Relu,
    Reshape,
    Resize,
    RMSNormalization,
    Round,
    Sigmoid,
    Slice,
    Softmax,
    Softplus,
    Spread,
    Sqrt,
    Sub,
    Sum,
    Tanh,
    Tile,
    TopK,
    Transpose,
    Trilu,
    Where,
)
