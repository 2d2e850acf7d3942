"""Vector expressions as C text: one table entry per operation; masks; loads that are contiguous,
strided or scattered.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.analysis.linear import expression, linear
from ...tir.analysis.simplify import simplify
from ...tir.buffer import Buffer, Load
from ...tir.dtype import INT32, INT64, DType, dtype
from ...tir.errors import TargetError
from ...tir.expr import (
    LT,
    Add,
    And,
    Call,
    Cast,
    Compare,
    Const,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
    const,
    floordiv,
    index,
    is_const,
)
from ...tir.intrinsics import ROUND
from ...tir.lowered import Broadcast, Lanes, Ramp, Reinterpret, Shuffle, Vector
from ...tir.stmt import Store
from ...tir.visit import free_vars
from ..isa.isa import Isa
from ..isa.lookup import lookup
from ..isa.selection import (
    is_lane_count,
    is_plus_zero,
    lanes_operation,
    negated,
    operation,
    power_of_two,
    shift_count,
)
from ..lanes import LaneAccess, access, lanes_on, narrow, narrow_scalar
from ..text.lines import Lines
from ..text.scalars import ATOM, LESS, LONGEST_OPERANDS, OR, TERNARY, UNARY, Scalars, hint
from .constant_vectors import of_lookup, of_shuffle
from .dialect import C


class Vectors(Scalars):
    """Writes vector and scalar expressions.

    unsigned: the variables of signed integers that C holds as unsigned ones. streams: the buffers
    whose stores go past the caches now. streamed: whether one did, since somebody said that none
    had.
    """

    def __init__(
        self, lines: Lines, tables: Isa, unsigned: frozenset[Buffer] = frozenset()
    ) -> None:
        super().__init__(lines, tables, C)
        self.unsigned = unsigned
        self.streams: frozenset[Buffer] = frozenset()
        self.streamed = False

    def element_type(self, buffer: Buffer) -> str:
        """The C type of an element of a buffer."""
        held = dtype(f"uint{buffer.type.bits}") if buffer in self.unsigned else buffer.type
        return self.kind(held)

    def value(self, expr: Expr) -> str:
        """The text of any expression, as an argument or the right side of an assignment."""
        if expr.dtype.lanes == 1:
            return self.scalar(expr)
        return self.mask(expr) if expr.dtype.is_bool else self.vector(expr)

    def type_of(self, dtype: DType) -> str:
        """The C type of a variable that holds a vector or a mask."""
        return self.isa.mask_type(dtype.lanes) if dtype.is_bool else self.isa.types[dtype]

    def held_type(self, dtype: DType) -> str:
        """The C type of a register of vectors that is written again and again."""
        return self.isa.held.get(dtype) or self.isa.types[dtype]

    def held_value(self, expr: Expr) -> str:
        """The text of what such a register, or a scalar one, is set to."""
        cast = f"({self.isa.held[expr.dtype]})" if expr.dtype in self.isa.held else ""
        return f"{cast}{self.value(expr)}"

    def vector(self, expr: Expr) -> str:
        """The text of a vector of numbers."""
        match expr:
            case Var():
                return self.lines.names[expr]
            case Load():
                return self._load(expr)
            case Let():
                return self.vector(self.bound(expr))
            case Broadcast():
                return self._broadcast(expr)
            case Ramp():
                return self._ramp(expr)
            case Select():
                return self._blend(expr)
            case Lanes():
                return self._lanes(expr)
            case Reinterpret(Load() as load) if load.dtype.lanes != expr.dtype.lanes:
                return self._bits(load, expr.dtype)
            case Call(intrinsic, (sums, Vector(rows), Vector(columns))):
                return self._two_rows(intrinsic.name, sums, rows, columns)
            case Cast(Call(intrinsic, operands), kind) if intrinsic == ROUND:
                name, dtype = f"round_{kind.scalar}", expr.value.dtype
                if self.isa.has(name, dtype):
                    return self._apply(name, dtype, operands)
            case Shuffle() if not self.isa.has(*operation(expr)):
                return self._apply(*of_shuffle(self, expr))
        found = lookup(expr) if self.isa.has("lookup", expr.dtype) else None
        if found is not None:
            return self._apply(*of_lookup(self, found, expr.dtype))
        name, dtype = operation(expr)
        if not self.isa.has(name, dtype):
            raise self.unknown(expr)
        return self._apply(name, dtype, self._operands(expr, name))

    def _two_rows(self, name: str, sums: Expr, a: Sequence[Expr], b: Sequence[Expr]) -> str:
        """An instruction for two rows, whose lanes are two columns of one, then of the other."""
        pairs = (
            self.isa.apply("pair", INT64.with_lanes(2), self.value(first), self.value(second))
            for first, second in ((a[0], a[2]), (b[0], b[1]))
        )
        return self.isa.apply(name, sums.dtype, self.vector(sums), *pairs)

    def bind(self, var: Var, value: Expr) -> None:
        if var.type.lanes == 1:
            super().bind(var, value)
        else:
            self.lines.declare(self.type_of(var.type), var, self.value(value))

    def _operands(self, expr: Expr, name: str) -> Sequence[Expr | str]:
        match expr:
            case Mul() | FloorDiv() if name.startswith("shift"):
                return expr.a, str(power_of_two(expr.b))
            case ShiftLeft() | ShiftRight() if (count := shift_count(expr.b)) is not None:
                return expr.a, str(count)
            case FloorMod() if (exponent := power_of_two(expr.b)) is not None:
                ones = const((1 << exponent) - 1, expr.dtype.scalar)
                return expr.a, Broadcast(ones, expr.dtype.lanes)
            case Call():
                return expr.arguments
            case Mul() | Div() | Sub() if (turned := negated(expr)) is not None:
                return (turned,)
        return [item for item in expr.children() if isinstance(item, Expr)]

    def _apply(self, name: str, dtype: DType, operands: Sequence[Expr | str]) -> str:
        template = self.isa.operations[name, dtype]
        texts: list[str] = []
        for position, operand in enumerate(operands):
            text = operand if isinstance(operand, str) else self.vector(operand)
            several = not isinstance(operand, str) and template.count(f"{{{position}}}") > 1
            texts.append(
                self._named(operand, text) if several and not text.isidentifier() else text
            )
        return template.format(*self._shortened(operands, texts))

    def _shortened(self, operands: Sequence[Expr | str], texts: list[str]) -> list[str]:
        """The operands, the longest ones named where they would make a long line."""
        while sum(map(len, texts)) > LONGEST_OPERANDS:
            longest = max(range(len(texts)), key=lambda position: len(texts[position]))
            if isinstance(operands[longest], str) or texts[longest].isidentifier():
                break
            texts[longest] = self._named(operands[longest], texts[longest])
        return texts

    def _named(self, operand: Expr | str, text: str) -> str:
        assert isinstance(operand, Expr)
        return self.lines.keep(self.type_of(operand.dtype), hint(operand), text)

    def _broadcast(self, expr: Broadcast) -> str:
        value = expr.value
        if isinstance(value, Const) and str(value.value) in ("0", "0.0"):
            return self.isa.apply("zero", expr.dtype)
        return self.isa.apply("broadcast", expr.dtype, self.scalar(value))

    def _ramp(self, expr: Ramp) -> str:
        text = self._lane_numbers(expr.dtype)
        if expr.stride != 1:
            stride = Broadcast(const(expr.stride, expr.base.dtype), expr.lanes)
            text = self.isa.apply("mul", expr.dtype, text, self._broadcast(stride))
        if is_const(expr.base, 0):
            return text
        return self.isa.apply(
            "add", expr.dtype, self._broadcast(Broadcast(expr.base, expr.lanes)), text
        )

    def _scalar(self, expr: Expr) -> tuple[str, int]:
        return (self._lanes(expr), ATOM) if isinstance(expr, Lanes) else super()._scalar(expr)

    def _lanes(self, expr: Lanes) -> str:
        """Lanes of a register, by the number of the part."""
        part = str(expr.first // expr.count)
        value = self.vector(expr.value)
        return self.isa.apply(lanes_operation(expr.count), expr.value.dtype, value, part)

    def _lane_numbers(self, dtype: DType) -> str:
        """The vector 0, 1, 2, ..., which is declared once, at the top of the function."""
        text = self.isa.apply("lane_numbers", dtype)
        return self.lines.once(
            self.isa.types[dtype], f"tw_lanes_{dtype.scalar}x{dtype.lanes}", text
        )

    def _blend(self, expr: Select) -> str:
        if expr.condition.dtype.lanes == 1:
            return self.select(expr, self.vector, self.type_of(expr.dtype))[0]
        mask = self._short_mask(expr.condition, expr.dtype)
        if is_plus_zero(expr.on_false) and self.isa.has("blend_zero", expr.dtype):
            return self._apply("blend_zero", expr.dtype, (mask, expr.on_true))
        operands = (mask, expr.on_true, expr.on_false)
        return self._apply("blend", expr.dtype, operands)

    # -- masks

    def mask(self, expr: Expr, data: DType | None = None) -> str:
        """The text of a mask for vectors of `data`; by default, of one to be kept in a variable."""
        lanes = expr.dtype.lanes
        # else all masks of some lanes are alike
        own = data is not None and not self.isa.predicates and self.isa.masks is None
        like = data if own and data is not None else self._mask_like(lanes)
        match expr:
            case Var():
                return self._converted(self.lines.names[expr], self._mask_like(lanes), like)
            case Broadcast():
                return self.isa.apply("mask_all", like, self.scalar(expr.value, OR + 1))
            case And(Broadcast() as shared, other) | And(other, Broadcast() as shared):
                condition = self.scalar(shared.value, OR + 1)
                return self.isa.apply("mask_both", like, condition, self.mask(other, like))
            case Or(Broadcast() as shared, other) | Or(other, Broadcast() as shared):
                condition = self.scalar(shared.value, OR + 1)
                return self.isa.apply("mask_either", like, condition, self.mask(other, like))
            case And() | Or():
                name = "mask_and" if isinstance(expr, And) else "mask_or"
                return self.isa.apply(name, like, self.mask(expr.a, like), self.mask(expr.b, like))
            case Not():
                return self.isa.apply("mask_not", like, self.mask(expr.a, like))
            case Select(condition) if condition.dtype.lanes == 1:
                kind = self.isa.mask_type(lanes, like)
                return self.select(expr, lambda value: self.mask(value, like), kind)[0]
            case Select(condition):
                kind = self.isa.mask_type(lanes, like)
                on = self.lines.keep(kind, "on", self.mask(condition, like))
                off = self.isa.apply("mask_not", like, on)
                a = self.isa.apply("mask_and", like, on, self.mask(expr.on_true, like))
                b = self.isa.apply("mask_and", like, off, self.mask(expr.on_false, like))
                return self.isa.apply("mask_or", like, a, b)
            case Let():
                return self.mask(self.bound(expr), like)
            case Load():
                return self._load(expr)
            case Compare() if is_lane_count(expr):
                return self._lane_count(expr, like)
            case Compare():
                name, dtype = operation(expr)
                text = self.isa.apply(name, dtype, self.vector(expr.a), self.vector(expr.b))
                return self._converted(text, dtype, like)
        raise self.unknown(expr)

    def _short_mask(self, expr: Expr, data: DType) -> str:
        """The text of a mask for vectors of `data`, named where it is long."""
        text = self.mask(expr, data)
        if len(text) <= LONGEST_OPERANDS // 2:
            return text
        return self.lines.keep(self.isa.mask_type(data.lanes, data), "on", text)

    def _mask_like(self, lanes: int) -> DType:
        """The integer vector whose lanes are as wide as those of a mask in a variable."""
        if self.isa.predicates:
            return INT32.with_lanes(lanes)
        return next(
            t for t in self.isa.types if t.lanes == lanes and t.bits == self.isa.mask_bits(lanes)
        )

    def _converted(self, text: str, source: DType, result: DType) -> str:
        """A mask made for vectors of `source`, for vectors of `result`."""
        if self.isa.predicates or source.bits == result.bits:
            return text
        name = "mask_widen" if source.bits < result.bits else "mask_narrow"
        return self.isa.apply(name, INT32.with_lanes(source.lanes), text)

    def _lane_count(self, expr: Compare, like: DType) -> str:
        """The mask of base + stride * lane < limit: it is on in the first lanes, or off in the
        first ones.
        """
        left, right = (self._ends(side) for side in (expr.a, expr.b))
        step = right[1] - left[1]
        apart = linear(right[0]) - linear(left[0])
        if isinstance(expr, LT):
            apart += linear(index(-1))
        room = expression(apart)  # on where room + step * lane >= 0
        if step == 0:
            return self.isa.apply(
                "mask_all", like, f"{self.scalar(simplify(room, self.lines.ranges), LESS + 1)} >= 0"
            )
        if step < 0:
            return self._first(floordiv(room, index(-step)) + 1, like)
        off = floordiv(room, index(step)) * index(-1)
        return self.isa.apply("mask_not", like, self._first(off, like))

    def _ends(self, side: Expr) -> tuple[Expr, int]:
        if isinstance(side, Ramp):
            return side.base, side.stride
        assert isinstance(side, Broadcast)
        return side.value, 0

    def _first(self, count: Expr, like: DType) -> str:
        clamped = simplify(Max(Min(count, index(like.lanes)), index(0)), self.lines.ranges)
        if isinstance(clamped, Const) and self.isa.predicates:
            return f"({self.isa.mask_type(like.lanes)}){hex((1 << int(clamped.value)) - 1)}"
        return self.isa.apply("mask_first", like, self.scalar(clamped, UNARY))

    # -- memory

    def _load(self, load: Load) -> str:
        if not load.buffer.shape and load.buffer.scope == "register":
            name = self.lines.names[load.buffer]
            return f"({self.isa.types[load.dtype]}){name}" if load.dtype in self.isa.held else name
        found = access(load.buffer, load.indices, self.lines.ranges)
        if found.stride == 1:
            return self._contiguous(load, found)
        pointer, offsets = self._addresses(load, found)
        if load.mask is None:
            return self.isa.apply("gather", load.dtype, pointer, offsets)
        other = self._other(load)
        mask = self._short_mask(load.mask, load.dtype)
        return self.isa.apply("gather_masked", load.dtype, pointer, offsets, mask, other)

    def _contiguous(self, load: Load, found: LaneAccess) -> str:
        pointer = self._pointer(load.buffer, found.base)
        if load.mask is None:
            return self.isa.apply("load", load.dtype, pointer)
        mask = self._short_mask(load.mask, load.dtype)
        other = self._other(load)
        if other == self.isa.apply("zero", load.dtype):
            return self.isa.apply("load_masked", load.dtype, pointer, mask)
        if self.isa.has("load_merged", load.dtype):
            return self.isa.apply("load_merged", load.dtype, pointer, mask, other)
        text = self.isa.apply("load_masked", load.dtype, pointer, mask)
        return self.isa.apply("blend", load.dtype, mask, text, other)

    def _other(self, load: Load) -> str:
        """What the lanes that are off hold; zero where nothing is said."""
        if load.other is None:
            return self.isa.apply("zero", load.dtype)
        return self.vector(load.other)

    def _reinterpret(self, expr: Reinterpret) -> tuple[str, int]:
        load = expr.value
        if not isinstance(load, Load) or load.dtype.lanes == 1:
            return super()._reinterpret(expr)
        at = self._neighbours(load)
        if load.mask is None:
            return f"tw_load_i{expr.type.bits}({at})", ATOM
        on = self._bits_on(load, load.mask)
        count = on.bit_length()
        if on != (1 << count) - 1:
            raise self.unknown(load)
        name = "tw_load_first" if expr.type.bits == 32 else f"tw_load_first_{expr.type.bits}"
        return f"{name}({at}, {count * load.buffer.type.bytes})", ATOM

    def _bits(self, load: Load, dtype: DType) -> str:
        """The elements of a load of neighbours as the lanes of a wider type."""
        at, bits = self._neighbours(load), load.buffer.type.bits
        whole = f"load_bits_{bits}" if self.isa.has(f"load_bits_{bits}", dtype) else "load"
        if load.mask is None:
            return self.isa.apply(whole, dtype, at)
        on = self._bits_on(load, load.mask)
        if on == (1 << load.dtype.lanes) - 1:
            return self.isa.apply(whole, dtype, at)
        if self.isa.has(f"load_bits_masked_{bits}", dtype):
            return self.isa.apply(f"load_bits_masked_{bits}", dtype, at, hex(on))
        elements = (f"({at})[{n}]" if on >> n & 1 else "0" for n in range(load.dtype.lanes))
        return self.isa.apply(f"elements_{bits}", dtype, ", ".join(elements))

    def _neighbours(self, load: Load) -> str:
        """Where a load of neighbours begins."""
        found = access(load.buffer, load.indices, self.lines.ranges)
        if found.stride != 1:
            raise self.unknown(load)
        return self._pointer(load.buffer, found.base)

    def _bits_on(self, load: Load, mask: Expr) -> int:
        """A mask that is known now, as a bit per element. Raises: TargetError."""
        on = lanes_on(mask)
        if on is None:
            names = " and ".join(sorted({f"'{var.name}'" for var in free_vars(mask)}))
            raise TargetError(
                f"c: which elements of '{load.buffer.name}' are taken depends on {names}; "
                "expected a condition that is known here.",
                code="c-undecided-mask",
                hints=('cut the loops of the condition (tail="mask"), or unroll them.',),
            )
        return on

    def _addresses(self, load: Load, found: LaneAccess) -> tuple[str, str]:
        """A pointer, and the distances in elements from there as a vector of int32."""
        if found.stride is not None:
            distances: Expr | None = Ramp(narrow_scalar(index(0)), found.stride, found.lanes)
            if found.stride == 0:
                return self._pointer(load.buffer, found.base), self.isa.apply(
                    "zero", INT32.with_lanes(found.lanes)
                )
            assert distances is not None
            return self._pointer(load.buffer, found.base), self.vector(distances)
        ranges = self.lines.ranges
        distances = narrow(found.offset, found.lane, found.lanes, ranges, found.values)
        if distances is None:
            raise self.unknown(load)
        return self.lines.names[load.buffer], self.vector(distances)

    def _pointer(self, buffer: Buffer, offset: Expr) -> str:
        name = self.lines.names[buffer]
        return name if is_const(offset, 0) else f"&{name}[{self.scalar(offset)}]"

    def element(self, load: Load) -> tuple[str, int]:
        text, own = super().element(load)
        if load.buffer in self.unsigned:
            return f"({self.kind(load.buffer.type)}){text}", UNARY
        return text, own

    def _unsigned(self, expr: Expr, level: int) -> str:
        if not isinstance(expr, Load) or expr.buffer not in self.unsigned:
            return super()._unsigned(expr, level)
        text, _ = super().element(expr)
        return text if expr.dtype.bits >= 32 else f"(uint32_t){text}"

    def store(self, store: Store) -> str:
        """The statement that stores a value, without its semicolon."""
        dtype = store.value.dtype
        if store.buffer in self.unsigned:
            return self._store_unsigned(store)
        if not store.buffer.shape and store.buffer.scope == "register":
            return f"{self.lines.names[store.buffer]} = {self.held_value(store.value)}"
        if dtype.lanes == 1:
            return super().store(store)
        found = access(store.buffer, store.indices, self.lines.ranges)
        pointer = self._pointer(store.buffer, found.base)
        value = self.value(store.value)
        if store.mask is None and self._streams(store):
            self.streamed = True
            kept = value if value.isidentifier() else self._named(store.value, value)
            past, there = (self.isa.apply(n, dtype, pointer, kept) for n in ("stream", "store"))
            return f"tw_aligned({pointer}, {self.isa.vector_bytes}) ? {past} : {there}"
        if store.mask is None:
            return self.isa.apply("store", dtype, pointer, value)
        mask = self._short_mask(store.mask, dtype)
        return self.isa.apply("store_masked", dtype, pointer, mask, value)

    def _store_unsigned(self, store: Store) -> str:
        """A sum as it is, without the conversion to a signed integer; C converts other values."""
        value, kind = store.value, self.element_type(store.buffer)
        while isinstance(value, Let):
            value = self.bound(value)
        if isinstance(value, Add | Sub | Mul):
            text = self._unsigned(value, TERNARY)
            text = text if value.dtype.bits >= 32 else f"({kind})({text})"
            if len(text) > LONGEST_OPERANDS:
                text = self.lines.keep(kind, hint(value), text)
        else:
            text = self.scalar(value)
        place, _ = super().element(Load(store.buffer, store.indices))
        return f"{place} = {text}"

    def _streams(self, store: Store) -> bool:
        """Whether a store goes past the caches: that of a whole register, which fills its lines."""
        dtype = store.value.dtype
        whole = dtype.lanes * dtype.bytes == self.isa.vector_bytes
        return store.buffer in self.streams and whole and self.isa.has("stream", dtype)
