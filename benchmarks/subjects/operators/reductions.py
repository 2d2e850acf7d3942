"""Reductions over each axis and over all, and softmax over vocabularies."""

from __future__ import annotations

from .subject import Draw, Subject, known, normal

_CUBE = normal(64, 1000, 64)


def _over(operator: str, axes: tuple[int, ...], x: Draw, of: str) -> Subject:
    named = f"{operator} {of} over {','.join(map(str, axes))}"
    body = f"y = {operator} <keepdims=0> (x, a)"
    return Subject(named, body, {"x": x, "a": known(list(axes), "int64")})


def _arg(operator: str, axis: int, *sizes: int) -> Subject:
    over = "x".join(map(str, sizes))
    body = f"y = {operator} <axis={axis}, keepdims=0> (x)"
    return Subject(f"{operator} {over} over {axis}", body, {"x": normal(*sizes)})


REDUCTIONS = (
    _over("ReduceSum", (0,), _CUBE, "64x1000x64"),
    _over("ReduceSum", (1,), _CUBE, "64x1000x64"),
    _over("ReduceSum", (2,), _CUBE, "64x1000x64"),
    _over("ReduceMean", (0, 2), _CUBE, "64x1000x64"),
    _over("ReduceMax", (1, 2), _CUBE, "64x1000x64"),
    _over("ReduceMean", (2, 3), normal(8, 256, 14, 14), "8x256x14x14"),
    _over("ReduceMean", (0, 2, 3), normal(8, 64, 28, 28), "8x64x28x28"),
    _over("ReduceL2", (1,), normal(1024, 768), "1024x768"),
    _over("ReduceProd", (1,), normal(1024, 64), "1024x64"),
    _over("ReduceLogSumExp", (1,), normal(64, 1000), "64x1000"),
    Subject("ReduceSum of 1000000", "y = ReduceSum <keepdims=0> (x)", {"x": normal(1000000)}),
    Subject("ReduceMax of 1000000", "y = ReduceMax <keepdims=0> (x)", {"x": normal(1000000)}),
    _arg("ArgMax", 1, 8, 32000),
    _arg("ArgMax", 1, 1, 21, 256, 256),
    _arg("ArgMin", 0, 1000, 64),
)
SOFTMAX = (
    Subject("Softmax 8x50257", "y = Softmax <axis=1> (x)", {"x": normal(8, 50257)}),
    Subject("Softmax 12x128x128", "y = Softmax <axis=2> (x)", {"x": normal(12, 128, 128)}),
    Subject(
        "Softmax 21x128x128 of channels", "y = Softmax <axis=0> (x)", {"x": normal(21, 128, 128)}
    ),
    Subject("LogSoftmax 8x32000", "y = LogSoftmax <axis=1> (x)", {"x": normal(8, 32000)}),
    Subject("LogSoftmax 128x1000", "y = LogSoftmax <axis=1> (x)", {"x": normal(128, 1000)}),
)
