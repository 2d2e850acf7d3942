"""Leave out the barriers of a grid that nothing needs: those without which P5 holds as well."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from ...tir.func import PrimFunc
from ...tir.stmt import Alloc, Barrier, Commit, For, If, LetStmt, Seq, Stmt, seq
from ...tir.visit import statements
from .forms.affine import Undecided
from .forms.statements import read_nest
from .races import check_races
from .relations.sets import Sets

MAX_OPERATIONS = 200_000  # of isl, for each barrier


def without_idle_barriers(nest: PrimFunc) -> PrimFunc:
    """The nest (stage NEST) without the barriers inside of loops that part no two threads which
    touch one element, one of them writing. Those further in, which run more often, are left out
    first, for one before a loop that fetches ahead where that is enough. Where isl cannot tell, a
    barrier stays.
    """
    needed = 0
    nest = nest.with_body(_with_outer(nest.body, inside=False))
    while True:
        found = sorted(_barriers(nest.body, (), at_root=True), key=lambda item: -item[0])
        if needed == len(found):
            return nest
        fewer = nest.with_body(_removed(nest.body, found[needed][1]))
        if _is_free_of_races(fewer):
            nest = fewer
        else:
            needed += 1


def _is_free_of_races(nest: PrimFunc) -> bool:
    sets = Sets(MAX_OPERATIONS, nest.dims, nest.facts)
    try:
        return next(iter(check_races(sets, read_nest(nest))), None) is None
    except Undecided:
        return False
    except isl.Error as error:
        if "maximal number of operations" not in str(error):
            raise
        return False


def _with_outer(stmt: Stmt, *, inside: bool) -> Stmt:
    """The statement with a barrier before each loop, inside of another one, that fetches ahead."""
    within = inside or isinstance(stmt, For)
    changed = stmt.map_children(
        lambda c: _with_outer(c, inside=within) if isinstance(c, Stmt) else c
    )
    if isinstance(changed, Seq):
        return seq(*changed.body)
    held = isinstance(stmt, For) and not stmt.is_of_blocks and inside
    if held and any(isinstance(node, Commit) for node in statements(stmt)):
        return seq(Barrier(), changed)
    return changed


Path = tuple[int, ...]  # the numbers of the children that lead to a statement


def _barriers(
    stmt: Stmt, path: Path, depth: int = 0, *, at_root: bool
) -> Iterator[tuple[int, Path]]:
    """The barriers inside of loops, in the order of the text: the loops around, and the path."""
    for place, child in enumerate(_parts(stmt)):
        if isinstance(child, Barrier):
            if not at_root:
                yield depth, (*path, place)
            continue
        inside = at_root and isinstance(stmt, Seq | Alloc) and not isinstance(child, For | If)
        deeper = depth + isinstance(child, For)
        yield from _barriers(child, (*path, place), deeper, at_root=inside)


def _parts(stmt: Stmt) -> tuple[Stmt, ...]:
    match stmt:
        case Seq():
            return stmt.body
        case For() | Alloc() | LetStmt():
            return (stmt.body,)
        case If():
            return (stmt.then,) if stmt.orelse is None else (stmt.then, stmt.orelse)
    return ()


def _removed(stmt: Stmt, path: Path) -> Stmt:
    place, *rest = path
    if isinstance(stmt, Seq):
        kept = list(stmt.body)
        if rest:
            kept[place] = _removed(kept[place], tuple(rest))
        else:
            del kept[place]
        return seq(*kept)
    child = _parts(stmt)[place]
    changed = _removed(child, tuple(rest))
    mapped = stmt.map_children(lambda node: changed if node is child else node)
    assert isinstance(mapped, Stmt)
    return mapped
