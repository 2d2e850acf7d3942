"""Operators of ONNX's standard that are no computation of numbers by numbers: what they are, and
what to do instead.
"""

from __future__ import annotations

from ...limits import TEXT

_PICTURES = (
    "decode pictures in the program that prepares the input, and give the model their pixels."
)
_TRAINING = "export the model for inference; tilewright runs models and trains none."
_OF_TEXT = ("works on text, and tilewright computes with numbers", TEXT)

OUT_OF_SCOPE = {
    "ImageDecoder": ("decodes the file of a picture", _PICTURES),
    "RegexFullMatch": _OF_TEXT,
    "StringConcat": _OF_TEXT,
    "StringNormalizer": _OF_TEXT,
    "StringSplit": _OF_TEXT,
    "ai.onnx.preview.training.Gradient": ("differentiates the graph that it stands in", _TRAINING),
}
