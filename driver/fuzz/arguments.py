"""Random arguments for each primitive, most of them sensible, some not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from ...schedule.nest import buffers_read, readers, target_of, writers
from ...schedule.schedule import Schedule
from ...schedule.trace.references import LoopRef
from ...tir.buffer import Buffer
from ...tir.expr import Select
from ...tir.instructions.instructions import INSTRUCTIONS
from ...tir.stmt import IterKind
from ...tir.visit import free_vars, loads, stores

Arguments = Mapping[str, object]


class NothingToTry(Exception):
    """There is nothing that the primitive could be tried on."""


def _block(sch: Schedule, rng: Random) -> str:
    return rng.choice(sch.blocks())


def _loop(sch: Schedule, rng: Random, block: str) -> LoopRef:
    loops = sch.loops(block)
    if not loops:
        raise NothingToTry
    return rng.choice(loops)


def _any_loop(sch: Schedule, rng: Random) -> LoopRef:
    return _loop(sch, rng, _block(sch, rng))


def _buffers(sch: Schedule) -> list[Buffer]:
    return [*(p.buffer for p in sch.func.parameters), *sch.func.allocations]


def _tensor(sch: Schedule, rng: Random) -> str:
    return rng.choice(_buffers(sch)).name


def _own(sch: Schedule, rng: Random) -> Buffer:
    """An intermediate tensor that is no staged part of another one."""
    inner = [buffer for buffer in sch.func.allocations if buffer.origin is None]
    if not inner:
        raise NothingToTry
    return rng.choice(inner)


def _reducing(sch: Schedule, rng: Random) -> str:
    """A block with a reduction, nearly always."""
    found = [
        block.name
        for block in sch.func.blocks
        if any(it.kind is IterKind.REDUCE for it in block.iters)
    ]
    if not found or rng.random() < 0.05:
        raise NothingToTry
    return rng.choice(found)


def _pair(sch: Schedule, rng: Random) -> tuple[str, str]:
    """A block and one that reads what it makes."""
    pairs = computed_and_used(sch)
    if not pairs:
        raise NothingToTry
    return rng.choice(pairs)


def computed_and_used(sch: Schedule) -> list[tuple[str, str]]:
    return [
        (block.name, user.name)
        for block in sch.func.blocks
        for user in readers(sch.func, target_of(block))
        if user.name != block.name
    ]


# -- the arguments of each primitive --------------------------------------------------------------


def _split(sch: Schedule, rng: Random) -> Arguments:
    loop = _any_loop(sch, rng)
    factors: list[int | None] = [rng.choice((1, 2, 2, 3, 4, 4, 5, 8))]
    if rng.random() < 0.3:
        factors.append(rng.randint(1, 4))
    factors.insert(rng.choice((0, 0, len(factors))), None)
    tail = rng.choice(("guard", "partition", "mask"))
    return {"loop": loop, "factors": tuple(factors), "tail": tail}


def _fuse(sch: Schedule, rng: Random) -> Arguments:
    loops = sch.loops(_block(sch, rng))
    if len(loops) < 2:
        raise NothingToTry
    start = rng.randrange(len(loops) - 1)
    return {"loops": loops[start : start + rng.randint(2, 3)]}


def _reorder(sch: Schedule, rng: Random) -> Arguments:
    loops = sch.loops(_block(sch, rng))
    if len(loops) < 2:
        raise NothingToTry
    return {"loops": tuple(rng.sample(loops, rng.randint(2, len(loops))))}


def _parallel(sch: Schedule, rng: Random) -> Arguments:
    loops = sch.loops(_block(sch, rng))
    if not loops:
        raise NothingToTry
    return {"loop": loops[0] if rng.random() < 0.6 else rng.choice(loops)}


def _vectorize(sch: Schedule, rng: Random) -> Arguments:
    loops = sch.loops(_block(sch, rng))
    if not loops:
        raise NothingToTry
    return {"loop": loops[-1] if rng.random() < 0.7 else rng.choice(loops)}


def _unroll(sch: Schedule, rng: Random) -> Arguments:
    return {"loop": _any_loop(sch, rng)}


def _annotate(sch: Schedule, rng: Random) -> Arguments:
    key, value = rng.choice((("stream", 1), ("unroll_hint", 1), ("unroll_hint", 4)))
    return {"loop": _any_loop(sch, rng), "key": key, "value": value}


def _blockize(sch: Schedule, rng: Random) -> Arguments:
    return {"loop": _any_loop(sch, rng)}


def _tensorize(sch: Schedule, rng: Random) -> Arguments:
    """Of what is hardly ever an intrinsic: a refusal, which must have a text."""
    return {"loop": _any_loop(sch, rng), "intrinsic": rng.choice(tuple(INSTRUCTIONS))}


def _compute_at(sch: Schedule, rng: Random) -> Arguments:
    block, user = _pair(sch, rng)
    return {"block": block, "loop": _loop(sch, rng, user)}


def _reverse_compute_at(sch: Schedule, rng: Random) -> Arguments:
    block, user = _pair(sch, rng)
    loop = _loop(sch, rng, block)
    return {"block": user, "loop": loop, "at": rng.choice(("each", "last"))}


def _compute_inline(sch: Schedule, rng: Random) -> Arguments:
    return {"block": _pair(sch, rng)[0]}


def _reverse_compute_inline(sch: Schedule, rng: Random) -> Arguments:
    func = sch.func
    plain = {  # blocks that do no more than map one tensor
        block.name
        for block in func.blocks
        if len(set(buffers_read(block))) == 1
        and not any(it.kind is IterKind.REDUCE for it in block.iters)
    }
    users = sorted({user for _, user in computed_and_used(sch) if user in plain})
    return {"block": rng.choice(users) if users else _pair(sch, rng)[1]}


def _cache_read(sch: Schedule, rng: Random) -> Arguments:
    block = rng.choice(sch.func.blocks)
    read = [b.name for b in _buffers(sch) if any(u is block for u in readers(sch.func, b))]
    if not read:
        raise NothingToTry
    return {"block": block.name, "buffer": rng.choice(read)}


def _cache_write(sch: Schedule, rng: Random) -> Arguments:
    return {"block": _block(sch, rng)}


def _stage(sch: Schedule, rng: Random) -> Arguments:
    block = rng.choice(sch.func.blocks)
    near = [b.name for b in _buffers(sch) if any(u is block for u in readers(sch.func, b))]
    near.append(target_of(block).name)
    return {
        "block": block.name,
        "buffer": rng.choice(near),
        "loop": _loop(sch, rng, block.name),
        "scope": rng.choice(("register", "thread", "thread")),
    }


def _transform_layout(sch: Schedule, rng: Random) -> Arguments:
    buffer = _own(sch, rng) if rng.random() < 0.95 else rng.choice(_buffers(sch))
    axes = [f"i{n}" for n in range(len(buffer.shape))]
    if not axes:
        raise NothingToTry
    parts = list(axes)
    if rng.random() < 0.7:
        split, width = rng.choice(axes), rng.randint(1, 4)
        parts = [axis for axis in axes if axis != split]
        parts += [f"{split} // {width}", f"{split} % {width}"]
    rng.shuffle(parts)
    index_map = f"lambda {', '.join(axes)}: ({', '.join(parts)},)"
    return {"buffer": buffer.name, "index_map": index_map}


def _decompose_reduction(sch: Schedule, rng: Random) -> Arguments:
    block = _reducing(sch, rng)
    return {"block": block, "loop": _loop(sch, rng, block)}


def _rfactor(sch: Schedule, rng: Random) -> Arguments:
    block = _reducing(sch, rng)
    return {"block": block, "loop": _loop(sch, rng, block)}


def _pad(sch: Schedule, rng: Random) -> Arguments:
    buffer = _own(sch, rng)
    return {"buffer": buffer.name, "multiples": tuple(rng.randint(1, 4) for _ in buffer.shape)}


def _pad_axes(sch: Schedule, rng: Random) -> Arguments:
    """Mostly as far as the tensors that the block reads have room."""
    buffer = _own(sch, rng)
    block = rng.choice(writers(sch.func, buffer) or (sch.func.block(_block(sch, rng)),))
    multiples = []
    for axis in block.iters:
        read = [load for load in loads(block.body) if load.buffer is not buffer]
        rooms = [
            room
            for load in read
            for item, room in zip(load.indices, load.buffer.shape, strict=True)
            if axis.var in free_vars(item)
        ]
        most = min(rooms, default=2 * axis.extent)
        fit = [m for m in range(1, axis.extent + 4) if -(-axis.extent // m) * m <= most]
        multiples.append(rng.choice(fit or (1,)) if rng.random() < 0.9 else rng.randint(1, 3))
    return {"block": block.name, "multiples": tuple(multiples)}


def _decompose_padding(sch: Schedule, rng: Random) -> Arguments:
    padded = [
        block.name
        for block in sch.func.blocks
        if isinstance(stores(block.body)[0].value, Select) and sch.loops(block.name)
    ]
    if not padded:
        raise NothingToTry
    block = rng.choice(padded)
    loops = sch.loops(block)
    return {"block": block, "loop": loops[0] if rng.random() < 0.5 else rng.choice(loops)}


def _prefetch(sch: Schedule, rng: Random) -> Arguments:
    loops = sch.loops(_block(sch, rng))
    if not loops:
        raise NothingToTry
    start = rng.randrange(len(loops))
    return {
        "buffer": _tensor(sch, rng),
        "at": loops[start],
        "spread": loops[start + 1 :][: rng.randint(0, 2)],
        "distance": rng.randint(0, 2),
        "rw": rng.choice(("read", "write")),
        "level": rng.randint(1, 3),
    }


def _pack(sch: Schedule, rng: Random) -> Arguments:
    return {"buffer": _tensor(sch, rng), "width": rng.randint(2, 4)}


def _loop_partition(sch: Schedule, rng: Random) -> Arguments:
    loop = _any_loop(sch, rng)
    last = max(1, sch.extent(loop) - 1)
    points = sorted({rng.randint(1, last) for _ in range(rng.randint(1, 2))})
    return {"loop": loop, "points": tuple(points)}


def _merge(sch: Schedule, rng: Random) -> Arguments:
    outer = [sch.loops(name)[0] for name in sch.blocks() if sch.loops(name)]
    outer = list(dict.fromkeys(outer))
    if len(outer) > 1 and rng.random() < 0.8:
        start = rng.randrange(len(outer) - 1)
        return {"loops": tuple(outer[start : start + 2])}
    return {"loops": (_any_loop(sch, rng), _any_loop(sch, rng))}


def _add_unit_loop(sch: Schedule, rng: Random) -> Arguments:
    return {"block": _block(sch, rng)}


def _reindex(sch: Schedule, rng: Random) -> Arguments:
    block = rng.choice(sch.func.blocks)
    read = buffers_read(block)
    if not read:
        raise NothingToTry
    return {"block": block.name, "buffer": rng.choice(read).name}


def _join_axes(sch: Schedule, rng: Random) -> Arguments:
    """Of neighbours of one kind, nearly always."""
    iters = sch.func.block(name := _block(sch, rng)).iters
    groups: list[tuple[int, ...]] = []
    for n, it in enumerate(iters):
        alike = n > 0 and (iters[n - 1].kind is it.kind or rng.random() < 0.05)
        last = groups.pop() if alike and rng.random() < 0.5 else ()
        groups.append((*last, n))
    return {"block": name, "groups": tuple(groups)}


def _split_axis(sch: Schedule, rng: Random) -> Arguments:
    iters = sch.func.block(name := _block(sch, rng)).iters
    if not iters:
        raise NothingToTry
    axis = rng.randrange(len(iters))
    return {"block": name, "axis": axis, "factor": rng.randint(1, max(1, iters[axis].extent))}


def _set_scope(sch: Schedule, rng: Random) -> Arguments:
    return {"buffer": _own(sch, rng).name, "scope": rng.choice(("register", "thread", "global"))}


def _storage_align(sch: Schedule, rng: Random) -> Arguments:
    """Of an allocation of several axes, nearly always."""
    allocated = [b for b in sch.func.allocations if len(b.shape) > 1]
    if not allocated or rng.random() < 0.05:
        return {"buffer": _tensor(sch, rng), "axis": rng.randint(-1, 2), "factor": 8}
    buffer, factor = rng.choice(allocated), rng.randint(1, 9)
    axis = rng.randrange(len(buffer.shape) - 1)
    return {
        "buffer": buffer.name,
        "axis": axis,
        "factor": factor,
        "offset": rng.randrange(factor),
    }


def _own_buffer(sch: Schedule, rng: Random) -> Arguments:
    """Of what no random program shares among the threads of a block, or widens: a refusal."""
    return {"buffer": _own(sch, rng).name}


def _rolling_buffer(sch: Schedule, rng: Random) -> Arguments:
    """Of a block that stands in a loop of its reader, nearly always."""
    block, user = _pair(sch, rng)
    around = sch.loops(user)
    shared = [loop for loop in sch.loops(block) if loop in around]
    if not shared and rng.random() < 0.95:
        raise NothingToTry
    return {"block": block, "loop": rng.choice(shared) if shared else _loop(sch, rng, user)}


STEPS: dict[str, Callable[[Schedule, Random], Arguments]] = {
    "split": _split,
    "fuse": _fuse,
    "reorder": _reorder,
    "parallel": _parallel,
    "vectorize": _vectorize,
    "unroll": _unroll,
    "annotate": _annotate,
    "blockize": _blockize,
    "tensorize": _tensorize,
    "compute_at": _compute_at,
    "reverse_compute_at": _reverse_compute_at,
    "compute_inline": _compute_inline,
    "reverse_compute_inline": _reverse_compute_inline,
    "cache_read": _cache_read,
    "cache_write": _cache_write,
    "stage": _stage,
    "transform_layout": _transform_layout,
    "decompose_reduction": _decompose_reduction,
    "rfactor": _rfactor,
    "pad": _pad,
    "pad_axes": _pad_axes,
    "decompose_padding": _decompose_padding,
    "prefetch": _prefetch,
    "pack": _pack,
    "loop_partition": _loop_partition,
    "merge": _merge,
    "add_unit_loop": _add_unit_loop,
    "reindex": _reindex,
    "join_axes": _join_axes,
    "split_axis": _split_axis,
    "set_scope": _set_scope,
    "rolling_buffer": _rolling_buffer,
    "storage_align": _storage_align,
    "swizzle": _own_buffer,
    "narrow": _own_buffer,
}
