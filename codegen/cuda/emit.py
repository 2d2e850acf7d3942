"""A statement at the root of a LOWERED function as one kernel of CUDA C.

All threads of a block run what stands outside of loops of threads, loops and branches, alike. What
is done there is done by the first thread along each axis that has no loop around it: the others
skip it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from ...tir.analysis.threads import WARP, done_by_first, kept_by_all
from ...tir.buffer import Buffer
from ...tir.dim import Dim
from ...tir.errors import TargetError
from ...tir.func import PrimFunc, split_allocations
from ...tir.stmt import (
    BLOCK_AXES,
    THREAD_AXES,
    Alloc,
    Barrier,
    Commit,
    Extern,
    For,
    ForKind,
    If,
    LetStmt,
    Prefetch,
    Seq,
    Stmt,
    Store,
    WarpSum,
)
from ...tir.target.gpu import GPUS
from ...tir.target.target import Target
from ...tir.visit import accesses, free_vars, statements, stores
from ..isa.isa import isa
from ..text.lines import Lines, wrapped
from ..text.marked import MarkedText, joined
from ..text.statements import Statements
from .ahead_copies import AheadCopies
from .artifact import Dimensions, KernelLaunch, Stop
from .block_stops import block_stop
from .dialect import CUDA
from .vector_types import BUILT_IN
from .vectors import CudaVectors
from .warp_sums import WarpSums

THREAD_NAMES = dict(zip(THREAD_AXES, ("tx", "ty", "tz"), strict=True))
RESERVED = (
    *("tx", "ty", "tz", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "shared"),
    *("half", "min", "max", "dim3", *BUILT_IN),
    # words of C++ that are none of C
    *("and", "and_eq", "bitand", "bitor", "catch", "char8_t", "char16_t", "char32_t", "class"),
    *("co_await", "co_return", "co_yield", "compl", "concept", "consteval", "constinit"),
    *("const_cast", "decltype", "delete", "dynamic_cast", "explicit", "export", "friend"),
    *("mutable", "namespace", "new", "noexcept", "not", "not_eq", "operator", "or", "or_eq"),
    *("private", "protected", "public", "reinterpret_cast", "requires", "static_cast", "template"),
    *("this", "throw", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor", "xor_eq"),
)
NO_SIZES: Mapping[Dim, str] = MappingProxyType({})
MOST_ELEMENTS = 2**31 - 1  # of an array: indices are int
_ALIGNMENT = 16  # bytes, of every array in shared memory


@dataclass(frozen=True, slots=True)
class EmittedKernel:
    """The text of a kernel, and how it is launched."""

    text: MarkedText
    launch: KernelLaunch


def emit_kernel(
    func: PrimFunc, root: Stmt, target: Target, symbol: str, sizes: Mapping[Dim, str] = NO_SIZES
) -> EmittedKernel:
    """The kernel of a statement at the root of a function. sizes: what a launch calls those that a
    call decides. Raises: TargetError for what a grid cannot run.
    """
    return _KernelWriter(func, root, target, symbol).kernel(sizes)


class _KernelWriter(Statements[CudaVectors]):
    def __init__(self, func: PrimFunc, root: Stmt, target: Target, symbol: str) -> None:
        self.func = func
        self.root = root
        self.limits = GPUS[target.isa]
        self.target = target
        self.symbol = symbol
        super().__init__(CUDA, CudaVectors(Lines(), isa(target), CUDA))
        for name in RESERVED:
            self.lines.names.reserve(name)
        self.warp_sums = WarpSums(self.lines, self.expressions)
        self.copies = AheadCopies(root, self.expressions)
        loops = [node for node in statements(root) if isinstance(node, For)]
        self.extents = {
            axis: max([loop.extent for loop in loops if loop.axis == axis], default=1)
            for axis in (*BLOCK_AXES, *THREAD_AXES)
        }
        self.shared = _shared_plan(root)
        self.kept = kept_by_all(root)

    def kernel(self, sizes: Mapping[Dim, str]) -> EmittedKernel:
        """The text and the launch."""
        used = {access.buffer for access in accesses(self.root)}
        known = (*(p.buffer for p in self.func.parameters), *split_allocations(self.func.body)[0])
        arguments = [buffer for buffer in known if buffer in used]
        written = {store.buffer for store in stores(self.root)}
        parameters = [self._parameter(buffer, buffer in written) for buffer in arguments]
        asked = [dim for dim in sizes if dim in free_vars(self.root)]
        parameters += [self._size(dim) for dim in asked]
        block, grid = self._sizes(THREAD_AXES), self._sizes(BLOCK_AXES)
        threads = block[0] * block[1] * block[2]
        self._check(threads)
        self._uniform(self.root, frozenset(self._split_axes()))
        body = [*self._declared(), *self.lines.top, *self.lines.listed]
        text = joined(
            [
                f'extern "C" __global__ void __launch_bounds__({threads})',
                f"{self.symbol}({wrapped(parameters, '    ')})",
                "{",
                *body,
                "}",
                "",
            ]
        )
        names = (*(buffer.name for buffer in arguments), *(sizes[dim] for dim in asked))
        stops = tuple(self._stops(sizes))
        launch = KernelLaunch(self.symbol, grid, block, names, self._dynamic_bytes(), stops)
        return EmittedKernel(text, launch)

    def _size(self, dim: Dim) -> str:
        self.lines.ranges[dim] = (dim.low, dim.high)
        return f"int {self.lines.names.declare(dim)}"

    def _stops(self, sizes: Mapping[Dim, str]) -> Iterator[Stop]:
        """Where sizes of the call end the grid."""
        for number, axis in enumerate(BLOCK_AXES):
            found = block_stop(self.root, axis)
            if found is not None:
                yield Stop(number, sizes[found.dim], found.scale, found.step, found.offset)

    def _sizes(self, axes: tuple[str, ...]) -> Dimensions:
        x, y, z = (self.extents[axis] for axis in axes)
        return x, y, z

    def _split_axes(self) -> list[str]:
        """The axes along which a block has several threads."""
        return [axis for axis in THREAD_AXES if self.extents[axis] > 1]

    def _declared(self) -> list[str]:
        used = set(re.findall(r"\w+", "\n".join([*self.lines.top, *self.lines.listed])))
        lines = [
            f"    const int {THREAD_NAMES[axis]} = (int){axis};"
            for axis in self._split_axes()
            if THREAD_NAMES[axis] in used
        ]
        if self._dynamic_bytes():
            lines.append(f"    extern __shared__ __align__({_ALIGNMENT}) unsigned char shared[];")
        return lines

    def _parameter(self, buffer: Buffer, written: bool) -> str:
        if buffer.size > MOST_ELEMENTS:
            raise TargetError(
                f"cuda: '{buffer.name}' has {buffer.size} elements; expected at most "
                f"{MOST_ELEMENTS}: indices are of 32 bits.",
                code="cuda-elements",
            )
        kind = self.pointer(buffer, written=written)
        return f"{kind}__restrict__ {self.lines.names.declare(buffer)}"

    def _check(self, threads: int) -> None:
        if threads > self.limits.threads_per_block:
            raise TargetError(
                f"cuda: a block of '{self.func.name}' has {threads} threads; expected at most "
                f"{self.limits.threads_per_block} on {self.target.isa}.",
                code="cuda-threads",
                hints=("split the loops that are bound to threads.",),
            )
        total = sum(self.shared.values())
        if total > self.limits.shared_bytes:
            listed = ", ".join(f"'{b.name}' {size}" for b, size in self.shared.items())
            raise TargetError(
                f"cuda: a block of '{self.func.name}' needs {total} bytes of shared memory "
                f"({listed}); expected at most {self.limits.shared_bytes} on {self.target.isa}.",
                code="cuda-shared",
                hints=("smaller tiles, or a loop further in for what is shared.",),
            )

    def _dynamic_bytes(self) -> int:
        """Bytes of shared memory, where they are too many for arrays of fixed size."""
        total = sum(self.shared.values())
        return total if total > self.limits.static_shared_bytes else 0

    # -- statements

    def _uniform(self, stmt: Stmt, missing: frozenset[str]) -> None:
        """A statement that all threads of a block come to; `missing`: the axes along which they
        still have to be told apart.
        """
        first = done_by_first(stmt, missing, self.kept)
        if first:
            self._by_first((stmt,), first)
        else:
            self._structure(stmt, missing)

    def _by_first(self, stmts: Iterable[Stmt], missing: frozenset[str]) -> None:
        """Statements of the first thread along the axes."""
        names = " && ".join(f"{THREAD_NAMES[axis]} == 0" for axis in sorted(missing))
        with self.lines.block(f"if ({names}) {{"):
            for stmt in stmts:
                self._structure(stmt, frozenset())

    def _structure(self, stmt: Stmt, missing: frozenset[str]) -> None:
        if not isinstance(stmt, Seq | For | WarpSum):
            self.warp_sums.forget()
        with self.lines.marked(stmt):
            self._statement(stmt, missing)

    def _statement(self, stmt: Stmt, missing: frozenset[str]) -> None:
        match stmt:
            case Seq():
                for first, group in groupby(
                    stmt.body, lambda s: done_by_first(s, missing, self.kept)
                ):
                    if first:
                        self._by_first(group, first)
                        continue
                    for child in group:
                        self._uniform(child, missing)
            case Alloc():
                self._uniform(self.allocations(stmt), missing)
            case Store() | LetStmt() if (copy := self.copies.call(stmt)) is not None:
                self.lines.add(copy)
            case LetStmt():
                self.expressions.bind(stmt.var, stmt.value)
                self._uniform(stmt.body, missing)
            case If():
                self.branch(stmt, lambda inner: self._uniform(inner, missing))
            case For():
                self._loop(stmt, missing)
            case Store():
                self.lines.add(f"{self.expressions.store(stmt)};")
            case Barrier():
                for line in self.copies.before_barrier():
                    self.lines.add(line)
                self.lines.add(self.dialect.barrier)
            case Commit():
                self.lines.add("tw_cp_async_commit();")
            case Prefetch():
                pass
            case WarpSum():
                self._warp_sum(stmt)
            case Extern():
                raise TargetError(
                    f"cuda: '{self.func.name}' {stmt.function.words}; expected tensor "
                    "expressions alone.",
                    code="cuda-extern",
                    hints=("build it for a CPU, target='c'.",),
                )
            case _:
                raise TypeError(f"cuda: no statement for {type(stmt).__name__}")

    def _loop(self, loop: For, missing: frozenset[str]) -> None:
        self.lines.ranges[loop.var] = (0, loop.extent - 1)
        if loop.is_of_threads:
            self._threads(loop, missing)
            return
        if loop.is_of_blocks:
            if loop.var in free_vars(loop.body):
                name = self.lines.names.declare(loop.var)
                self.lines.add(f"const int {name} = (int){loop.axis};")
            self._uniform(loop.body, missing)
            return
        if loop.kind is ForKind.PARALLEL:
            raise TargetError(
                f"cuda: loop '{loop.var.name}' of '{self.func.name}' is parallel; expected loops "
                "that are bound to a grid.",
                code="cuda-parallel",
                hints=("sch.bind(loop, 'blockIdx.x') and sch.bind(loop, 'threadIdx.x').",),
            )
        self.warp_sums.forget()
        with self.counting(loop, "0", str(loop.extent)):
            self._uniform(loop.body, missing)
        self.warp_sums.forget()

    def _threads(self, loop: For, missing: frozenset[str]) -> None:
        """A loop of threads: each of them runs its iteration, and those beyond the last none."""
        left = missing - {loop.axis}
        if self.extents[loop.axis] == 1:
            self.lines.names.call(loop.var, "0")
        else:
            self.lines.names.call(loop.var, THREAD_NAMES[loop.axis])
        if loop.extent == self.extents[loop.axis]:
            self._uniform(loop.body, left)
            return
        self.warp_sums.forget()
        with self.lines.block(f"if ({THREAD_NAMES[loop.axis]} < {loop.extent}) {{"):
            self._uniform(loop.body, left)
        self.warp_sums.forget()

    def _warp_sum(self, stmt: WarpSum) -> None:
        count = self.extents[THREAD_AXES[0]]
        if count != WARP:
            raise TargetError(
                f"cuda: a warp of '{self.func.name}' computes '{stmt.intrinsic}' together, in a "
                f"block with {count} threads along threadIdx.x; expected {WARP}, one warp.",
                code="cuda-warp",
                hints=("bind other warps to threadIdx.y and threadIdx.z, also where they copy.",),
            )
        self.warp_sums.add(stmt)

    def variable_type(self, buffer: Buffer) -> str | None:
        register = buffer.scope == "register" and not buffer.shape
        return CUDA.type_of(buffer.type) if register else None

    def declare_array(self, buffer: Buffer) -> None:
        kind = CUDA.type_of(buffer.type)
        name = self.lines.names.declare(buffer)
        if buffer.scope == "global":
            raise TargetError(
                f"cuda: '{buffer.name}' of '{self.func.name}' is memory of its own in each block; "
                "expected scope 'shared' or 'register' below loops of blocks.",
                code="cuda-scope",
                hints=(f"sch.set_scope('{buffer.name}', 'shared').",),
            )
        if buffer.scope != "shared":
            self.lines.add(f"{kind} {name}[{max(1, buffer.room)}];")
        elif self._dynamic_bytes():
            listed = list(self.shared)
            offset = sum(self.shared[b] for b in listed[: listed.index(buffer)])
            self.lines.add(f"{kind} *const {name} = ({kind} *)(shared + {offset});")
        else:
            self.lines.add(f"__shared__ __align__({_ALIGNMENT}) {kind} {name}[{buffer.room}];")


def _shared_plan(root: Stmt) -> dict[Buffer, int]:
    """The bytes of each array in shared memory, in the order of the text."""
    return {
        node.buffer: -(-node.buffer.bytes // _ALIGNMENT) * _ALIGNMENT
        for node in statements(root)
        if isinstance(node, Alloc) and node.buffer.scope == "shared"
    }


def kernel_symbol(name: str, number: int, count: int) -> str:
    """What a function's kernel is called: by its function, and its number where there are
    several.
    """
    symbol = CUDA.entry_symbol(name)
    return symbol if count == 1 else f"{symbol}_{number}"
