"""Which nodes of models an operator of others is: what its declaration says of each front end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class OnnxRule:
    """Which nodes of ONNX models an operator is.

        OnnxRule("my.ops", "Mish", (1, 2))

    Nodes named Mish of the domain my.ops in its opsets 1 and 2. Their inputs are the operator's, in
    order, and their attributes its fields, by name; one that is no field is refused.

    build: where that does not say it, a function of the node, a `NodeReader`
    (`graph/importers/onnx/node.py`), that gives an operator with the names of its inputs, as in
    `return Mish(node.real("alpha", 1.0)), node.inputs`; nodes on the way are made by `node.emit`
    and `node.spell`. attributes: the names that `build` reads. outputs: how many of the node's
    outputs it knows; by default those of the operator.
    """

    domain: str
    name: str
    versions: tuple[int, ...] = (1,)
    build: Callable[..., object] | None = None
    attributes: tuple[str, ...] = ()
    outputs: int | None = None

    def __str__(self) -> str:
        return f"{self.domain or 'ai.onnx'}.{self.name} of ONNX"

    @property
    def key(self) -> str:
        """What the table of import rules calls the operator."""
        return self.name if self.domain in ("", "ai.onnx") else f"{self.domain}.{self.name}"


@dataclass(frozen=True, slots=True)
class AtenRule:
    """Which nodes of programs of PyTorch an operator is.

        AtenRule("my::mish")

    Calls of torch.ops.my.mish; "my::mish.out" names an overload. Arguments that are tensors are the
    operator's inputs, in order, and the others its fields, by name; one that is no field is
    refused.

    build: where that does not say it, a function of a writer, an `AtenWriter`
    (`graph/importers/aten/writer.py`), and of the arguments, by the names and with the defaults of
    the operator's schema, that gives the results, as in `return writer.emit(Mish(alpha), x)`.
    """

    target: str
    build: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return f"{self.target} of PyTorch"

    @property
    def key(self) -> str:
        """What the table of rules calls the operator: "my.mish"."""
        return self.target.replace("::", ".", 1).removesuffix(".default")
