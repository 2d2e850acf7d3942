"""Operators that move elements: transposes, joined and cut tensors, borders."""

from __future__ import annotations

from .subject import Subject, known, normal

_IMAGE = normal(1, 64, 56, 56)


def _transpose(axes: tuple[int, ...], *sizes: int, dtype: str = "float32") -> Subject:
    over = "x".join(map(str, sizes))
    kind = "" if dtype == "float32" else f" {dtype}"
    name = f"Transpose{kind} {over} to {''.join(map(str, axes))}"
    body = f"y = Transpose <perm={list(axes)}> (x)"
    return Subject(name, body, {"x": normal(*sizes, dtype=dtype)})


def _pad(mode: str, pad: int) -> Subject:
    draws = {"x": _IMAGE, "p": known([0, 0, pad, pad, 0, 0, pad, pad], "int64")}
    return Subject(f"Pad {mode} 64x56x56 by {pad}", f'y = Pad <mode="{mode}"> (x, p)', draws)


def _slice(name: str, starts: list[int], ends: list[int], steps: list[int]) -> Subject:
    named = {"s": starts, "e": ends, "a": list(range(len(starts))), "t": steps}
    draws = {"x": _IMAGE, **{key: known(value, "int64") for key, value in named.items()}}
    return Subject(f"Slice {name}", "y = Slice(x, s, e, a, t)", draws)


def _concat(axis: int, *sizes: int) -> Subject:
    over = "x".join(map(str, sizes))
    body = f"y = Concat <axis={axis}> (a, b)"
    draws = {"a": normal(*sizes), "b": normal(*sizes)}
    return Subject(f"Concat two of {over} along {axis}", body, draws)


TRANSPOSES = (
    _transpose((1, 0), 1024, 1024),
    _transpose((1, 0), 30000, 2),
    _transpose((1, 0), 1000, 1001),
    _transpose((0, 2, 3, 1), 1, 64, 56, 56),
    _transpose((0, 3, 1, 2), 1, 56, 56, 64),
    _transpose((0, 2, 3, 1), 1, 3, 224, 224),
    _transpose((0, 3, 1, 2), 1, 224, 224, 3),
    _transpose((0, 2, 1, 3), 1, 128, 12, 64),
    _transpose((0, 2, 3, 1), 1, 128, 12, 64),
    _transpose((2, 1, 0), 64, 64, 64),
    _transpose((1, 0, 2), 256, 256, 4),
    _transpose((1, 0), 1024, 1024, dtype="float16"),
)
MOVEMENT = (
    _concat(1, 1, 64, 56, 56),
    _concat(3, 1, 56, 56, 64),
    _concat(1, 1000, 3),
    Subject(
        "Split 64x56x56 in two",
        "y, z = Split <axis=1, num_outputs=2> (x)",
        {"x": _IMAGE},
        outputs=("y", "z"),
    ),
    Subject(
        "Split 128x2304 in three",
        "y, z, u = Split <axis=1, num_outputs=3> (x)",
        {"x": normal(128, 2304)},
        outputs=("y", "z", "u"),
    ),
    _slice("64x56x56, the middle", [0, 0, 4, 4], [1, 64, 52, 52], [1, 1, 1, 1]),
    _slice("64x56x56, each second", [0, 0, 0, 0], [1, 64, 56, 56], [1, 1, 2, 2]),
    _slice("64x56x56, backwards", [0, 0, 55, 55], [1, 64, -57, -57], [1, 1, -1, -1]),
    _pad("constant", 1),
    _pad("constant", 3),
    _pad("reflect", 3),
    _pad("edge", 3),
    Subject(
        "Tile 64x256 by 4x4", "y = Tile(x, n)", {"x": normal(64, 256), "n": known([4, 4], "int64")}
    ),
    Subject(
        "Expand 1x256 to 1024x256",
        "y = Expand(x, n)",
        {"x": normal(1, 256), "n": known([1024, 256], "int64")},
    ),
    Subject("DepthToSpace 64x56x56 by 2", "y = DepthToSpace <blocksize=2> (x)", {"x": _IMAGE}),
    Subject("SpaceToDepth 64x56x56 by 2", "y = SpaceToDepth <blocksize=2> (x)", {"x": _IMAGE}),
)
