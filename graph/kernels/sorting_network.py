"""Codes of rows in order, by a network of comparators: Batcher's bitonic sort ("Sorting networks
and their applications", 1968).

A row of 2**(r + s) codes stands in 2**r lines of 2**s columns: the element of number 2**r * column
+ line in the order that is made. Comparators of lines have no use for neighbours, so a step runs in
vectors. The steps of one recurrence are alike (Stone, "Parallel processing with the perfect
shuffle", 1971): a stage compares line i with line i + 2**(r-1) and sets lines 2i and 2i + 1, so
that every bit of the number is the highest one in turn; a step is two stages, of four lines. What a
merge has to leave in falling order is negated before it, so that all comparators put the smaller
code first.

First the columns are sorted: r merges of r stages, the first of which only move what they find.
Then columns are merged, two of them, four and so on: on the transposed codes by the bits of the
column, and after that by those of the line. There are four or eight columns: r is even.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...tir.dtype import FLOAT64
from ...tir.expr import Call, Expr, Let, Var
from ...tir.intrinsics import MAX_ANY
from ...tir.te import te
from ...tir.te.te import Tensor
from .codes import BEHIND, bit_of, negated

_FEWEST = 16  # codes of a network

Around = Sequence[int]  # the shape of the rows
Row = tuple[Expr, ...]
Lines = tuple[Expr, ...]  # elements of two lines, or of four
Read = Callable[[Row, Expr, Expr], Expr]
Step = Callable[[Expr, Expr, Lines], Lines]


def padded(size: int) -> int:
    """How many codes the network for `size` of them has."""
    return max(_FEWEST, 1 << (size - 1).bit_length())


def steps_of(size: int) -> int:
    """How many stages the network for `size` codes takes, each of all of them."""
    lines, columns = _bits(size)
    return lines * lines + columns * lines + columns * (columns + 1) // 2


def transpositions_of(size: int) -> int:
    """How often the network for `size` codes transposes them."""
    return 2 * _bits(size)[1]


def _bits(size: int) -> tuple[int, int]:
    """The bits of the numbers of lines and of columns."""
    whole = padded(size).bit_length() - 1
    columns = 2 if whole % 2 == 0 else 3
    return whole - columns, columns


def sorted_codes(
    read: Callable[..., Expr], around: Around, size: int, count: int, name: str
) -> Tensor:
    """The first `count` of `size` codes of each row, the smallest first, [*around, count].

    around: the shape of the rows. read: the code at the indices of a row and one in it.
    """
    bits, column_bits = _bits(size)
    lines, columns = 1 << bits, 1 << column_bits

    def first(row: Row, line: Expr, column: Expr) -> Expr:
        place = line * columns + column
        whole = size == lines * columns
        own = read(*row, place) if whole else te.select(place < size, read(*row, place), BEHIND)
        return negated(own, (line + column) & 1)

    def step(time: Expr, line: Expr, given: Lines) -> Lines:
        merge, part = time * 2 // bits, time * 2 % bits

        def begun(own: Expr, before: Expr) -> Expr:
            turned = bit_of(before, merge) ^ bit_of(before, merge + 1)
            return te.select(te.eq(part, 0), negated(own, turned), own)

        quarters = (line + n * (lines // 4) for n in range(4))
        a, b, c, d = map(begun, given, quarters)
        both, second = part + merge >= bits - 1, part + merge >= bits - 2
        moved = a, b, c, d
        late = (*_compared(a, b), *_compared(c, d))
        sides = zip(_compared_twice(moved), late, moved, strict=True)
        return tuple(te.select(both, x, te.select(second, y, z)) for x, y, z in sides)

    shape = lines, columns
    found = _steps(first, step, bits * bits // 2, around, shape, 4, f"{name}_columns")
    for merge in range(1, column_bits + 1):
        found = _merged(found, merge, around, shape, f"{name}_merge{merge}")

    def element(*i: Expr) -> Expr:
        *row, place = i
        return found(tuple(row), place % lines, place // lines)

    return te.compute((*around, count), element, name=f"{name}_sorted")


def _merged(columns: Read, merge: int, around: Around, shape: tuple[int, int], name: str) -> Read:
    """Each 2**merge columns in order, of which each half was in order, the second one backwards."""
    lines, count = shape
    inside = 1 << merge
    rest = count // inside

    def first(row: Row, column: Expr, line: Expr) -> Expr:
        own = column if rest == 1 else column % rest * inside + column // rest
        turned = bit_of(own, merge - 1) ^ bit_of(own, merge)
        return negated(columns(row, line, own), turned)

    def one(_time: Expr, _line: Expr, given: Lines) -> Lines:
        return _compared(*given)

    def two(_time: Expr, _line: Expr, given: Lines) -> Lines:
        return _compared_twice(given)

    turned = _steps(first, one, merge, around, (count, lines), 2, f"{name}_turned")
    return _steps(
        lambda row, line, column: turned(row, column, line),
        two,
        (lines.bit_length() - 1) // 2,
        around,
        shape,
        4,
        name,
    )


def _compared(a: Expr, b: Expr) -> Lines:
    """The smaller code and the larger one."""
    return te.min_any(a, b), Call(MAX_ANY, (a, b))


def _compared_twice(given: Lines) -> Lines:
    """Two stages of comparators of four lines."""
    a, b, c, d = given
    (low, high), (other_low, other_high) = _compared(a, c), _compared(b, d)
    return *_compared(low, other_low), *_compared(high, other_high)


def _steps(
    first: Read,
    step: Step,
    count: int,
    around: Around,
    shape: tuple[int, int],
    together: int,
    name: str,
) -> Read:
    """What `count` steps make of `first`. step: `together` lines that stand side by side, made of
    as many that stand as far apart as can be; of the number of the step, that of the first of
    these, and these.
    """
    apart = shape[0] // together
    state = te.state((count + 1, *around, *shape), "float64", name=name)

    def begun(*i: Expr) -> Expr:
        return first(i[1:-2], i[-2], i[-1])

    def later(*i: Expr) -> Expr:
        time, *row, line, column = i
        before, own = line // together, line % together
        given = tuple(Var(f"line{n}", FLOAT64) for n in range(together))
        *others, found = step(time - 1, before, given)
        for n, value in reversed(list(enumerate(others))):
            found = te.select(te.eq(own, n), value, found)
        # each is read whatever becomes of it, so that what is read does not depend on conditions
        for n, var in enumerate(given):
            read = state[(time - 1, *row, before + n * apart, column)]
            found = Let(var, read, found)
        return found

    begins = te.compute((1, *around, *shape), begun, name=f"{name}_first")
    update = te.compute((count + 1, *around, *shape), later, name=f"{name}_step")
    made = te.scan(begins, update, state)
    return lambda row, line, column: made[(count, *row, line, column)]
