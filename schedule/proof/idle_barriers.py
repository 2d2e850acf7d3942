"""Leave out the barriers of a grid that nothing needs: those without which P5 holds as well."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from ...tir.func import PrimFunc
from ...tir.stmt import Alloc, Barrier, For, If, LetStmt, Seq, Stmt, seq
from .affine import Undecided
from .races import check_races
from .sets import Sets
from .statements import read_nest

MAX_OPERATIONS = 200_000  # of isl, for each barrier


def without_idle_barriers(nest: PrimFunc) -> PrimFunc:
    """The nest (stage NEST) without the barriers inside of loops that part no two threads which
    touch one element, one of them writing. Where isl cannot tell, a barrier stays.
    """
    number = 0
    while True:
        left = _without(nest.body, number, at_root=True)
        if left is None:
            return nest
        fewer = nest.with_body(left)
        if _is_free_of_races(fewer):
            nest = fewer
        else:
            number += 1


def _is_free_of_races(nest: PrimFunc) -> bool:
    sets = Sets(MAX_OPERATIONS, nest.dims)
    try:
        return next(iter(check_races(sets, read_nest(nest))), None) is None
    except Undecided:
        return False
    except isl.Error as error:
        if "maximal number of operations" not in str(error):
            raise
        return False


def _without(stmt: Stmt, number: int, *, at_root: bool) -> Stmt | None:
    """The statement without one of the barriers inside of its loops, by its number in the text;
    None where there are not so many.
    """
    found = list(_barriers(stmt, at_root))
    return _removed(stmt, found[number]) if number < len(found) else None


Path = tuple[int, ...]  # the numbers of the children that lead to a statement


def _barriers(stmt: Stmt, at_root: bool) -> Iterator[Path]:
    for place, child in enumerate(_parts(stmt)):
        if isinstance(child, Barrier):
            if not at_root:
                yield (place,)
            continue
        inside = at_root and isinstance(stmt, Seq | Alloc) and not isinstance(child, For | If)
        for path in _barriers(child, inside):
            yield (place, *path)


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
