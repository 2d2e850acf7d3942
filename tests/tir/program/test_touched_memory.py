"""Touched memory beside the same slices asked one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.dtype import dtype
from tilewright.tir.program.program import Slice
from tilewright.tir.program.touched_memory import TouchedMemory

places = st.builds(
    Slice,
    st.sampled_from(("arena", "arena", "arena", "input", "output")),
    st.integers(0, 30),
    st.just(dtype("int8")),
    st.tuples(st.integers(0, 6)),
)


@given(st.lists(places, max_size=12), places)
def test_a_place_meets_the_memory_where_it_overlaps_one_of_the_slices(
    added: list[Slice], asked: Slice
) -> None:
    memory = TouchedMemory()
    for item in added:
        memory.add(item)
    assert memory.meets(asked) == any(asked.overlaps(item) for item in added)
