"""The page of ONNX's operators: which are read, in which versions and element types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from tests.graph.importers.onnx_support import ELEMENTS, Support, Version, find_support

HEAD = """\
# ONNX operators

Which operators of ONNX {onnx} are read, found by reading ONNX's own node tests in each version of
an operator that opsets since 7 have, and there with each element type that ONNX allows. Older
opsets are brought to 7 by ONNX's converter. Text and complex numbers are never read.

A version is the opset that brought it. `T: ...` are the element types of a type variable of the
operator; one that stands under *refused* has its reason there. No types: the operator has none
to choose, or no node test has one node of that version, and the rules say that it is read.
Axes, shapes, pads and the like must be constants of the model, follow from shapes, or be said by
`tw.compile(constants=...)`. How many of ONNX's node tests are right, and why the others are not, is
in [onnx_expected.txt](../../tests/graph/onnx_expected.txt). This page is generated:
[how](README.md).
"""
CONTRIBUTED = """\
ONNX has no schemas of onnxruntime's own operators. These are read, and held against onnxruntime in
`tests/graph/importers/onnx/rules/microsoft`:"""
NAMES = {"": "ai.onnx"}
FAMILIES = ("int", "uint", "float")
ORDINARY = ("8", "16", "32", "64")


def operator_page(
    onnx: str, found: Mapping[str, Mapping[str, Sequence[Version]]], contributed: Iterable[str]
) -> str:
    """The Markdown of the page. found: by domain, the versions of its operators; contributed: the
    operators of com.microsoft.
    """
    lines = [HEAD.format(onnx=onnx)]
    for domain, operators in found.items():
        lines += [f"## {NAMES.get(domain, domain)}", ""]
        lines += ["| operator | versions | element types | refused |", "|---|---|---|---|"]
        lines += [line for name, of in operators.items() for line in operator_lines(name, of)]
        lines.append("")
    names = ", ".join(f"`{name}`" for name in sorted(contributed))
    return "\n".join([*lines, "## com.microsoft", "", CONTRIBUTED, "", f"{names}.", ""])


def operator_lines(name: str, versions: Iterable[Version]) -> list[str]:
    """The rows of an operator: versions that are alike in one."""
    found = [(version.schema.since_version, _cells(find_support(version))) for version in versions]
    lines = []
    for cells, of in groupby(found, lambda item: item[1]):
        numbers = ", ".join(str(since) for since, _ in of)
        lines.append(f"| {name} | {numbers} | {cells[0]} | {cells[1]} |")
    return lines


def _cells(support: Support) -> tuple[str, str]:
    if support.why:
        return "none", _reason(support.why)
    read = [f"{name}: {_types(types)}" for name, types in support.read.items() if types]
    refused = []
    for name, reasons in support.refused.items():
        ordered = sorted(reasons.items(), key=lambda item: _reason(item[1], item[0]))
        for why, of in groupby(ordered, lambda item: _reason(item[1], item[0])):
            refused.append(f"{name}: {_types([type_ for type_, _ in of])} ({why})")
    return "; ".join(read), "; ".join(refused)


def _types(types: Iterable[str]) -> str:
    """Element types, several widths of one kind as a range."""
    left = [name for name in ELEMENTS if name in set(types)]
    words = []
    while left:
        kind = left[0].rstrip("0123456789")
        widths = [w for w in ORDINARY if kind in FAMILIES and f"{kind}{w}" in left]
        known = [w for w in ORDINARY if f"{kind}{w}" in ELEMENTS]
        if len(widths) > 2 and f"{kind}{widths[0]}" == left[0]:
            run = known[known.index(widths[0]) : known.index(widths[-1]) + 1]
            if run == widths:
                words.append(f"{kind}{widths[0]}-{widths[-1]}")
                left = [name for name in left if name not in {f"{kind}{w}" for w in widths}]
                continue
        words.append(left.pop(0))
    return " ".join(words)


def _reason(text: str, type_: str = "") -> str:
    """What a refusal says, without its class and its code; "this" is the element type that it is
    about.
    """
    text = re.sub(r"^\w+Error: |\s*\[[a-z0-9-]+\]$", "", text).rstrip(".")
    text = re.sub(rf"\b{type_}\b", "this", text) if type_ else text
    return text.replace("|", "\\|")
