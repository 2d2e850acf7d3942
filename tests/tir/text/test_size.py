from __future__ import annotations

from tilewright.tir.text.size import bytes_text


def test_sizes_have_three_digits_and_a_unit() -> None:
    assert [bytes_text(size) for size in (0, 1023, 1024, 1536, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1 KiB",
        "1.5 KiB",
        "5 GiB",
    ]
