"""Rules of convolution and pooling with activations fused in, or with the channels last."""

from __future__ import annotations

from .....ops import arithmetic, movement
from ...node import NodeReader
from ..quantized_products import CONVOLUTION
from ..rule import ImportRule, Result
from ..window import WINDOW, stated
from .activations import activated
from .spelling import channels_first, channels_last

_FUSED = (*CONVOLUTION, "activation", "activation_params")


def _fused_conv(node: NodeReader) -> Result:
    """activation(Conv(x, w, bias) + z)"""
    inputs = [node.optional(n) for n in range(3)]
    y = node.spell("Conv", *inputs, **stated(node, CONVOLUTION))
    return movement.Identity(), (_finished(node, y),)


def _nhwc_conv(node: NodeReader) -> Result:
    return movement.Identity(), (_last_conv(node),)


def _nhwc_fused_conv(node: NodeReader) -> Result:
    return movement.Identity(), (_finished(node, _last_conv(node)),)


def _last_conv(node: NodeReader) -> str:
    """The convolution of data whose channels come last; the weights are as in Conv."""
    data = channels_first(node, node.value(0))
    inputs = [node.optional(n) for n in (1, 2)]
    return channels_last(node, node.spell("Conv", data, *inputs, **stated(node, CONVOLUTION)))


def _finished(node: NodeReader, value: str) -> str:
    """The summand and the activation of a convolution."""
    if node.has(3):
        value = node.emit(arithmetic.Add(), value, node.value(3))
    return activated(
        node, value, node.reals("activation_params") if node.given("activation_params") else ()
    )


def _nhwc_max_pool(node: NodeReader) -> Result:
    data = channels_first(node, node.value(0))
    pooled = node.spell("MaxPool", data, **stated(node, (*WINDOW, "ceil_mode")))
    return movement.Identity(), (channels_last(node, pooled),)


def _transposed_with_pads(node: NodeReader) -> Result:
    """ConvTranspose whose pads are an input, which must be a constant."""
    given = stated(node, (*CONVOLUTION, "output_padding"))
    if node.has(2):
        given["pads"] = node.sizes(2)
    bias = node.optional(3)
    y = node.spell("ConvTranspose", node.value(0), node.value(1), bias, **given)
    return movement.Identity(), (y,)


RULES: dict[str, ImportRule] = {
    "com.microsoft.ConvTransposeWithDynamicPads": ImportRule(
        (1,), (*CONVOLUTION, "output_padding"), _transposed_with_pads
    ),
    "com.microsoft.FusedConv": ImportRule((1,), _FUSED, _fused_conv),
    "com.microsoft.NhwcConv": ImportRule((1,), CONVOLUTION, _nhwc_conv),
    "com.microsoft.NhwcFusedConv": ImportRule((1,), _FUSED, _nhwc_fused_conv),
    "com.microsoft.NhwcMaxPool": ImportRule((1,), (*WINDOW, "ceil_mode"), _nhwc_max_pool),
}
