"""Mistakes on the command line: title -> what is typed."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "A verb does not exist": "tilewright fly",
    "A verb is misspelt": "tilewright tun small.onnx",
    "A flag is misspelt": "tilewright run small.onnx --treads 2",
    "A model's name is forgotten": "tilewright run",
    "A model is not there": "tilewright run missing.onnx",
    "A budget is no number of seconds": "tilewright tune small.onnx --log s.jsonl --budget soon",
    "A budget is negative": "tilewright tune small.onnx --log s.jsonl --budget -5",
    "A log's name is forgotten": "tilewright tune small.onnx",
    "A log is not there": "tilewright log show missing.jsonl",
    "A log is a file of another kind": "tilewright log show notes.txt",
    "A size is no size": "tilewright run small.onnx --shapes x:two",
    "A target is unknown to the command line": "tilewright compile small.onnx --target llvm",
    "C is exported to no folder": "tilewright export-c small.onnx",
    "An action of the log is misspelt": "tilewright log shwo tuned.jsonl",
}
