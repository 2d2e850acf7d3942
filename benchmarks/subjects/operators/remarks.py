"""What is to be said of subjects, by how their names begin: which peer takes no part, since its
values are others, and why one takes more than 1.25 times as long as the better peer does.
"""

from __future__ import annotations

from collections.abc import Mapping

_BYTES = "its products of bytes round otherwise"
OPENVINO = {
    "BitShift": "it shifts words as signed ones",
    "Cast float32 to bfloat16": "its bytes are read as float16",
    "Cast float32 to float8": "its bytes are read as integers",
    "Div int": "its quotients of integers are others",
    "GroupQueryAttention": "its caches lack the new place",
    "MatMulNBits": "it rounds the data to bytes",
    "QuantizeLinear": _BYTES,
    "QLinear": _BYTES,
    "DynamicQuantizeMatMul": _BYTES,
    "MatMulIntegerToFloat": _BYTES,
    "Resize linear 3x480x640": "it does not widen the window",
    "Resize cubic 3x480x640": "it does not widen the window",
    "RandomNormal": "its numbers have a mean of 0.05",
}
LEFT_OUT: Mapping[str, Mapping[str, str]] = {"openvino": OPENVINO}
_GATHERED = "each neighbour is a gather, in each channel anew"
_SIDE_BY_SIDE = "what the phases give is laid side by side element by element"
_FIRST = "the result is brought to channels first element by element"
WHY: Mapping[str, str] = {
    "ConvTranspose": _SIDE_BY_SIDE,
    "Conv 3x3 3>": _FIRST,
    "Conv 10 1>512": _FIRST,
    "Conv 3x3 256>256 over 33x33, dilated 12": "taps that fall on padding are multiplied, too",
    "Conv 31x31": "taps that fall on padding, 48 in a hundred, are multiplied, too",
    "GlobalAveragePool 2048x7x7": "49 elements of a channel fill three vectors and a lane",
    "MatMul 64x4096x64 of a transpose": "the transpose is written out and read again",
    "ArgMax 1x21x256x256": "five comparisons a step, by which a NaN wins, and the first of equals",
    "Mod int32": "exact, without AVX-512 by a division of float64; OpenVINO's is of float32",
    "Mod int64": "exact, without AVX-512 one by one; OpenVINO's is of float32, wrong from 2**24 on",
    "Mod <fmod=1>": "exact for all floats; OpenVINO rounds a quotient, wrong where that is large",
    "NonZero 100x100x100": "each place searches the counts of words, from eight tables in turn",
    "Unique 4000": "a sorting network takes half of it, a search for each place a quarter",
    "TopK 5 of 64x1000": "the first of each block are ranked, then all blocks that may hold one",
    "MaxUnpool": "each place is checked to lie in its own window, and clamped along both axes",
    "NonMaxSuppression": "all boxes of a class are sorted, of which few are looked at",
    "Compress": "four kernels, of which each waits for what the one before found",
    "GatherElements": "places are int64 and checked: 8 at a time",
    "GridSample": _GATHERED,
    "DeformConv": "what is sampled is written out, turned, and read again by a product",
    "RandomUniform": "20 rounds of Threefry; OpenVINO has 10 of Philox",
    "DynamicQuantizeLinear": "the range takes a third of it, and is known before the first level",
    "QLinearSigmoid": "each sigmoid is computed; onnxruntime looks up one of 256",
    "QLinearAdd": "levels are widened to float32 and back, 16 at a time",
    "LRN": "a power by exp and log; OpenVINO takes square roots where it is 0.75",
}


def remark(table: Mapping[str, str], name: str) -> str:
    """What a table says of a name; "" for nothing."""
    return next((text for begin, text in table.items() if name.startswith(begin)), "")
