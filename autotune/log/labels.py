"""Labels of functions for tables and figures: their names and sizes, no two of them alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from .record import Workload

_KEY_DIGITS = 6  # that tell functions of the same sizes apart


def labels(workloads: Iterable[Workload]) -> Mapping[str, str]:
    """The labels by the keys of the functions: the name and the sizes of the output, such as
    "conv_relu 1x64x56x56", or "dense 1-512x768" where calls decide one; where two are alike, also
    the sizes of the inputs, then digits of the key.
    """
    each = {workload.key: workload for workload in workloads}
    found = {key: f"{one.name} {_output(one.text)}".rstrip() for key, one in each.items()}
    for more in (_inputs, _digits):
        counts = Counter(found.values())
        found = {
            key: f"{label}{more(each[key])}" if counts[label] > 1 else label
            for key, label in found.items()
        }
    return found


def _header(text: str) -> str:
    """The first line, with the bounds of the sizes that calls decide in their places: 1-64."""
    header = text.partition("\n")[0]
    for name, low, high in re.findall(r"(v\d+): dim\((\d+), (\d+)\)", header):
        header = re.sub(rf"\b{name}\b", f"{low}-{high}", header)
    return header


def _output(text: str) -> str:
    """The sizes of the last output; empty for the text of another version."""
    header = _header(text)
    listed = re.findall(r"output\(\w+\[([\d, -]*)\]\)", header)
    return listed[-1].replace(", ", "x") if listed else ""


def _inputs(workload: Workload) -> str:
    header = _header(workload.text).partition("output(")[0]
    listed = [sizes.replace(", ", "x") for sizes in re.findall(r"\[([\d, -]+)\]", header)]
    return f" of {', '.join(listed)}" if listed else ""


def _digits(workload: Workload) -> str:
    return f" #{workload.key[:_KEY_DIGITS]}"
