"""What a schedule's names and handles stand for, and how a trace writes them.

Keys: "b0" the function's first own block, "b0.l1" its second loop, "p2" the third parameter,
"s3.l0" and "s3.b0" the first loop and the first block that step 3 made. A tensor is named by the
block that computes it, the second one of a block "b0.t1".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...tir.buffer import Buffer
from ...tir.errors import known_names
from ...tir.expr import Var
from ...tir.func import PrimFunc
from ...tir.visit import loops_below
from ..errors import Kind, ScheduleError, refuse
from ..nest import Rewrite, loops_around, targets_of


@dataclass(frozen=True, slots=True)
class LoopRef:
    """A handle of a loop, as `loops` and the primitives return it. `name` is for display."""

    key: str
    name: str

    def __repr__(self) -> str:
        return f"<loop {self.name}>"


@dataclass(frozen=True, slots=True)
class References:
    """The live loops and blocks of a schedule by key, and what became of the others."""

    loops: Mapping[str, Var]
    blocks: Mapping[str, str]
    consumed: Mapping[str, str]

    @staticmethod
    def of(func: PrimFunc) -> References:
        """The references to a function that no step has changed."""
        loops: dict[str, Var] = {}
        blocks: dict[str, str] = {}
        for number, block in enumerate(func.blocks):
            blocks[f"b{number}"] = block.name
            for position, loop in enumerate(loops_around(func, block)):
                if loop.var not in loops.values():
                    loops[f"b{number}.l{position}"] = loop.var
        return References(loops, blocks, {})

    def after(self, step: int, primitive: str, rewrite: Rewrite) -> References:
        """The references after a step: what it made is added, what it consumed is marked."""
        found = loops_below(rewrite.func.body)
        live = {loop.var for loop in found}
        names = {block.name for block in rewrite.func.blocks}
        forward = rewrite.forward or {}
        gone = {}
        for key, var in self.loops.items():
            if var not in live:
                into = ", ".join(repr(v.name) for v in forward.get(var, ()))
                gone[key] = f"step {step}, {primitive}" + (f", made {into} of it" if into else "")
        # what a step does not change is one object in all states, of which there are many
        consumed = {**self.consumed, **gone} if gone else self.consumed
        loops = {key: var for key, var in self.loops.items() if key not in gone}
        loops |= {f"s{step}.l{n}": var for n, var in enumerate(rewrite.loops)}
        known = set(loops.values())
        fresh = [loop.var for loop in found if loop.var not in known]
        loops |= {f"s{step}.m{n}": var for n, var in enumerate(fresh)}
        renamed = rewrite.renamed or {}
        kept = {key: renamed.get(name, name) for key, name in self.blocks.items()}
        blocks = {key: name for key, name in kept.items() if name in names}
        blocks |= {f"s{step}.b{n}": name for n, name in enumerate(rewrite.blocks)}
        return replace(self, loops=loops, blocks=blocks, consumed=consumed)

    def loop(self, func: PrimFunc, ref: object, primitive: str) -> Var:
        """The variable of the loop that a handle stands for. Raises: ScheduleError when a step
        consumed it.
        """
        if not isinstance(ref, LoopRef):
            raise ScheduleError(
                f"{primitive}: {ref!r} is not a loop handle.",
                code="loop-handle",
                hints=("loops are named by handles: i, j = sch.loops('C').",),
            )
        if ref.key in self.loops:
            return self.loops[ref.key]
        why = self.consumed.get(ref.key, "it belongs to another schedule")
        raise refuse(
            func,
            f"{primitive}: the handle of loop '{ref.name}' is stale: {why}.",
            code="stale-loop",
            kind=Kind.ARGUMENT,
            hints=("sch.loops(block) lists the loops as they are now.",),
        )

    def handle(self, var: Var) -> LoopRef:
        """The handle of a live loop."""
        return LoopRef(next(key for key, other in self.loops.items() if other is var), var.name)

    def made(self, step: int) -> tuple[tuple[LoopRef, ...], tuple[str, ...]]:
        """The loops and the blocks that a step made, as long as they live."""
        loop, block = f"s{step}.l", f"s{step}.b"
        loops = [var for key, var in self.loops.items() if key.startswith(loop)]
        blocks = [name for key, name in self.blocks.items() if key.startswith(block)]
        return tuple(map(self.handle, loops)), tuple(blocks)

    def block_key(self, func: PrimFunc, name: object, primitive: str) -> str:
        """The key of the block called `name`. Raises: ScheduleError with the blocks that exist."""
        for key, other in self.blocks.items():
            if other == name:
                return key
        raise refuse(
            func,
            f"{primitive}: no block '{name}'; '{func.name}' has "
            f"{known_names(str(name), self.blocks.values())}.",
            code="no-block",
            kind=Kind.ARGUMENT,
        )

    def tensor_key(self, func: PrimFunc, name: object, primitive: str) -> str:
        """The key of the tensor called `name`: a parameter, or what a block computes."""
        for position, parameter in enumerate(func.parameters):
            if parameter.name == name:
                return f"p{position}"
        named = {block.name: block for block in func.blocks}
        for key, block in self.blocks.items():
            for number, target in enumerate(targets_of(named[block])):
                if target.name == name:
                    return f"{key}.t{number}" if number else key
        tensors = [p.name for p in func.parameters] + [
            b.name for b in func.allocations if b.origin is None
        ]
        raise refuse(
            func,
            f"{primitive}: no tensor '{name}'; '{func.name}' has "
            f"{known_names(str(name), tensors)}.",
            code="no-tensor",
            kind=Kind.ARGUMENT,
        )

    def tensor(self, func: PrimFunc, key: str) -> Buffer:
        """The tensor of a key; of a staged copy the one that it keeps closer."""
        storage = self.storage(func, key)
        return storage.origin or storage

    def storage(self, func: PrimFunc, key: str) -> Buffer:
        """The buffer of a key: a tensor, or a staged copy of one."""
        if key.startswith("p"):
            return func.parameters[int(key[1:])].buffer
        block, _, number = key.partition(".t")
        return targets_of(func.block(self.blocks[block]))[int(number or 0)]
