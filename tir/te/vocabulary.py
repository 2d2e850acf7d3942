"""Names that other systems give to what a definition does here: each is answered with ours.

The name -> what to write instead, or why there is no such thing; looked up where the module `te`
has no such name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import IRError, misspelt

NAMES: Mapping[str, str] = {
    "Func": "te.compute(shape, lambda i, j: ..., name=...)",
    "ImageParam": "te.placeholder(shape, dtype, name=...)",
    "RDom": "te.reduce_axis(extent)",
    "add": "te.compute(shape, lambda i, j: A[i, j] + B[i, j], name=...)",
    "arange": "te.compute((n,), lambda i: te.cast(i, dtype), name=...)",
    "build": "tilewright.build(schedule)",
    "call_extern": "te.extern(shape, dtype, inputs, source=..., symbol=..., reference=...)",
    "clamp": "te.minimum(te.maximum(x, low), high)",
    "clip": "te.minimum(te.maximum(x, low), high)",
    "concatenate": "te.compute(shape, lambda i: te.select(i < n, A[i], B[i - n]), name=...)",
    "create_prim_func": "te.func(inputs..., outputs..., name=...)",
    "create_schedule": "tilewright.Schedule(te.func(inputs..., outputs..., name=...))",
    "decl_buffer": "te.placeholder(shape, dtype, name=...)",
    "dot": "te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name=...)",
    "gather": "A[te.checked(I[i], extent)]",
    "if_then_else": "te.select(condition, x, y)",
    "indexdiv": "a // b",
    "indexmod": "a % b",
    "floordiv": "a // b",
    "floormod": "a % b",
    "matmul": "te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name=...)",
    "mean": "te.sum(x, axis=k), and a te.compute that divides it by the extent of k",
    "power": "te.pow(x, y)",
    "relu6": "te.minimum(te.relu(x), 6.0)",
    "scatter_add": "te.scatter(x, updates, places, axis=0, combining='add', name=...)",
    "silu": "x * te.sigmoid(x)",
    "softmax": "te.max, te.exp, te.sum and a division, each a te.compute",
    "take": "A[te.checked(I[i], extent)]",
    "transpose": "te.compute((n, m), lambda i, j: A[j, i], name=...)",
    "var": "the parameters of an element are its axes: te.compute(shape, lambda i, j: ...)",
    "leaky_relu": "te.select(x > 0, x, slope * x)",
    "lower": "schedule.show() prints the nest; tilewright.build(schedule) makes a kernel of it",
    "thread_axis": "sch.bind(loop, 'threadIdx.x') for a GPU, sch.parallel(loop) for a CPU",
    "where": "te.select(condition, x, y)",
}


class UnknownNameError(IRError, AttributeError):
    """The tensor-expression language has no such name."""


def unknown_name(name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for a name that `te` does not have; `known` are those that it has."""
    if name in NAMES:
        return UnknownNameError(
            f"te: no name '{name}'.", code="te-name", hints=(f"in tilewright: {NAMES[name]}.",)
        )
    message, hints = misspelt("te: no name", name, known, NAMES, "dir(te)")
    return UnknownNameError(message, code="te-name", hints=hints)
