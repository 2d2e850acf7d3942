"""The blocks of a canonical form by family: what a statement of the nest is a part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....tir.buffer import Buffer, Load
from ....tir.dim import Extent
from ....tir.func import PrimFunc
from ....tir.stmt import Block, IterKind, IterVar, Role, Store
from ....tir.visit import loads, stores
from ...canonical import origin_of
from .affine import Undecided
from .externs import without_externs
from .nest import Statement


@dataclass(frozen=True, slots=True)
class Family:
    """A block of the canonical form: what the blocks of one family compute together."""

    name: str
    block: Block
    stores: tuple[Store, ...]

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of the tensors that the family computes: its own, where it is one."""
        if len(self.stores) == 1:
            return (self.name,)
        return tuple(store.buffer.name for store in self.stores)

    @property
    def is_reduction(self) -> bool:
        """Whether elements are accumulated over several points."""
        return self.block.init is not None

    def counterpart(self, statement: Statement) -> int:
        """Which of the stores a statement of the family is a copy of, by its place; in a block that
        lacks some, by the tensor behind its buffer.

        Raises: Undecided where neither tells.
        """
        if len(self.stores) == 1:
            return 0
        own = statement.block.init if statement.role is Role.INIT else None
        part = own if own is not None else statement.block.body
        mine, canon = stores(part), self.begun if statement.role is Role.INIT else self.stores
        if len(mine) == len(canon):
            return self._places(canon)[mine.index(statement.store)]
        tensor = origin_of(statement.store.buffer)
        named = [n for n, store in enumerate(canon) if store.buffer.name == tensor.name]
        if len(named) == 1:
            return self._places(canon)[named[0]]
        raise Undecided(f"block '{statement.name}' has another shape than family '{self.name}'")

    @property
    def begun(self) -> tuple[Store, ...]:
        """The stores of the initialisation."""
        return () if self.block.init is None else stores(self.block.init)

    def _places(self, canon: Sequence[Store]) -> list[int]:
        order = [store.buffer for store in self.stores]
        return [order.index(store.buffer) for store in canon]

    def iters(self, role: Role) -> tuple[IterVar, ...]:
        """The iteration variables of the family's blocks of a role: an INIT block has the spatial
        ones.
        """
        if role is not Role.INIT:
            return self.block.iters
        return tuple(it for it in self.block.iters if it.kind is IterKind.SPATIAL)


@dataclass(frozen=True, slots=True)
class Families:
    """The canonical form, by name. A tensor is named by the family that computes it, an input by
    its parameter.

    shapes: of each tensor; sources: the tensor that a family finds in a buffer, which several
    families may write in turn; results: the tensor that is left in each parameter's buffer.
    """

    blocks: Mapping[str, Family]
    shapes: Mapping[str, tuple[Extent, ...]]
    sources: Mapping[tuple[str, Buffer], str]
    results: Mapping[str, str]


def read_families(canonical: PrimFunc) -> Families:
    """The families and tensors of a canonical form. Raises: Undecided for two of one name."""
    blocks: dict[str, Family] = {}
    holds = {p.buffer: p.name for p in canonical.parameters if p.role != "output"}
    shapes = {p.name: p.buffer.extents for p in canonical.parameters if p.role != "output"}
    sources: dict[tuple[str, Buffer], str] = {}
    for block in without_externs(canonical).blocks:
        name = block.family or block.name
        found = stores(block.body)
        if block.role is not Role.COMPUTE or name in blocks:
            raise Undecided(f"block '{block.name}' is not the one block of its family")
        family = Family(name, block, found)
        blocks[name] = family
        mine: dict[Load, str] = {}
        for store, tensor in zip(found, family.tensors, strict=True):
            if tensor in shapes:
                raise Undecided(f"two tensors are called '{tensor}'")
            shapes[tensor] = store.buffer.extents
            if family.is_reduction:
                mine[Load(store.buffer, store.indices)] = tensor
            elif family.block.is_ordered:
                mine |= {load: tensor for load in loads(block.body) if load.buffer is store.buffer}
        for load in loads(block.body):
            held = mine.get(load, holds.get(load.buffer))
            if held is None:
                raise Undecided(f"block '{name}' reads '{load.buffer.name}', which nobody computes")
            sources[name, load.buffer] = held
        holds.update(zip((store.buffer for store in found), family.tensors, strict=True))
    results = {p.name: holds.get(p.buffer, "") for p in canonical.parameters}
    return Families(blocks, shapes, sources, results)
