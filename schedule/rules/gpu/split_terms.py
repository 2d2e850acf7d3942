"""The terms of a product dealt out to several blocks of threads, where tiles of the result are too
few to keep a GPU busy: each sums a part of them, and another kernel adds the parts up, with what
follows element by element.
"""

from __future__ import annotations

from collections.abc import Callable

from ...library import deal_out
from ...nest import is_reduction, loops_around, target_of
from ...schedule import Schedule
from ..knobs.knobs import choose
from .elementwise import DEFAULT_THREADS, MOST_APART, THREADS
from .operands import Product, product

PARTS = (2, 4, 8, 16)
FEWEST_TERMS = 64  # of a part
FULL = 128  # blocks that give each multiprocessor of a large GPU one
# cycles that another kernel takes, and that it takes for each element of a part
ANOTHER_KERNEL = 1500
ADDED = 0.006


def split_terms(
    sch: Schedule, name: str, user: str, cycles: Callable[[Product, int], float]
) -> tuple[str, str, set[str]]:
    """Leave partial sums of a product, whose result the block `user` reads element by element, and
    add them up where these are read. cycles: what a product takes, its terms in so many parts.

    Returns the block of the partial sums, the one that copies these, and those that are done; for
    one part `name`, `user` and none.
    """
    block = sch.func.block(name)
    found = product(block)
    assert found is not None
    longest = max(found.terms, key=lambda it: it.extent)
    most = 1 if sch.func.dims else min(longest.extent // FEWEST_TERMS, MOST_APART // found.products)
    choices = [n for n in PARTS if longest.extent % n == 0 and n <= most]
    elements = found.rows.extent * found.columns.extent * found.products

    def price(parts: int) -> float:
        adding = ANOTHER_KERNEL + ADDED * parts * elements if parts > 1 else 0.0
        return cycles(found, parts) + adding

    parts = choose(sch, "parts of the terms", name, (1, *choices), min((1, *choices), key=price))
    if parts == 1:
        return name, user, set()
    bound = block.bindings[block.iters.index(longest)]
    around = loops_around(sch.func, block)
    place = next(number for number, loop in enumerate(around) if loop.var is bound)
    part, _ = sch.split(sch.loops(name)[place], (parts, None))
    copy = sch.cache_write(sch.rfactor(name, part))
    (partial,) = (b.name for b in sch.func.blocks if is_reduction(b) and b.name != name)
    loops = sch.loops(partial)
    sch.reorder(loops[place], *loops[:place], *loops[place + 1 :])
    threads = choose(sch, "threads of a block", user, THREADS, DEFAULT_THREADS)
    sch.compute_at(name, sch.loops(user)[-1])
    sch.set_scope(target_of(sch.func.block(name)).name, "register")
    deal_out(sch, user, threads)
    return partial, copy, {name, user}
