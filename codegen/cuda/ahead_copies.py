"""Copies into shared memory that go on while the threads compute: cp.async, and the wait for it."""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.buffer import Buffer, Load
from ...tir.expr import Expr
from ...tir.lowered import Ramp
from ...tir.stmt import Commit, LetStmt, Stmt, Store
from ...tir.visit import statements
from .scalars import CudaScalars

SIZES = (4, 8, 16)  # bytes of one copy


class AheadCopies:
    """How the copies of one kernel are written."""

    def __init__(self, root: Stmt, expressions: CudaScalars) -> None:
        self.expressions = expressions
        commits = [node for node in statements(root) if isinstance(node, Commit)]
        self.buffers = {buffer for commit in commits for buffer in commit.buffers}
        self.pending = min((commit.ahead - 1 for commit in commits), default=None)

    def call(self, stmt: Store | LetStmt) -> str | None:
        """The statement as a copy that goes on; None where it is another one, or of a size that the
        device does not copy so.
        """
        store = stmt.body if isinstance(stmt, LetStmt) else stmt
        if not isinstance(store, Store) or store.buffer not in self.buffers:
            return None
        named = isinstance(stmt, LetStmt) and store.value is stmt.var
        value = stmt.value if named else store.value
        if not isinstance(value, Load) or value.buffer.scope != "global":
            return None
        size = value.dtype.bytes * value.dtype.lanes
        if size not in SIZES or (isinstance(stmt, LetStmt) and not named):
            return None
        to, source = (
            self._first(store.buffer, store.indices),
            self._first(value.buffer, value.indices),
        )
        return f"tw_cp_async_{size}({to}, {source});"

    def before_barrier(self) -> Sequence[str]:
        """What a thread waits for before it comes to a barrier."""
        return () if self.pending is None else (f"tw_cp_async_wait<{self.pending}>();",)

    def _first(self, buffer: Buffer, indices: Sequence[Expr]) -> str:
        """The address of an element, or of the first one of neighbours."""
        at = [item.base if isinstance(item, Ramp) else item for item in indices]
        return f"&{self.expressions.place(buffer, at)}"
