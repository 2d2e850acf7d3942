"""Every kernel of tests/golden: its function, its schedule where no rule makes it, and the arrays
that it is run on. Between them they use each form of the language, each rule and each primitive
that changes what is computed where.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewright import te
from tilewright.codegen.lower.lower import contraction, lower_parts, lower_to_nest
from tilewright.codegen.lower.split_prepare import Prepared
from tilewright.driver.lower import choose_schedule
from tilewright.schedule.rules.default import rule_for
from tilewright.schedule.schedule import Schedule
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.instructions.tensor_intrinsics import (
    VDPBF16PS,
    VPDPBUSD,
    VPDPWSSD,
    TensorIntrinsic,
)
from tilewright.tir.number import integer_range
from tilewright.tir.target.target import Target

from ..schedule import programs
from .kernels import KERNELS as BY_RULE

Steps = Callable[[Schedule], object]
Arrays = dict[str, np.ndarray]

FLOATS = (0.0, 0.5, 1.0, 1.5, 2.5, 88.7, 103.9, 127.5, 128.0, 255.5, 2.0**31, 2.0**63, 3e9, 1e-30)
FLOATS += (1e-45, 1e-40, 1.2e-38, 6e-8, 448.0, 57344.0, 65504.0, 65520.0, 3e38, 1e308, np.inf)


@dataclass(frozen=True)
class Golden:
    """A kernel. steps: its schedule; None where its rule makes it. special: the part of its floats
    that are zeros, ends of ranges, infinite or no numbers. feature: of AVX-512, and perhaps of
    others, which have the kernel's instructions; empty where any instruction set will do.
    """

    make: Callable[[], PrimFunc]
    steps: Steps | None = None
    special: float = 0.02
    feature: str = ""

    def target(self, isa: str) -> Target:
        """The target of an instruction set with the feature."""
        return Target.parse(f"c:{isa}+{self.feature}" if self.feature else f"c:{isa}")

    def lowered(self, target: Target) -> Prepared:
        """The LOWERED functions for a target."""
        func = self.make()
        what = func if self.steps is None else Schedule(func).apply(self.steps)
        schedule, _ = choose_schedule(what, target)
        return lower_parts(lower_to_nest(contraction(schedule.func, target)), target)

    def arrays(self) -> Arrays:
        """Values for every parameter but the outputs."""
        rng = np.random.default_rng(0)
        func = self.make()
        return {p.name: self._array(rng, p.buffer) for p in func.parameters if p.role != "output"}

    def _array(self, rng: np.random.Generator, buffer: Buffer) -> np.ndarray:
        kind, shape = buffer.type, buffer.shape
        if kind.is_float:
            values = rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape)
            drawn = rng.choice(np.array(FLOATS), shape) * rng.choice([-1.0, 1.0], shape)
            chosen = np.asarray(drawn)
            chosen[rng.random(shape) < 0.05] = np.nan
            with np.errstate(all="ignore"):
                mixed = np.where(rng.random(shape) < self.special, chosen, values)
                wide = np.float32 if kind.is_storage else kind.numpy
                return mixed.astype(wide).astype(kind.numpy)
        low, high = integer_range(kind)
        least, most = max(low, -9), min(high, 9)
        values = rng.integers(least, most, shape, endpoint=True)
        whole = rng.integers(low, high, shape, endpoint=True, dtype=_widest(low))
        return np.where(rng.random(shape) < self.special, whole, values).astype(kind.numpy)


def _widest(low: int) -> type:
    return np.int64 if low < 0 else np.uint64


def pointwise(
    inputs: dict[str, str], outputs: dict[str, Callable[..., Expr]], name: str, count: int = 149
) -> PrimFunc:
    """Vectors of `inputs` to one vector for each of `outputs`."""
    given = [te.placeholder((count,), kind, name=key) for key, kind in inputs.items()]

    def made(element: Callable[..., Expr], key: str) -> te.Tensor:
        return te.compute((count,), lambda i: element(*(x[i] for x in given)), name=key)

    return te.func(*given, *(made(element, key) for key, element in outputs.items()), name=name)


def functions(kind: str) -> PrimFunc:
    """Every function of floats."""
    one = (te.exp, te.log, te.tanh, te.erf, te.gelu, te.sqrt, te.abs, te.floor, te.round)
    outputs: dict[str, Callable[..., Expr]] = {
        made.__name__: lambda x, _, made=made: made(x) for made in one
    }
    outputs["pow"] = te.pow
    outputs["root"] = lambda x, _: te.pow(x, 0.75)
    outputs["cube"] = lambda x, _: te.pow(x, 3.0)
    outputs["sigmoid"] = lambda x, _: 1.0 / (1.0 + te.exp(-x))
    return pointwise({"X": kind, "P": kind}, outputs, "functions")


def arithmetic(kind: str) -> PrimFunc:
    """Sums, products, signs, comparisons, minima and maxima of floats, zeros of either sign
    among them.
    """
    outputs: dict[str, Callable[..., Expr]] = {
        "fused": lambda a, b, c: a * b + c,
        "negated": lambda a, b, c: -(a * b + c),
        "cancelled": lambda a, _b, _c: -(a * 2.0 + a * -2.0),  # -0
        "turned": lambda a, b, c: te.const(-0.0, kind) - (a * b + 0.0 * c),
        "divided": lambda a, b, c: (a * b + c) / -1.0 - c / b,
        "minimum": lambda a, b, _: te.minimum(a, b),
        "maximum": lambda a, b, _: te.maximum(a, b),
        "positive": lambda a, b, c: te.maximum(a * b + c, 0.0),
        "rectified": lambda a, _b, _c: te.maximum(a, 0.0),
        "not_positive": lambda a, _b, _c: te.minimum(te.const(-0.0, kind), a),
        "clipped": lambda a, _b, _c: te.minimum(te.maximum(a, 0.0), 6.0),
        "ordered": lambda a, b, c: te.select(te.any_of(a < b, te.eq(b, c)), a, -b),
        "counted": lambda a, b, c: (
            te.cast(te.all_of(a <= b, te.ne(b, c)), "int32") + te.cast(a >= c, "int32")
        ),
        "unequal": lambda a, b, c: te.all_of(te.logical_not(a < b), te.cast(c, "bool")),
    }
    return pointwise({"A": kind, "B": kind, "C": kind}, outputs, "arithmetic")


def integers(kind: str) -> PrimFunc:
    """Arithmetic, bits and shifts of integers; they wrap around, counts lie anywhere."""
    outputs: dict[str, Callable[..., Expr]] = {
        "wrapped": lambda a, b: a * b + a - b * 3,
        "bits": lambda a, b: (a & b) ^ (a | 5) ^ ~b,
        "shifted": lambda a, b: (a << b) ^ (a >> b) ^ (a << 3) ^ (b >> 2),
        "quotient": lambda a, _: a // 3 - a // 8,
        "rest": lambda a, _: a % 7 + a % 16,
        "by": lambda a, b: a // (b | 1) + a % (b | 1),
        "least": lambda a, b: te.minimum(a, te.maximum(b, 2)),
        "larger": lambda a, b: te.select(a < b, b, a),
        "real": lambda a, b: te.cast(a, "float32") * 0.5 + te.cast(b < a, "float32"),
        "long_real": lambda a, _: te.cast(a, "float64") / 3.0,
    }
    return pointwise({"A": kind, "B": kind}, outputs, "integers")


def conversions(kind: str) -> PrimFunc:
    """Floats to every other type; what a type cannot hold becomes its nearest end."""
    kinds = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
    kinds += ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
    kinds += ("int4", "uint4")
    outputs: dict[str, Callable[..., Expr]] = {
        f"to_{to}": lambda x, to=to: te.cast(x, to) for to in kinds if to != kind
    }
    return pointwise({"X": kind}, outputs, "conversions")


def stored(kind: str) -> PrimFunc:
    """What is loaded, computed wider, and stored."""
    wide = "float32" if te.placeholder((1,), kind, name="X").type.is_float else "int32"
    outputs: dict[str, Callable[..., Expr]] = {
        "wide": lambda x, _: te.cast(x, wide),
        "product": lambda x, y: te.cast(te.cast(x, wide) * te.cast(y, wide) + 1, kind),
        "same": lambda x, _: te.cast(te.cast(x, wide), kind),
    }
    return pointwise({"X": kind, "Y": kind}, outputs, "stored", 203)


def bytes_and_truths() -> PrimFunc:
    """Floats quantised and back, comparisons and choices, as bytes and truth values in memory."""
    kinds = {"X": "float32", "U": "uint8", "S": "int8", "B": "bool"}
    outputs: dict[str, Callable[..., Expr]] = {
        "quantised": lambda x, _u, _s, _b: te.cast(te.round(x * 20.0) + 128.0, "uint8"),
        "signed": lambda x, _u, _s, _b: te.cast(te.round(x * 20.0), "int8"),
        "restored": lambda _x, u, _s, _b: (te.cast(u, "float32") - 128.0) * 0.05,
        "summed": lambda _x, u, s, _b: te.cast(u, "int32") + te.cast(s, "int32"),
        "wrapped": lambda _x, u, s, _b: te.cast(u, "int8") + te.maximum(s, te.const(-3, "int8")),
        "less": lambda x, u, _s, _b: x < te.cast(u, "float32"),
        "ordered": lambda _x, u, s, b: te.all_of(b, u <= te.cast(s, "uint8")),
        "chosen": lambda x, _u, _s, b: te.select(b, x, -1.0),
        "chosen_byte": lambda x, u, _s, _b: te.select(x < 0.0, u, te.const(7, "uint8")),
        "counted": lambda _x, _u, s, b: te.cast(b, "int32") + te.cast(te.cast(s, "bool"), "int32"),
    }
    return pointwise(kinds, outputs, "bytes_and_truths")


def reductions(m: int, n: int) -> PrimFunc:
    """Every reducer, along rows and along columns."""
    x = te.placeholder((m, n), "float32", name="X")
    made = []
    for name in ("sum", "prod", "min", "max", "max_any"):
        k, r = te.reduce_axis(n, name="k"), te.reduce_axis(m, name="r")
        one = getattr(te, name)
        made.append(te.compute((m,), lambda i, k=k, one=one: one(x[i, k], axis=k), name=name))
        made.append(
            te.compute((n,), lambda j, r=r, one=one: one(-x[r, j], axis=r), name=f"{name}_down")
        )
    return te.func(x, *made, name="reductions")


def truths(m: int, n: int) -> PrimFunc:
    x = te.placeholder((m, n), "float32", name="X")
    k, r = te.reduce_axis(m, name="k"), te.reduce_axis(m, name="r")
    some = te.compute((n,), lambda j: te.any(x[k, j] > 3.0, axis=k), name="some")
    every = te.compute((n,), lambda j: te.all(x[r, j] < 3.0, axis=r), name="every")
    return te.func(x, some, every, name="truths")


def argmax(m: int, n: int, *, along_rows: bool) -> PrimFunc:
    x = te.placeholder((m, n), "float32", name="X")
    kept, extent = (m, n) if along_rows else (n, m)
    k = te.reduce_axis(extent, name="k")
    best, at = te.compute(
        (kept,),
        lambda i: te.argmax(x[i, k] if along_rows else x[k, i], axis=k, dtype="int32"),
        name=("best", "at"),
    )
    return te.func(x, best, at, name="argmax")


def log_sum_exp(m: int, n: int) -> PrimFunc:
    """Down the columns of X, by a reducer of two values."""
    x = te.placeholder((m, n), "float32", name="X")

    def joined(a: tuple[Expr, Expr], b: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
        top = te.maximum(a[0], b[0])
        return top, a[1] * te.exp(a[0] - top) + b[1] * te.exp(b[0] - top)

    reduce = te.comm_reducer(joined, lambda t, s: (te.const(-1e30, t), 0), name="lse")
    k, one = te.reduce_axis(m, name="k"), te.const(1, "float32")
    t, s = te.compute((n,), lambda j: reduce((x[k, j], one), axis=k), name=("t", "s"))
    return te.func(x, te.compute((n,), lambda j: t[j] + te.log(s[j]), name="Y"), name="log_sum_exp")


def layer_norm(m: int, n: int) -> PrimFunc:
    x = te.placeholder((m, n), "float32", name="X")
    scale = te.placeholder((n,), "float32", name="scale", constant=True)
    shift = te.placeholder((n,), "float32", name="shift", constant=True)
    k, r = te.reduce_axis(n, name="k"), te.reduce_axis(n, name="r")
    s = te.compute((m,), lambda i: te.sum(x[i, k], axis=k), name="S")
    d = te.compute((m, n), lambda i, j: x[i, j] - s[i] * (1.0 / n), name="D")
    q = te.compute((m,), lambda i: te.sum(d[i, r] * d[i, r], axis=r), name="Q")

    def element(i: Expr, j: Expr) -> Expr:
        return d[i, j] / te.sqrt(q[i] * (1.0 / n) + 1e-5) * scale[j] + shift[j]

    return te.func(x, scale, shift, te.compute((m, n), element, name="Y"), name="layer_norm")


def traced(sch: Schedule) -> None:
    """The schedule of the tracer, in blocks and tiles that fit small matrices."""
    sch.pack("W", width=32)
    i, j, k = sch.loops("C")
    i, ii = sch.split(i, (None, 4), tail="partition")
    j, jj, lane = sch.split(j, (None, 2, 16), tail="mask")
    block, k = sch.split(k, (None, 16), tail="partition")
    sch.reorder(j, block, i, k, ii, jj, lane)
    sch.unroll(ii)
    sch.unroll(jj)
    sch.vectorize(lane)
    sch.parallel(j)
    sch.stage("C", "C", i, "register")
    y, columns = sch.reverse_compute_at("Y", i, at="last")
    vectors, lane = sch.split(columns, (2, 16), tail="mask")
    sch.unroll(y)
    sch.unroll(vectors)
    sch.vectorize(lane)
    sch.prefetch("W_packed", at=block, spread=(i, k))
    sch.prefetch("Y", at=i, spread=(k,), distance=0, rw="write")


def in_parts(block: str) -> Steps:
    """The reduction of a block over rows in three parts, columns in vectors."""

    def steps(sch: Schedule) -> None:
        _, k = sch.loops(block)
        outer, _ = sch.split(k, (3, None))
        for name in (sch.rfactor(block, outer), block):
            column, *steps = sch.loops(name)
            sch.reorder(*steps, column)
            sch.vectorize(column)

    return steps


def four_lanes(sch: Schedule) -> None:
    """Vectors of four, whatever the machine's are."""
    for block in sch.blocks():
        loop = sch.loops(block)[-1]
        sch.vectorize(sch.split(loop, (None, 4), tail="mask")[1])


def around_calls(sch: Schedule) -> None:
    """Rows in vectors, which threads share; a block without loops as it is."""
    for block in sch.blocks():
        if sch.loops(block):
            i, j = sch.loops(block)
            sch.parallel(i)
            sch.vectorize(sch.split(j, (None, 16), tail="mask")[1])


def rolled(sch: Schedule) -> None:
    y, _ = sch.loops("Y")
    strip, y = sch.split(y, (None, 3), tail="partition")
    sch.compute_at("R", y)
    sch.rolling_buffer("R", y)
    for name in ("R", "R_first", "Y"):
        sch.vectorize(sch.loops(name)[-1])
    sch.parallel(strip)


def rows_apart(sch: Schedule) -> None:
    """An intermediate tensor whose rows are 25 elements apart."""
    sch.storage_align("R", axis=0, factor=8, offset=1)
    for block in ("R", "Y"):
        _, columns = sch.loops(block)
        _, lane = sch.split(columns, (None, 8), tail="mask")
        sch.vectorize(lane)


def guarded(sch: Schedule) -> None:
    """Tails of all three kinds, a fused loop, threads."""
    for block, tail in zip(sch.blocks(), ("guard", "partition", "mask"), strict=True):
        fused = sch.fuse(*sch.loops(block))
        outer, inner = sch.split(fused, (None, 24), tail=tail)
        sch.parallel(outer)
        if tail == "mask":
            sch.vectorize(inner)


def by_rule_of_dots(sch: Schedule) -> None:
    """What the rule does where the instruction on bfloat16 is allowed."""
    target = Target.parse("c:avx512+bf16")
    rule_for(sch.func, target, allow=("vdpbf16ps",)).apply(sch, target)


def products(m: int, n: int, k: int) -> PrimFunc:
    """Rows by columns of bfloat16, in float32."""
    a = te.placeholder((m, k), "bfloat16", name="A")
    b = te.placeholder((k, n), "bfloat16", name="B", constant=True)
    q = te.reduce_axis(k, name="k")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(te.cast(a[i, q], "float32") * te.cast(b[q, j], "float32"), axis=q),
        name="C",
    )
    return te.func(a, b, c, name="products")


def of_dots(intrinsic: TensorIntrinsic, lanes: int) -> Golden:
    """Rows by columns, some lanes at a time, in an instruction."""

    def steps(sch: Schedule) -> None:
        programs.in_instructions(sch, intrinsic, lanes)
        sch.stage("C", "C", sch.loops("C")[1], "register")

    def make() -> PrimFunc:
        return programs.packed_dots(intrinsic, 9, 2 * lanes, 8 * intrinsic.points)

    return Golden(make, steps, special=0.1, feature=intrinsic.targets[0].partition("+")[2])


GOLDEN: dict[str, Golden] = {
    **{f"rule_{name}": Golden(make) for name, make in BY_RULE.items()},
    "functions_float32": Golden(lambda: functions("float32"), special=0.4),
    "functions_float64": Golden(lambda: functions("float64"), special=0.4),
    "arithmetic_float32": Golden(lambda: arithmetic("float32"), special=0.3),
    "arithmetic_without_vectors": Golden(
        lambda: arithmetic("float32"), lambda sch: None, special=0.3
    ),
    "arithmetic_float64": Golden(lambda: arithmetic("float64"), special=0.3),
    **{
        f"integers_{kind}": Golden(lambda kind=kind: integers(kind), special=0.5)
        for kind in ("int8", "uint8", "int32", "uint32", "int64", "uint64")
    },
    "conversions_float32": Golden(lambda: conversions("float32"), special=0.6),
    "conversions_float64": Golden(lambda: conversions("float64"), special=0.6),
    "conversions_int32": Golden(lambda: conversions("int32"), special=0.6),
    "conversions_int64": Golden(lambda: conversions("int64"), special=0.6),
    **{
        f"stored_{kind}": Golden(lambda kind=kind: stored(kind), special=0.4)
        for kind in (
            *("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"),
            *("float8_e4m3fnuz", "float4_e2m1fn", "int2"),
        )
    },
    "bytes_and_truths": Golden(bytes_and_truths, special=0.3),
    "reductions": Golden(lambda: reductions(9, 37)),
    "reductions_of_bool": Golden(lambda: truths(6, 19)),
    "argmax_of_rows": Golden(lambda: argmax(7, 21, along_rows=True)),
    "argmax_of_columns": Golden(lambda: argmax(3, 21, along_rows=False)),
    "argmax_in_parts": Golden(lambda: argmax(6, 21, along_rows=False), in_parts("best")),
    "log_sum_exp": Golden(lambda: log_sum_exp(7, 21)),
    "log_sum_exp_in_parts": Golden(lambda: log_sum_exp(6, 21), in_parts("t")),
    "extremes": Golden(lambda: programs.extremes(8, 21)),
    "where": Golden(lambda: programs.causal(13, 21, 5)),
    "scattered": Golden(lambda: programs.scattered(9, 21, 12)),
    "gathered": Golden(lambda: programs.gathered(9, 21, 12)),
    "gathered_in_a_sum": Golden(lambda: programs.bag(9, 21, 12)),
    "convolution_of_groups": Golden(lambda: programs.conv(7, 6, 3, 8, groups=2)),
    "pooling_of_padding": Golden(lambda: programs.pool(9, 8, 20, pad=1)),
    "layer_norm": Golden(lambda: layer_norm(5, 43)),
    "several_outputs": Golden(lambda: programs.moments(6, 29)),
    "scan": Golden(lambda: programs.running(6, 37)),
    "scan_along_rows": Golden(lambda: programs.running(9, 21, axis=1, reverse=True)),
    "scan_of_two_states": Golden(lambda: programs.cell(5, 43)),
    "extern": Golden(lambda: programs.ranked(5, 43), around_calls, special=0.1),
    "tracer": Golden(lambda: programs.gelu_matmul(7, 45, 30), traced),
    "four_lanes": Golden(lambda: programs.chain(5, 23), four_lanes, special=0.2),
    "rolling_buffer": Golden(lambda: programs.blur(8, 21), rolled, special=0.1),
    "rows_apart": Golden(lambda: programs.blur(8, 21), rows_apart, special=0.1),
    "dots_of_bytes_by_rule": Golden(BY_RULE["dots"], special=0.1, feature="vnni"),
    "dots_of_bytes_in_groups": Golden(BY_RULE["grouped_dots"], special=0.1, feature="vnni"),
    "dots_of_bytes_in_joined_groups": Golden(BY_RULE["joined_dots"], special=0.1, feature="vnni"),
    "block_dots_of_bytes": Golden(BY_RULE["block_dots"], special=0.1, feature="vnni"),
    "dots_of_bfloat16_by_rule": Golden(
        lambda: products(7, 37, 21), by_rule_of_dots, special=0.1, feature="bf16"
    ),
    "dots_of_bytes": of_dots(VPDPBUSD, 16),
    "dots_of_bytes_in_eight_lanes": of_dots(VPDPBUSD, 8),
    "dots_of_int16": of_dots(VPDPWSSD, 16),
    "dots_of_int16_in_eight_lanes": of_dots(VPDPWSSD, 8),
    "dots_of_bfloat16": of_dots(VDPBF16PS, 16),
    "dots_of_bfloat16_in_eight_lanes": of_dots(VDPBF16PS, 8),
    "dots_of_bfloat16_in_four_lanes": of_dots(VDPBF16PS, 4),
    "tails_and_threads": Golden(lambda: programs.chain(7, 23), guarded, special=0.2),
}
