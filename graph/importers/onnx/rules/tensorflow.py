"""Rules of operators that tf2onnx, and with it Keras, writes into a file though ONNX has none of
that name: it says that they are not supported, and leaves the nodes of TensorFlow as they are.
"""

from __future__ import annotations

from ....ops import functions
from .rule import ImportRule, plain

RULES: dict[str, ImportRule] = {
    # not ONNX: of 1 - erf(x), which Keras's gelu is made of
    "Erfc": ImportRule((1,), (), plain(functions.Erfc()), foreign=True),
}
