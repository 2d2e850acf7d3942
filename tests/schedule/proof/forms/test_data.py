"""Gathers are proved: bounds by the clamp, flow by a complete table. Planted errors are not."""

from __future__ import annotations

import pytest

from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof import prove
from tilewright.schedule.proof.forms.affine import Undecided
from tilewright.schedule.proof.forms.condition import ALWAYS, NEVER, Cases, condition
from tilewright.schedule.proof.forms.data import data_of, datum_interval, without_data
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr, Var
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.te import te
from tilewright.tir.text.printer import print_expr

GATHER = """\
def gather(T: float32[8, 5], N: int32[4], Y: output(float32[4, 5])):
    S = alloc(float32[8, 5], "global")
    for i in range(8):
        for j in range(5):
            with block("S", vi=spatial(8, i), vj=spatial(5, j)):
                S[vi, vj] = T[vi, vj] * 2.0
    for i in range(4):
        for j in range(5):
            with block("Y", vi=spatial(4, i), vj=spatial(5, j)):
                Y[vi, vj] = S[max(min(cast(N[vi], "int64"), 7), 0), vj]
"""


def gather() -> PrimFunc:
    return parse(GATHER)


def edited(*edits: tuple[str, str]) -> PrimFunc:
    text = GATHER
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return parse(text)


def in_order(*parts: str) -> PrimFunc:
    """The gather with the loops of its blocks in another order."""
    lines = GATHER.splitlines()
    nests = {"S": lines[2:6], "Y": lines[6:]}
    return parse("\n".join([*lines[:2], *(line for name in parts for line in nests[name])]))


TABLE = te.placeholder((9, 6), "float32", name="T")


def embedding() -> PrimFunc:
    n = te.placeholder((7,), "int64", name="N")
    y = te.compute((7, 6), lambda i, j: TABLE[te.checked(n[i], 9), j], name="Y")
    return te.func(TABLE, n, y, name="embedding")


def gather_last_axis() -> PrimFunc:
    n = te.placeholder((7,), "int64", name="N")
    y = te.compute((9, 7), lambda i, j: TABLE[i, te.checked(n[j], 6)], name="Y")
    return te.func(TABLE, n, y, name="columns")


def gather_elements() -> PrimFunc:
    n = te.placeholder((9, 6), "int32", name="N")
    y = te.compute((9, 6), lambda i, j: TABLE[te.clamp_index(n[i, j], 9), j], name="Y")
    return te.func(TABLE, n, y, name="elements")


def gather_nd() -> PrimFunc:
    n = te.placeholder((7, 2), "int64", name="N")
    y = te.compute((7,), lambda i: TABLE[te.checked(n[i, 0], 9), te.checked(n[i, 1], 6)], name="Y")
    return te.func(TABLE, n, y, name="nd")


def from_the_end() -> PrimFunc:
    n = te.placeholder((7,), "int64", name="N")

    def element(i: te.Var, j: te.Var) -> te.Expr:
        return TABLE[te.checked(te.select(n[i] < 0, n[i] + 9, n[i]), 9), j]

    return te.func(TABLE, n, te.compute((7, 6), element, name="Y"), name="negative")


def one_hot() -> PrimFunc:
    n = te.placeholder((7,), "int64", name="N")
    y = te.compute((7, 9), lambda i, j: te.cast(te.eq(n[i], j), "float32"), name="Y")
    return te.func(n, y, name="one_hot")


def mask() -> PrimFunc:
    n = te.placeholder((9,), "int32", name="N")
    y = te.compute(
        (9, 6), lambda i, j: te.select(te.cast(n[i], "int64") <= j, TABLE[i, j], 0.0), name="Y"
    )
    return te.func(TABLE, n, y, name="mask")


def bag() -> PrimFunc:
    n = te.placeholder((7,), "int64", name="N")
    k = te.reduce_axis(7, name="k")
    y = te.compute((6,), lambda j: te.sum(TABLE[te.checked(n[k], 9), j], axis=k), name="Y")
    return te.func(TABLE, n, y, name="bag")


def through_another() -> PrimFunc:
    n = te.placeholder((7,), "int64", name="N")
    slots = te.placeholder((5,), "int64", name="O")
    y = te.compute(
        (7, 6), lambda i, j: TABLE[te.checked(slots[te.checked(n[i], 5)], 9), j], name="Y"
    )
    return te.func(TABLE, n, slots, y, name="twice")


def beside_an_axis() -> PrimFunc:
    n = te.placeholder((7,), "int64", name="N")
    y = te.compute((7, 2), lambda i, j: TABLE[te.clamp_index(n[i], 8) + j, j * 3], name="Y")
    return te.func(TABLE, n, y, name="beside")


PROGRAMS = (
    embedding,
    gather_last_axis,
    gather_elements,
    gather_nd,
    from_the_end,
    one_hot,
    mask,
    bag,
    through_another,
    beside_an_axis,
    gather,
)


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_gather_are_proved(program: object, shortcuts: bool) -> None:
    assert callable(program)
    func = program()
    verdict = prove(func, canonical_form(func), shortcuts=shortcuts)
    assert verdict.status == "proved", str(verdict)


# the wrong nest, its status, part of what is said
PLANTED: dict[str, tuple[PrimFunc, str, str]] = {
    "clamp dropped": (
        edited(('max(min(cast(N[vi], "int64"), 7), 0)', 'cast(N[vi], "int64")')),
        "unknown",
        "undecided: the index cast(N[vi], \"int64\") depends on the values of 'N'",
    ),
    "upper clamp dropped": (
        edited(('max(min(cast(N[vi], "int64"), 7), 0)', 'max(cast(N[vi], "int64"), 0)')),
        "unknown",
        "it may be that P4: block 'Y' loads S[8, 0]; 'S' has shape [8, 5]; Y(i=0, j=0, N=8)",
    ),
    "clamp too wide": (
        edited((", 7), 0)", ", 8), 0)")),
        "refuted",
        "it may be that P4: block 'Y' loads S[8, 0]; 'S' has shape [8, 5]; Y(i=0, j=0, N=8)",
    ),
    "clamp too narrow": (
        edited((", 7), 0)", ", 6), 0)")),
        "refuted",
        "P2: in block 'Y' 6 is computed, where the canonical form has 7; Y(i=0, j=0)",
    ),
    "another token": (
        edited(("N[vi]", "N[3 - vi]")),
        "refuted",
        "P2: block 'Y' needs N[1], but reads N[2]; Y(i=1, j=4)",
    ),
    "another column": (
        edited((", 7), 0), vj]", ", 7), 0), 4 - vj]")),
        "unknown",
        "it may be that P2: block 'Y' needs S[0, 0], but S[0, 4] holds S[0, 4]",
    ),
    "no data": (
        edited(('max(min(cast(N[vi], "int64"), 7), 0)', "vi")),
        "unknown",
        "their indices depend on other data",
    ),
    "table not begun": (
        in_order("Y", "S"),
        "unknown",
        "it may be that P2: block 'Y' needs S[7, 4], but nothing was stored to S[7, 4] before",
    ),
    "table half made": (
        parse(
            "\n".join(
                [
                    *GATHER.splitlines()[:2],
                    "    for i in range(8):",
                    "        for j in range(5):",
                    '            with block("S", vi=spatial(8, i), vj=spatial(5, j)):',
                    "                S[vi, vj] = T[vi, vj] * 2.0",
                    "        for j in range(5):",
                    '            with block("Y", vi=spatial(4, i), vj=spatial(5, j)):',
                    "                where(i < 4)",
                    '                Y[vi, vj] = S[max(min(cast(N[vi], "int64"), 7), 0), vj]',
                ]
            )
        ),
        "unknown",
        "but nothing was stored to S[7, 4] before",
    ),
}


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("name", PLANTED)
def test_planted_errors_are_never_proved(name: str, shortcuts: bool) -> None:
    nest, status, text = PLANTED[name]
    verdict = prove(nest, canonical_form(gather()), shortcuts=shortcuts)
    assert verdict.status == status, str(verdict)
    assert text in str(verdict)


def test_a_running_sum_may_not_be_gathered_before_it_is_complete() -> None:
    table = te.placeholder((8, 4), "float32", name="T")
    n = te.placeholder((3,), "int64", name="N")
    k = te.reduce_axis(4, name="k")
    total = te.compute((8,), lambda i: te.sum(table[i, k], axis=k), name="S")
    y = te.compute((3,), lambda i: total[te.clamp_index(n[i], 8)], name="Y")
    func = te.func(table, n, y, name="sums")
    assert prove(func, canonical_form(func)).status == "proved"
    early = parse("""\
def sums(T: float32[8, 4], N: int64[3], Y: output(float32[3])):
    S = alloc(float32[8], "global")
    for k in range(4):
        for i in range(8):
            with block("S", vi=spatial(8, i), vk=reduce(4, k)):
                with init():
                    S[vi] = 0.0
                S[vi] = S[vi] + T[vi, vk]
        for i in range(3):
            with block("Y", vi=spatial(3, i)):
                where(k == 2)
                Y[vi] = S[max(min(N[vi], 7), 0)]
""")
    verdict = prove(early, canonical_form(func))
    assert verdict.status == "unknown"
    assert "it may be that P3: block 'Y' reads S[7] before block 'S' has updated it" in str(verdict)


def test_threads_that_gather_what_others_make_need_a_barrier() -> None:
    func = gather()
    text = GATHER.replace("for i in range", "for i in parallel")
    race = prove(parse(text), canonical_form(func))
    assert race.status == "unknown"
    assert "it may be that P5: two statements with no barrier between them" in str(race)
    nests = text.splitlines()
    waits = "\n".join([*nests[:6], "    barrier()", *nests[6:]])
    assert prove(parse(waits), canonical_form(func)).status == "proved"


def test_schedules_of_gathers_are_proved() -> None:
    def staged(sch: Schedule) -> None:
        sch.stage("Y", "S", sch.loops("Y")[0], "thread")

    def computed_below(sch: Schedule) -> None:
        sch.compute_at("S", sch.loops("Y")[0])

    def inlined(sch: Schedule) -> None:
        sch.compute_inline("S")

    for steps in (staged, computed_below, inlined):
        sch = Schedule(gather()).apply(steps)
        verdict = prove(sch.func, canonical_form(sch.func))
        assert verdict.status == "proved", str(verdict)


N = te.placeholder((4,), "int64", name="N")
X = Var("x")


ROWS = te.dim("rows", 1, 9)
RANGES = {X: (0, 7), ROWS: (1, 9)}


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (te.clamp_index(N[X], 10), ["max(min(N[x], 9), 0)"]),
        (te.clamp_index(N[X], 10) * 4 + X, ["max(min(N[x], 9), 0)"]),
        (te.clamp_index(N[X], 10) // 4 - N[X] % 3, ["max(min(N[x], 9), 0)", "N[x]"]),
        (
            te.cast(te.clamp_index(N[X], 10) + X, "int8") + 1,
            ['cast(max(min(N[x], 9), 0) + x, "int8") + int8(1)'],
        ),
        (X * 4, []),
        (te.clamp_index(X * ROWS // 7, 10) + X, ["max(min(x * rows // 7, 9), 0)"]),
        (X % ROWS * 2 + X // 2, ["x % rows"]),
    ],
)
def test_data_are_the_parts_that_sums_and_quotients_leave(index: Expr, expected: list[str]) -> None:
    data = data_of((index, index), {}, RANGES)
    assert [print_expr(item) for item in data] == expected
    values: dict[Expr, Expr] = dict.fromkeys(data, X)
    assert not data_of((without_data(index, values),), {}, RANGES)


GUARDED = """\
def f(X: float32[4], N: int32[6], Y: output(float32[6])):
    for i in range(6):
        with block("Y", vi=spatial(6, i)):
            Y[vi] = select({guard}, X[max(min(cast(N[vi], "int64"), 5), 0) - 1], 3.0)
"""
STAGED = """\
def f(X: float32[4], N: int32[6], Y: output(float32[6])):
    T = alloc(float32[4], "global", origin=X)
    for i in range({copied}):
        with block("T", v=spatial(4, i), copy="X"):
            T[v] = X[v]
    for i in range(6):
        with block("Y", vi=spatial(6, i)):
            Y[vi] = select({guard}, T[max(min(cast(N[vi], "int64"), 5), 0) - 1], 3.0)
"""
DATUM = 'max(min(cast(N[vi], "int64"), 5), 0)'
OUTSIDE = f"1 <= {DATUM} and {DATUM} < 5"


def test_a_condition_of_the_data_of_an_index_bounds_it() -> None:
    """A padded table that was inlined into its lookup."""
    form = parse(GUARDED.format(guard=OUTSIDE))
    assert prove(form, canonical_form(form)).status == "proved"
    staged = parse(STAGED.format(guard=OUTSIDE, copied=4))
    assert prove(staged, canonical_form(form)).status == "proved"
    short = parse(STAGED.format(guard=OUTSIDE, copied=3))
    assert prove(short, canonical_form(form)).status != "proved"


@pytest.mark.parametrize(
    "guard",
    [
        f"0 <= {DATUM} and {DATUM} < 5",
        f"1 <= {DATUM} and {DATUM} < 6",
        f"1 <= {DATUM} or {DATUM} < 5",
        f"not (1 <= {DATUM} and {DATUM} < 5)",
        OUTSIDE.replace("N[vi]", "N[5 - vi]"),
        OUTSIDE.replace("N[vi]", "X[vi - vi]"),
    ],
)
def test_a_condition_that_leaves_an_index_outside_is_not_proved(guard: str) -> None:
    form = parse(GUARDED.format(guard=guard))
    assert prove(form, canonical_form(form)).status != "proved"
    staged = parse(STAGED.format(guard=guard, copied=4))
    assert prove(staged, canonical_form(form)).status != "proved"


def test_the_other_branch_of_a_select_of_data_is_where_its_condition_fails() -> None:
    text = GUARDED.format(guard=f"5 <= {DATUM} or {DATUM} < 1")
    value = f"X[{DATUM} - 1]"
    turned = parse(text.replace(f"{value}, 3.0", f"3.0, {value}"))
    assert prove(turned, canonical_form(turned)).status == "proved"
    form = parse(text)
    assert prove(form, canonical_form(form)).status != "proved"


def test_a_datum_that_only_its_type_bounds_is_undecided() -> None:
    assert datum_interval(te.clamp_index(N[X], 10), {}, {X: (0, 3)}) == (0, 9)
    with pytest.raises(Undecided, match=r"N\[x\] depends on the values of 'N'"):
        datum_interval(N[X], {}, {X: (0, 3)})


@pytest.mark.parametrize(
    ("compared", "expected"),
    [
        (te.clamp_index(N[X], 10) < 10, ALWAYS),
        (te.clamp_index(N[X], 10) <= 9, ALWAYS),
        (te.clamp_index(N[X], 10) < X + 10, ALWAYS),
        (te.clamp_index(N[X], 10) < 0, NEVER),
        (te.clamp_index(N[X], 10) <= -1, NEVER),
        (te.clamp_index(N[X], 10) > 9, NEVER),
        (te.clamp_index(N[X], 10) < 9, None),
        (te.clamp_index(N[X], 10) <= 8, None),
        (te.clamp_index(N[X], 10) < X, None),
        (N[X] < 0, None),
    ],
)
def test_a_comparison_of_data_is_decided_by_their_intervals(
    compared: Expr, expected: Cases | None
) -> None:
    if expected is None:
        with pytest.raises(Undecided, match="depends on the values of 'N'"):
            condition(compared, {}, {X: (0, 3)})
    else:
        assert condition(compared, {}, {X: (0, 3)}) == expected


def test_a_sum_in_a_narrow_type_wraps_around_before_it_is_an_index() -> None:
    text = """\
def narrow(T: float32[201], N: int8[4], Y: output(float32[4])):
    for i in range(4):
        with block("Y", vi=spatial(4, i)):
            Y[vi] = T[max(min(N[vi], int8(100)), int8(0)) + int8(100)]
"""
    verdict = prove(parse(text), canonical_form(parse(text)))
    assert verdict.status == "unknown"
    assert "it may be that P4: block 'Y' loads T[-128]" in str(verdict)


def test_a_datum_of_one_possible_value_is_that_value() -> None:
    table = te.placeholder((1, 3), "float32", name="T")
    y = te.compute((4, 3), lambda i, j: table[te.clamp_index(N[i], 1), j], name="Y")
    simplified = te.func(table, N, y, name="one")
    func = parse(str(simplified).replace("T[0, vj]", "T[max(min(N[vi], 0), 0), vj]"))
    form = canonical_form(func)
    assert prove(func, form).status == "proved"
    assert prove(simplified, form).status == "proved"
    assert (
        prove(parse(str(func).replace("min(N[vi], 0)", "min(N[vi], 1)")), form).status != "proved"
    )


def test_two_equal_conditions_of_data_may_be_one() -> None:
    table = te.placeholder((1, 1), "int64", name="T")
    one, zero = te.const(1, "int64"), te.const(0, "int64")
    y = te.compute(
        (1, 1),
        lambda i, j: te.select(te.all_of(table[i, j] < 3, table[j, i] < 3), one, zero),
        name="Y",
    )
    func = te.func(table, y, name="twice")
    form, text = canonical_form(func), str(func)
    once = text.replace(" and T[vj, vi] < 3", "")
    assert once != text
    assert prove(parse(once), form).status == "proved"
    assert prove(parse(once.replace("< 3", "< 2")), form).status != "proved"
    assert prove(parse(text.replace("< 3 and", "< 2 and")), form).status != "proved"


OPEN = """\
def gather(n: dim(1, 8), T: float32[n, 5], N: int32[4], Y: output(float32[4, 5])):
    S = alloc(float32[n, 5], "global")
    for i in range(8):
        for j in range(5):
            with block("S", vi=spatial(n, i), vj=spatial(5, j)):
                S[vi, vj] = T[vi, vj] * 2.0
    for i in range(4):
        for j in range(5):
            with block("Y", vi=spatial(4, i), vj=spatial(5, j)):
                Y[vi, vj] = S[max(min(cast(N[vi], "int64"), n - 1), 0), vj]
"""


def test_data_that_end_below_a_size_that_a_call_decides_are_proved() -> None:
    func = parse(OPEN)
    for shortcuts in (True, False):
        verdict = prove(func, canonical_form(func), shortcuts=shortcuts)
        assert verdict.status == "proved", verdict


@pytest.mark.parametrize("last", ["n", "7", "2 * n - 1"])
def test_data_that_may_reach_the_rows_that_a_call_has_not_are_not_proved(last: str) -> None:
    func = parse(OPEN.replace("n - 1), 0)", f"{last}), 0)"))
    verdict = prove(func, canonical_form(func))
    assert verdict.status != "proved"
    assert "'S' has shape [n, 5]" in str(verdict)


def test_an_axis_that_may_be_empty_is_asked_about_first() -> None:
    text = OPEN.replace("dim(1, 8)", "dim(0, 8)")
    func = parse(text)
    assert prove(func, canonical_form(func)).status != "proved"
    read = 'S[max(min(cast(N[vi], "int64"), n - 1), 0), vj]'
    assert read in text
    func = parse(text.replace(read, f"select(0 < n, {read}, 0.0)"))
    assert prove(func, canonical_form(func)).status == "proved"


STRETCHED = """\
def stretch(n: dim(1, 8), m: dim(1, 8), T: float32[n], Y: output(float32[m])):
    for i in range(8):
        with block("Y", vi=spatial(m, i)):
            Y[vi] = T[max(min(vi * n // m, n - 1), 0)]
"""


def test_an_index_that_no_sets_express_is_proved_by_its_clamp() -> None:
    func = parse(STRETCHED)
    for shortcuts in (True, False):
        assert prove(func, canonical_form(func), shortcuts=shortcuts).status == "proved"
    wider = parse(STRETCHED.replace("n - 1), 0)", "n), 0)"))
    assert "'T' has shape [n]" in str(prove(wider, canonical_form(wider)))
    for planted in ("(vi + 1) * n // m", "vi * m // n", "vi * n // (m + 1)", "vi * n % m"):
        other = parse(STRETCHED.replace("vi * n // m", planted))
        assert prove(other, canonical_form(func)).status != "proved", planted
    loose = parse(STRETCHED.replace("max(min(vi * n // m, n - 1), 0)", "vi * n // m"))
    assert prove(loose, canonical_form(loose)).status != "proved"
