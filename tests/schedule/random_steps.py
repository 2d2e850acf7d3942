"""Random steps on random small programs: what is legal must keep the meaning."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.nest import readers, target_of
from tilewright.schedule.references import LoopRef
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc

from .programs import blur, causal, chain, conv, extremes, farthest, matmul, matmul_relu, pool

PROGRAMS: tuple[Callable[[random.Random], PrimFunc], ...] = (
    lambda rng: matmul(rng.randint(1, 7), rng.randint(1, 9), rng.randint(1, 8)),
    lambda rng: matmul_relu(
        rng.randint(1, 7), rng.randint(1, 9), rng.randint(1, 8), constant=rng.random() < 0.5
    ),
    lambda rng: chain(rng.randint(1, 9), rng.randint(1, 11)),
    lambda rng: blur(rng.randint(1, 7), rng.randint(1, 7)),
    lambda rng: conv(
        rng.randint(2, 5),
        rng.randint(2, 5),
        rng.randint(1, 2),
        4,
        kernel=rng.randint(1, 2),
        stride=rng.randint(1, 2),
        pad=rng.randint(0, 1),
        groups=rng.choice((1, 1, 2)),
    ),
    lambda rng: pool(
        rng.randint(3, 6),
        rng.randint(3, 5),
        rng.randint(1, 3),
        kernel=rng.randint(1, 3),
        stride=rng.randint(1, 2),
        pad=rng.randint(0, 1),
    ),
    lambda rng: farthest(rng.randint(1, 6), rng.randint(1, 9)),
    lambda rng: causal(rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 9)),
    lambda rng: extremes(rng.randint(1, 6), rng.randint(1, 9)),
)


def random_schedule(seed: int, steps: int, counts: Counter[str]) -> Schedule:
    """A random program after up to `steps` random steps; refused ones leave no trace."""
    rng = random.Random(seed)
    sch = Schedule(rng.choice(PROGRAMS)(rng))
    for _ in range(steps):
        name, step = rng.choice(STEPS)
        try:
            done = sch.apply(lambda s, step=step: step(s, rng))
            counts[f"{name} applied"] += 1
            assert done is sch
        except ScheduleError as refusal:
            refusal_text(refusal)
            counts[f"{name} refused"] += 1
    return sch


def refusal_text(refusal: ScheduleError) -> str:
    """The text of a refusal: it can be rendered, and ends in its code."""
    text = str(refusal)
    assert f"[{refusal.code}]" in text
    return text


def _block(sch: Schedule, rng: random.Random) -> str:
    return rng.choice(sch.blocks())


def _loop(sch: Schedule, rng: random.Random, block: str) -> LoopRef:
    loops = sch.loops(block)
    if not loops:
        raise ScheduleError("loops: none are left.", code="no-loops")
    return rng.choice(loops)


def _any_loop(sch: Schedule, rng: random.Random) -> LoopRef:
    return _loop(sch, rng, _block(sch, rng))


def _tensor(sch: Schedule, rng: random.Random) -> str:
    func = sch.func
    return rng.choice([p.name for p in func.parameters] + [b.name for b in func.allocations])


def _split(sch: Schedule, rng: random.Random) -> None:
    factors: list[int | None] = [rng.randint(1, 4) for _ in range(rng.randint(1, 2))]
    factors.insert(rng.randint(0, len(factors)), None)
    sch.split(_any_loop(sch, rng), factors, tail=rng.choice(("guard", "partition", "mask")))


def _fuse(sch: Schedule, rng: random.Random) -> None:
    loops = sch.loops(_block(sch, rng))
    start = rng.randrange(max(1, len(loops) - 1))
    sch.fuse(*loops[start : start + rng.randint(2, 3)])


def _reorder(sch: Schedule, rng: random.Random) -> None:
    loops = sch.loops(_block(sch, rng))
    sch.reorder(*rng.sample(loops, rng.randint(min(2, len(loops)), len(loops))))


def _parallel(sch: Schedule, rng: random.Random) -> None:
    sch.parallel(_any_loop(sch, rng))


def _vectorize(sch: Schedule, rng: random.Random) -> None:
    loops = sch.loops(_block(sch, rng))
    sch.vectorize(loops[-1] if loops and rng.random() < 0.7 else _any_loop(sch, rng))


def _unroll(sch: Schedule, rng: random.Random) -> None:
    sch.unroll(_any_loop(sch, rng))


def _compute_at(sch: Schedule, rng: random.Random) -> None:
    block = _block(sch, rng)
    users = readers(sch.func, target_of(sch.func.block(block)))
    sch.compute_at(block, _loop(sch, rng, rng.choice(users).name if users else block))


def _reverse_compute_at(sch: Schedule, rng: random.Random) -> None:
    at = rng.choice(("each", "last"))
    block = _block(sch, rng)
    users = readers(sch.func, target_of(sch.func.block(block)))
    user = rng.choice(users).name if users else _block(sch, rng)
    sch.reverse_compute_at(user, _loop(sch, rng, block), at=at)


def _compute_inline(sch: Schedule, rng: random.Random) -> None:
    sch.compute_inline(_block(sch, rng))


def _reverse_compute_inline(sch: Schedule, rng: random.Random) -> None:
    sch.reverse_compute_inline(_block(sch, rng))


def _cache_read(sch: Schedule, rng: random.Random) -> None:
    sch.cache_read(_block(sch, rng), _tensor(sch, rng))


def _cache_write(sch: Schedule, rng: random.Random) -> None:
    sch.cache_write(_block(sch, rng))


def _stage(sch: Schedule, rng: random.Random) -> None:
    block = _block(sch, rng)
    touched = [b.name for b in (*sch.func.allocations, *(p.buffer for p in sch.func.parameters))]
    sch.stage(
        block, rng.choice(touched), _loop(sch, rng, block), rng.choice(("register", "thread"))
    )


def _transform_layout(sch: Schedule, rng: random.Random) -> None:
    func = sch.func
    inner = [buffer.name for buffer in func.allocations if buffer.origin is None]
    tensor = rng.choice(inner) if inner and rng.random() < 0.8 else _tensor(sch, rng)
    found = [
        b for b in (*func.allocations, *(p.buffer for p in func.parameters)) if b.name == tensor
    ]
    axes = [f"i{n}" for n in range(len(found[0].shape))]
    split, width = rng.choice(axes), rng.randint(1, 4)
    parts = [axis for axis in axes if axis != split] + [f"{split} // {width}", f"{split} % {width}"]
    rng.shuffle(parts)
    sch.transform_layout(tensor, f"lambda {', '.join(axes)}: ({', '.join(parts)})")


def _decompose_reduction(sch: Schedule, rng: random.Random) -> None:
    block = _block(sch, rng)
    sch.decompose_reduction(block, _loop(sch, rng, block))


def _rfactor(sch: Schedule, rng: random.Random) -> None:
    block = _block(sch, rng)
    sch.rfactor(block, _loop(sch, rng, block))


def _pad(sch: Schedule, rng: random.Random) -> None:
    inner = [buffer for buffer in sch.func.allocations if buffer.origin is None]
    if not inner:
        raise ScheduleError("pad: no intermediate tensor.", code="no-tensors")
    buffer = rng.choice(inner)
    sch.pad(buffer.name, [rng.randint(1, 4) for _ in buffer.shape])


def _decompose_padding(sch: Schedule, rng: random.Random) -> None:
    padded = [name for name in sch.blocks() if "X_pad" in name]
    block = rng.choice(padded) if padded else _block(sch, rng)
    sch.decompose_padding(block, _loop(sch, rng, block))


def _prefetch(sch: Schedule, rng: random.Random) -> None:
    loops = sch.loops(_block(sch, rng))
    start = rng.randrange(max(1, len(loops)))
    spread = loops[start + 1 :][: rng.randint(0, 2)]
    sch.prefetch(_tensor(sch, rng), loops[start], spread=spread, distance=rng.randint(1, 2))


def _pack(sch: Schedule, rng: random.Random) -> None:
    sch.pack(_tensor(sch, rng), rng.randint(2, 4))


STEPS: tuple[tuple[str, Callable[[Schedule, random.Random], None]], ...] = (
    *(("split", _split),) * 4,
    ("fuse", _fuse),
    *(("reorder", _reorder),) * 2,
    ("parallel", _parallel),
    ("vectorize", _vectorize),
    ("unroll", _unroll),
    *(("compute_at", _compute_at),) * 2,
    *(("reverse_compute_at", _reverse_compute_at),) * 3,
    ("compute_inline", _compute_inline),
    ("reverse_compute_inline", _reverse_compute_inline),
    ("cache_read", _cache_read),
    ("cache_write", _cache_write),
    *(("stage", _stage),) * 3,
    ("transform_layout", _transform_layout),
    ("decompose_reduction", _decompose_reduction),
    ("rfactor", _rfactor),
    ("pad", _pad),
    ("decompose_padding", _decompose_padding),
    ("prefetch", _prefetch),
    ("pack", _pack),
)
