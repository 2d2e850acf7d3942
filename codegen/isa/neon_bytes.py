"""Vectors of bytes of NEON, with as many lanes as its vectors of 32 bits have: what is loaded,
widened, narrowed, computed and stored beside these. Their lanes are the first four of a
`uint8x8_t`, whatever their sign.

A mask of theirs is that of numbers of 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...tir.dtype import FLOAT32, INT32, DType, dtype

LANES = 4
TYPE = "uint8x8_t"
BYTES = (dtype("int8"), dtype("uint8"))

_MOVES = {
    "zero": "vdup_n_u8(0)",
    "broadcast": "vdup_n_u8((uint8_t)({0}))",
    "load": "(uint8x8_t)vdup_n_s32(tw_load_i32({0}))",
    "store": "memcpy({0}, &(uint32_t){{ vget_lane_u32((uint32x2_t)({1}), 0) }}, 4)",
    "add": "vadd_u8({0}, {1})",
    "sub": "vsub_u8({0}, {1})",
    "and": "vand_u8({0}, {1})",
    "or": "vorr_u8({0}, {1})",
    "xor": "veor_u8({0}, {1})",
    "blend": (  # mask, on, off
        "vbsl_u8((uint8x8_t)vmovn_u16(vcombine_u16(vmovn_u32({0}), vdup_n_u16(0))), {1}, {2})"
    ),
}
_UNSIGNED = {
    "min": "vmin_u8({0}, {1})",
    "max": "vmax_u8({0}, {1})",
    f"cast_{INT32}": "(int32x4_t)vmovl_u16(vget_low_u16(vmovl_u8({0})))",
    f"cast_{FLOAT32}": "vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8({0}))))",
}
_SIGNED = {
    "min": "(uint8x8_t)vmin_s8((int8x8_t)({0}), (int8x8_t)({1}))",
    "max": "(uint8x8_t)vmax_s8((int8x8_t)({0}), (int8x8_t)({1}))",
    f"cast_{INT32}": "vmovl_s16(vget_low_s16(vmovl_s8((int8x8_t)({0}))))",
    f"cast_{FLOAT32}": "vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8((int8x8_t)({0})))))",
}
_LOW = "(uint8x8_t)vmovn_s16(vcombine_s16(vmovn_s32({0}), vdup_n_s16(0)))"


def types() -> dict[DType, str]:
    """The C type of each vector."""
    return {kind.with_lanes(LANES): TYPE for kind in BYTES}


def operations() -> Mapping[tuple[str, DType], str]:
    """The C expression of each operation; that of a conversion stands with the type converted."""
    table: dict[tuple[str, DType], str] = {}
    numbers, floats = INT32.with_lanes(LANES), FLOAT32.with_lanes(LANES)
    for kind, other, own in zip(BYTES, BYTES[::-1], (_SIGNED, _UNSIGNED), strict=True):
        texts = {**_MOVES, **own, f"cast_{other}": "{0}", f"reinterpret_{other}": "{0}"}
        table |= {(name, kind.with_lanes(LANES)): text for name, text in texts.items()}
        table[f"cast_{kind}", numbers] = _LOW
        table[f"cast_{kind}", floats] = _LOW.replace("{0}", "vcvtq_s32_f32({0})")
        table[f"round_{kind}", floats] = _LOW.replace("{0}", "vcvtnq_s32_f32({0})")
    return table
