"""Where each intermediate tensor lies in the arena: offsets found by several packings, the smallest
kept.

Two tensors may share bytes when no step needs both. A tensor lives from the step that writes it to
the last step that reads it, or for that one step where none does; of several that one step writes,
each has a life of its own. The bytes that live at one step are a lower bound for every packing;
the largest of these stands beside the result. Where a step may write over an input that nobody
needs afterwards, both are one tenant of the arena.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..ir.ir import megabytes

ALIGNMENT = 64
ROUNDS = 24  # attempts to improve a packing that misses the lower bound
MOST_MEETINGS = 1 << 22  # of two tensors, looked at in all those attempts; beyond, fewer are made


@dataclass(frozen=True, slots=True)
class StepUse:
    """What one step does with tensors of the arena.

    reads: names, in any order; writes: the names that it defines, none for a step that stores
    elsewhere.
    reusable: those of `reads` whose place one of the results may take, element for element.
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...] = ()
    reusable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """A tensor in the arena: `bytes` from `offset` on, needed from step `first` to step `last`."""

    name: str
    offset: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """The arena of a model.

    arena_bytes: its size; lower_bound: no packing of these tensors is smaller. packing: how the
    smallest one was found.
    in_place: pairs (result, input whose place it takes). weight_bytes: constants, shared by all
    contexts.
    """

    arena_bytes: int
    lower_bound: int
    packing: str
    placements: tuple[Placement, ...]
    in_place: tuple[tuple[str, str], ...] = ()
    weight_bytes: int = 0

    @property
    def offsets(self) -> dict[str, int]:
        """Where each tensor begins."""
        return {item.name: item.offset for item in self.placements}

    @property
    def excess(self) -> float:
        """How much larger than the lower bound the arena is: 0.05 is five percent."""
        return self.arena_bytes / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def certificate(self) -> str:
        """The promise in one line."""
        weights, arena = megabytes(self.weight_bytes), megabytes(self.arena_bytes)
        return f"weights {weights} (shared) + {arena} per context"

    def __str__(self) -> str:
        lines = [
            self.certificate,
            f"  {len(self.placements)} tensors packed {self.packing}; "
            f"lower bound {self.lower_bound} bytes, arena {self.arena_bytes} bytes "
            f"({self.excess:+.1%})",
        ]
        lines += [f"  '{result}' takes the place of '{source}'" for result, source in self.in_place]
        return "\n".join(lines)


def plan_memory(
    uses: Sequence[StepUse], sizes: Mapping[str, int], *, weight_bytes: int = 0
) -> ArenaPlan:
    """The smallest packing found for the tensors that `uses`, in order of execution, write and
    read.

    sizes: bytes of each tensor.
    """
    lives = dict(_lives(uses))
    plans = []
    for in_place in (True, False):
        tenants, pairs = _tenants(uses, sizes, in_place)
        bound = _lower_bound(tenants, len(uses))
        packing, arena = _smallest_packing(tenants, bound)
        placements = (
            Placement(name, t.offset, sizes[name], *lives[name])
            for t in tenants
            for name in t.names
        )
        listed = tuple(sorted(placements, key=lambda item: (item.first, item.name)))
        plans.append(ArenaPlan(arena, bound, packing, listed, pairs, weight_bytes))
    return min(plans, key=lambda plan: plan.arena_bytes)


@dataclass(slots=True)
class _Tenant:
    """Tensors that share one place, one after the other."""

    names: list[str]
    size: int
    first: int
    last: int
    offset: int = field(default=-1)
    others: list[_Tenant] = field(default_factory=list)  # those that some step needs as well

    @property
    def length(self) -> int:
        return self.last - self.first + 1


_ORDERS: dict[str, Callable[[_Tenant], tuple[int, ...]]] = {
    "by size": lambda t: (-t.size, t.first),
    "by lifetime": lambda t: (-t.length, -t.size, t.first),
    "by size times lifetime": lambda t: (-t.size * t.length, t.first),
    "by first use": lambda t: (t.first, -t.size),
    "by last use": lambda t: (-t.last, -t.size),
}


def _smallest_packing(tenants: list[_Tenant], bound: int) -> tuple[str, int]:
    """Place the tenants by the best packing; its name and the size of the arena."""
    rounds = min(ROUNDS, MOST_MEETINGS // (1 + _let_meet(tenants)))
    found = [
        (_pack(sorted(tenants, key=key), fit == "best"), f"{name}, {fit} fit", name, fit)
        for name, key in _ORDERS.items()
        for fit in ("first", "best")
    ]
    arena, title, name, fit = min(found, key=lambda item: item[0])
    order = sorted(tenants, key=_ORDERS[name])
    if arena > bound:
        for _, tried, name_, fit_ in found:
            start = sorted(tenants, key=_ORDERS[name_])
            better, raised = _raised(start, fit_ == "best", bound, rounds)
            if better < arena:
                arena, order, fit = better, raised, fit_
                title = f"{tried}, the topmost moved forward"
            if arena <= bound:
                break
    _pack(order, fit == "best")
    return title, arena


def _let_meet(tenants: Sequence[_Tenant]) -> int:
    """Tell each tenant which others some step needs as well; how many pairs there are."""
    count, alive = 0, list[_Tenant]()
    for tenant in sorted(tenants, key=lambda t: t.first):
        alive = [other for other in alive if other.last >= tenant.first]
        for other in alive:
            other.others.append(tenant)
        tenant.others = alive.copy()
        count += len(alive)
        alive.append(tenant)
    return count


def _raised(
    order: list[_Tenant], best_fit: bool, bound: int, rounds: int
) -> tuple[int, list[_Tenant]]:
    """Let the tenant that ends topmost choose its place before all others, again and again; the
    best order met.
    """
    now = list(order)
    best, kept = _pack(now, best_fit), list(now)
    for _ in range(rounds):
        if best <= bound:
            break
        top = max(now, key=lambda t: t.offset + t.size)
        now.remove(top)
        now.insert(0, top)
        size = _pack(now, best_fit)
        if size < best:
            best, kept = size, list(now)
    return best, kept


def _pack(order: Sequence[_Tenant], best_fit: bool) -> int:
    """Place the tenants one after the other; the bytes that they take."""
    for tenant in order:
        tenant.offset = -1
    for tenant in order:
        tenant.offset = _place(tenant, best_fit)
    return max((t.offset + t.size for t in order), default=0)


def _lives(uses: Sequence[StepUse]) -> Iterator[tuple[str, tuple[int, int]]]:
    """First and last step of each tensor."""
    last = {name: step for step, use in enumerate(uses) for name in use.reads}
    for step, use in enumerate(uses):
        for name in use.writes:
            yield name, (step, max(step, last.get(name, step)))


def _tenants(
    uses: Sequence[StepUse], sizes: Mapping[str, int], in_place: bool
) -> tuple[list[_Tenant], tuple[tuple[str, str], ...]]:
    lives = dict(_lives(uses))
    home: dict[str, _Tenant] = {}
    pairs = []
    for step, use in enumerate(uses):
        free = [name for name in use.reusable if in_place and lives[name][1] == step]
        for name in use.writes:
            first, last = lives[name]
            size = -(-sizes[name] // ALIGNMENT) * ALIGNMENT
            source = next((n for n in free if home[n].size == size), None)
            if source is None:
                home[name] = _Tenant([name], size, first, last)
                continue
            free.remove(source)
            home[name] = home[source]
            home[name].names.append(name)
            home[name].last = last
            pairs.append((name, source))
    return list({id(tenant): tenant for tenant in home.values()}.values()), tuple(pairs)


def _place(tenant: _Tenant, best_fit: bool) -> int:
    """The lowest gap, or the tightest one, among the tenants that live at the same time and have
    their place.
    """
    others = sorted((t for t in tenant.others if t.offset >= 0), key=lambda t: t.offset)
    end, best, tightest = 0, -1, 0
    for other in others:
        gap = other.offset - end
        if gap >= tenant.size and (best < 0 or gap < tightest):
            best, tightest = end, gap
            if not best_fit:
                break
        end = max(end, other.offset + other.size)
    return best if best >= 0 else end


def _lower_bound(tenants: Sequence[_Tenant], steps: int) -> int:
    live = [0] * (steps + 1)
    for tenant in tenants:
        live[tenant.first] += tenant.size
        live[tenant.last + 1] -= tenant.size
    most = now = 0
    for change in live:
        now += change
        most = max(most, now)
    return most
