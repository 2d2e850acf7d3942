"""The canonical print: what a function computes and how, independent of every name in it; and its
SHA-256, the workload key.

Buffers become t0, t1, ..., variables v0, v1, ..., blocks and families b0, b1, ..., each numbered by
first use; the function becomes f. The key is an address in logs that live for years: whatever
changes the canonical print of an existing function raises VERSION.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from ..buffer import Buffer
from ..dim import Dim
from ..expr import Expr, Var
from ..func import PrimFunc
from ..index_check import IndexCheck
from ..node import Node
from ..stmt import Block
from ..visit import replace_buffers, substitute, transform, walk

VERSION = 1


def canonical(func: PrimFunc) -> PrimFunc:
    """The same function with every name replaced by its number."""
    buffers: dict[Buffer, Buffer] = {}
    dims = {dim: replace(dim, name=f"v{n}") for n, dim in enumerate(func.dims)}
    variables: dict[Var, Expr] = dict(dims.items())
    blocks: dict[str, str] = {}
    for parameter in func.parameters:
        _buffer(parameter.buffer, buffers, dims)
    for node in walk(func.body):
        if isinstance(node, Buffer):
            _buffer(node, buffers, dims)
        elif isinstance(node, Var):
            variables.setdefault(node, Var(f"v{len(variables)}", node.type))
        elif isinstance(node, Block):
            for name in (node.name, node.family):
                blocks.setdefault(name, f"b{len(blocks)}")

    def rename(node: Node) -> Node:
        if isinstance(node, Block):
            return replace(node, name=blocks[node.name], family=blocks[node.family])
        return node

    body = substitute(replace_buffers(func.body, buffers), variables)
    parameters = tuple(
        replace(p, buffer=buffers[p.buffer], check=_nameless(p.check)) for p in func.parameters
    )
    sizes = tuple(dims[dim] for dim in func.sizes)
    facts = tuple(substitute(fact, variables) for fact in func.facts)
    return PrimFunc("f", parameters, transform(body, rename), sizes, facts)


def _nameless(check: IndexCheck | None) -> IndexCheck | None:
    if check is None:
        return None
    return IndexCheck("value", check.extent if isinstance(check.extent, int) else "size")


def _buffer(buffer: Buffer, renamed: dict[Buffer, Buffer], numbered: Mapping[Dim, Dim]) -> Buffer:
    """The numbered buffer that stands for `buffer`; its origin is numbered before it."""
    if buffer not in renamed:
        origin = None if buffer.origin is None else _buffer(buffer.origin, renamed, numbered)
        dims = tuple(None if dim is None else numbered[dim] for dim in buffer.dims)
        name = f"t{len(renamed)}"
        renamed[buffer] = replace(buffer, name=name, origin=origin, dims=dims)
    return renamed[buffer]


def canonical_print(func: PrimFunc) -> str:
    """The text of a function with every name replaced by its number."""
    return str(canonical(func))


def workload_key(func: PrimFunc) -> str:
    """The SHA-256, in hexadecimal, of the canonical print and the version of its form."""
    text = f"tilewright workload {VERSION}\n{canonical_print(func)}\n"
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
