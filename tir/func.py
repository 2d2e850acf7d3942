"""PrimFunc: one kernel, parameters and body."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .buffer import Buffer
from .dim import Dim
from .errors import IRError, known_names
from .expr import Expr
from .extern import ExternFunction
from .node import Node
from .stmt import Alloc, Block, Extern, Parameter, Seq, Stmt
from .text.nest import nest_html
from .text.printer import print_expr, print_header, print_stmt
from .visit import blocks, statements


@dataclass(frozen=True, slots=True, eq=False)
class PrimFunc(Node):
    """A function of buffers.

    parameters: inputs and constants first, outputs last.
    body: the loop nests; a tensor that is neither input nor output lives in an Alloc around them.
    sizes: dims that no input tells and that a call has to say.
    facts: linear forms of dims that are negative in no call, which whoever calls it sees to.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: Stmt
    sizes: tuple[Dim, ...] = ()
    facts: tuple[Expr, ...] = ()

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The arguments of a call that are read: inputs, without constants."""
        return tuple(p.buffer for p in self.parameters if p.role == "input")

    @property
    def constants(self) -> tuple[Buffer, ...]:
        """The parameters that are bound when a kernel is built."""
        return tuple(p.buffer for p in self.parameters if p.role == "constant")

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The parameters that are written."""
        return tuple(p.buffer for p in self.parameters if p.role == "output")

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The sizes that a call decides, in the order of the parameters that have them; then those
        that it has to say.
        """
        found = (dim for p in self.parameters for dim in p.buffer.dims if dim is not None)
        return tuple(dict.fromkeys((*found, *self.sizes)))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks, in the order of the text."""
        return blocks(self.body)

    @property
    def allocations(self) -> tuple[Buffer, ...]:
        """The buffers that the body allocates, in the order of the text."""
        return tuple(node.buffer for node in statements(self.body) if isinstance(node, Alloc))

    @property
    def externs(self) -> tuple[ExternFunction, ...]:
        """The C functions that it calls, each once, in the order of the text."""
        found = (node.function for node in statements(self.body) if isinstance(node, Extern))
        return tuple(dict.fromkeys(one for one in found if isinstance(one, ExternFunction)))

    @property
    def signature(self) -> str:
        """Its name and its parameters, in one line."""
        header, _ = print_header(self.name, self.dims, self.parameters)
        return header.removeprefix("def ").removesuffix(":")

    def block(self, name: str) -> Block:
        """The block called `name`. Raises: IRError with the blocks that exist."""
        for block in self.blocks:
            if block.name == name:
                return block
        raise IRError(
            f"function '{self.name}': no block '{name}'; it has "
            f"{known_names(name, (b.name for b in self.blocks))}.",
            code="func-no-block",
        )

    def with_body(self, body: Stmt) -> PrimFunc:
        """This function with another body; the same object when it is the same body."""
        return self if body is self.body else replace(self, body=body)

    def __str__(self) -> str:
        header, names = print_header(self.name, self.dims, self.parameters)
        facts = "".join(f"\n    assume({print_expr(fact, names)} >= 0)" for fact in self.facts)
        return f"{header}{facts}\n{print_stmt(self.body, names, indent=1)}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return nest_html(str(self), self.body)


def split_allocations(body: Stmt) -> tuple[tuple[Buffer, ...], tuple[Stmt, ...]]:
    """The buffers allocated at the root of a body, and the statements below them."""
    buffers: list[Buffer] = []
    while isinstance(body, Alloc):
        buffers.append(body.buffer)
        body = body.body
    return tuple(buffers), body.body if isinstance(body, Seq) else (body,)
