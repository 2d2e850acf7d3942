"""Rules of operators that ONNX took over later, in the form that they have here."""

from __future__ import annotations

from .....errors import ModelError
from .....ops import movement
from ...node import NodeReader, NotSupported
from ..rule import ImportRule, Result, Several
from .spelling import whole, whole_list

# what ONNX calls the modes of a GridSample
_SAMPLING = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}


def _expand_dims(node: NodeReader) -> Result:
    axis = node.whole(1)
    return movement.Identity(), (node.spell("Unsqueeze", node.value(0), whole_list(node, (axis,))),)


def _gather_nd(node: NodeReader) -> Result:
    return movement.Identity(), (node.spell("GatherND", *node.inputs),)


def _grid_sample(node: NodeReader) -> Result:
    mode = node.text("mode", "bilinear")
    if mode not in _SAMPLING:
        raise NotSupported(f"mode is '{mode}'; known are {', '.join(_SAMPLING)}")
    padding, corners = node.text("padding_mode", "zeros"), node.integer("align_corners", 0)
    y = node.spell(
        "GridSample",
        *node.inputs,
        mode=_SAMPLING[mode],
        padding_mode=padding,
        align_corners=corners,
    )
    return movement.Identity(), (y,)


def _pad(node: NodeReader) -> Result:
    """Pads may stand in an array of one row, the value in an array of one element."""
    pads = node.spell("Reshape", node.value(1), whole_list(node, (-1,)))
    value = _scalar(node, 2) if node.has(2) else ""
    y = node.spell("Pad", node.value(0), pads, value, mode=node.text("mode", "constant"))
    return movement.Identity(), (y,)


def _range(node: NodeReader) -> Result:
    step = _scalar(node, 2) if node.has(2) else node.number(1)
    return movement.Identity(), (node.spell("Range", _scalar(node, 0), _scalar(node, 1), step),)


def _scalar(node: NodeReader, position: int) -> str:
    """An input of one element as one without axes."""
    value, type_ = node.value(position), node.type(position)
    if type_.elements != 1:
        raise ModelError(
            f"model: {node.title} has the input '{value}' of type {type_}; expected one element.",
            code="onnx-one-element",
        )
    return node.spell("Squeeze", value) if type_.rank else value


def _rfft(node: NodeReader) -> Result:
    """[..., n] -> [..., n / 2 + 1, 2]: real and imaginary part of half of the Fourier transform."""
    _check_transform(node)
    parts = node.spell("Unsqueeze", node.value(0), whole_list(node, (-1,)))
    y = node.spell("DFT", parts, "", whole(node, -2), onesided=1)
    return movement.Identity(), (y,)


def _irfft(node: NodeReader) -> Result:
    """[..., n / 2 + 1, 2] -> [..., n], the inverse of Rfft for an even n."""
    _check_transform(node)
    y = node.spell("DFT", node.value(0), "", whole(node, -2), inverse=1, onesided=1)
    return movement.Identity(), (node.spell("Squeeze", y, whole_list(node, (-1,))),)


def _check_transform(node: NodeReader) -> None:
    given = {"onesided": 1, "normalized": 0, "signal_ndim": 1}
    for name, known in given.items():
        if node.integer(name, known) != known:
            raise NotSupported(f"{name} is {node.integer(name)}; known is {known}")


def _trilu(node: NodeReader) -> Result:
    y = node.spell("Trilu", *node.inputs, upper=node.integer("upper", 1))
    return movement.Identity(), (y,)


def _unique(node: NodeReader) -> Result:
    """The distinct elements in the order of their first places, where each element of the input is
    among them, and how often each occurs.
    """
    y, _, places, counts = node.spell_all("Unique", 4, node.value(0), sorted=0)
    return Several(tuple((movement.Identity(), (value,)) for value in (y, places, counts)))


_TRANSFORM = ("normalized", "onesided", "signal_ndim")
RULES: dict[str, ImportRule] = {
    "com.microsoft.ExpandDims": ImportRule((1,), (), _expand_dims),
    "com.microsoft.GatherND": ImportRule((1,), (), _gather_nd),
    "com.microsoft.GridSample": ImportRule(
        (1,), ("align_corners", "mode", "padding_mode"), _grid_sample
    ),
    "com.microsoft.Irfft": ImportRule((1,), _TRANSFORM, _irfft),
    "com.microsoft.Pad": ImportRule((1,), ("mode",), _pad),
    "com.microsoft.Range": ImportRule((1,), (), _range),
    "com.microsoft.Rfft": ImportRule((1,), _TRANSFORM, _rfft),
    "com.microsoft.Trilu": ImportRule((1,), ("upper",), _trilu),
    "com.microsoft.Unique": ImportRule((1,), (), _unique, outputs=3),
}
