"""Choose between the values of a recurrence once in each step, where the step alone decides.

for t: for i: S[t + 1, i] = select(t % 7 == 0, S[t, i // 2], S[t, i // 2 + 4])
->  for t:
        if t % 7 == 0: for i: S[t + 1, i] = S[t, i // 2]
        else: for i: S[t + 1, i] = S[t, i // 2 + 4]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....tir.conditions import names_dim
from ....tir.expr import Expr, Select
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import For, ForKind, If, Stmt, Store
from ....tir.visit import found_in, free_vars, fresh_copy, loads, transform, transform_statements

MOST = 3  # choices of a loop, one behind the other


@dataclass(frozen=True, slots=True)
class HoistChoices:
    """Test what the steps of a recurrence decide outside of the loops inside.

    Requires: stage NEST without blocks. Ensures: the same; each store runs once, as before.
    """

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(transform_statements(func.body, _hoisted))


def _hoisted(node: Node) -> Node:
    """A loop over steps with the first choices of its stores in front of its body."""
    if not isinstance(node, For) or node.kind is not ForKind.SERIAL:
        return node
    if not isinstance(node.body, For) or not all(map(_looks_back, found_in(node.body, Store))):
        return node
    body = _tested(node, node.body, MOST)
    return node if body is node.body else replace(node, body=body)


def _tested(loop: For, body: Stmt, most: int) -> Stmt:
    """The body of a loop for each outcome of its first choices."""
    choice = _choice(loop, body) if most else None
    if choice is None:
        return body
    then, orelse = (_decided(body, choice, outcome) for outcome in (True, False))
    return If(choice, _tested(loop, then, most - 1), _tested(loop, fresh_copy(orelse), most - 1))


def _looks_back(store: Store) -> bool:
    """Whether a store sets an element to what it makes of others of its buffer."""
    own = (load for load in loads(store.value) if load.buffer is store.buffer)
    return any(load.indices != store.indices for load in own)


def _choice(loop: For, body: Stmt) -> Expr | None:
    """What first decides between values of the stores in a loop, and does not change in the loops
    inside.
    """
    inside = {node.var for node in found_in(body, For)}
    found = (
        choice.condition
        for store in found_in(body, Store)
        for choice in found_in(store.value, Select)
    )
    return next(
        (
            condition
            for condition in found
            if loop.var in free_vars(condition)
            and not free_vars(condition) & inside
            and not names_dim(condition)
            and next(iter(loads(condition)), None) is None
        ),
        None,
    )


def _decided(body: Stmt, condition: Expr, outcome: bool) -> Stmt:
    """The body where a condition is known."""

    def side(node: Node) -> Node:
        if isinstance(node, Select) and node.condition == condition:
            return node.on_true if outcome else node.on_false
        return node

    made = transform(body, side)
    assert isinstance(made, Stmt)
    return made
