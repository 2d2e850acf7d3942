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
ONNXRUNTIME = {"Cast float32 to int4": "it rounds to the nearest, ONNX towards 0"}
LEFT_OUT: Mapping[str, Mapping[str, str]] = {"onnxruntime": ONNXRUNTIME, "openvino": OPENVINO}
WHY: Mapping[str, str] = {}


def remark(table: Mapping[str, str], name: str) -> str:
    """What a table says of a name; "" for nothing."""
    return next((text for begin, text in table.items() if name.startswith(begin)), "")
