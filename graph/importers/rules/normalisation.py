"""Rules of the operators that normalise over channels."""

from __future__ import annotations

from ...ops import normalisation
from ..onnx_node import NodeReader, NotSupported
from .rule import Result, Rule


def _batch_normalization(node: NodeReader) -> Result:
    if node.integer("spatial", 1) != 1:
        raise NotSupported("spatial is 0")
    if node.flag("training_mode"):
        raise NotSupported("training_mode is 1")
    return normalisation.BatchNormalization(node.real("epsilon", 1e-5)), node.inputs


def _lrn(node: NodeReader) -> Result:
    alpha, beta, bias = node.real("alpha", 1e-4), node.real("beta", 0.75), node.real("bias", 1.0)
    return normalisation.LRN(node.integer("size"), alpha, beta, bias), node.inputs


RULES: dict[str, Rule] = {
    "BatchNormalization": Rule(
        (7, 9, 14, 15), ("epsilon", "momentum", "spatial", "training_mode"), _batch_normalization
    ),
    "LRN": Rule((1, 13), ("alpha", "beta", "bias", "size"), _lrn),
}
