from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.tir.program.byte_owners import ByteOwners

SIZE = 40
WRITES = st.lists(
    st.tuples(st.integers(0, SIZE), st.integers(0, SIZE), st.sampled_from("abc")), max_size=30
)


@given(WRITES, st.integers(0, SIZE), st.integers(0, SIZE))
def test_it_says_what_an_array_with_a_cell_for_each_byte_says(
    writes: list[tuple[int, int, str]], start: int, end: int
) -> None:
    owners, cells = ByteOwners(), [None] * SIZE
    for first, last, owner in writes:
        owners.write(first, last, owner)
        cells[first:last] = [owner] * max(0, last - first)
    found = list(owners.read(start, end))
    assert [owner for a, b, owner in found for _ in range(a, b)] == cells[start:end]
    assert all(a < b for a, b, _ in found)
    for owner in "abc":
        assert owners.holds(start, end, owner) is all(cell == owner for cell in cells[start:end])


def test_a_memory_of_any_size_takes_what_its_intervals_take() -> None:
    owners = ByteOwners()
    owners.write(0, 1 << 45, "a")
    owners.write(1 << 44, (1 << 44) + 1, "b")
    assert [owner for _, _, owner in owners.read(0, 1 << 46)] == ["a", "b", "a", None]
