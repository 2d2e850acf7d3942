"""Rules of reductions, of positions of the largest, and of running sums."""

from __future__ import annotations

from collections.abc import Sequence

from .....tir.sizes import AnySize, product_of
from ....ops import reduction
from ....ops.arithmetic import Div, Max, Mul, Sub
from ....ops.functions import Abs, Sqrt
from ....ops.softmax import Softmax
from ...onnx.node import NotSupported
from ..promotion import Number, as_float, kind_of
from ..rule import Rule
from ..writer import AtenValue, AtenWriter
from .views import joined, sliced

Dims = Sequence[int] | int | None


def _axes(x: AtenValue, dim: Dims) -> tuple[int, ...]:
    """No dim, or an empty list, means all axes."""
    dims = (dim,) if isinstance(dim, int) else dim
    if not x.rank:
        return ()
    return tuple(sorted({x.axis(one) for one in dims})) if dims else tuple(range(x.rank))


def _total(x: AtenValue) -> str:
    """The type of a sum or product."""
    return x.dtype if x.type.is_float else "int64"


def _sum(
    w: AtenWriter,
    self: AtenValue,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: str | None = None,
) -> AtenValue:
    x = w.cast(self, dtype or _total(self))
    return w.emit(reduction.ReduceSum(_axes(x, dim), keepdim), x) if x.rank else x


def _sum_all(w: AtenWriter, self: AtenValue, dtype: str | None = None) -> AtenValue:
    return _sum(w, self, None, False, dtype)


def _mean(
    w: AtenWriter,
    self: AtenValue,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: str | None = None,
) -> AtenValue:
    x = w.cast(self, dtype or self.dtype)
    return w.emit(reduction.ReduceMean(_axes(x, dim), keepdim), x) if x.rank else x


def _mean_all(w: AtenWriter, self: AtenValue, dtype: str | None = None) -> AtenValue:
    return _mean(w, self, None, False, dtype)


def _prod(
    w: AtenWriter, self: AtenValue, dim: int, keepdim: bool = False, dtype: str | None = None
) -> AtenValue:
    x = w.cast(self, dtype or _total(self))
    return w.emit(reduction.ReduceProd(_axes(x, dim), keepdim), x) if x.rank else x


def _prod_all(w: AtenWriter, self: AtenValue, dtype: str | None = None) -> AtenValue:
    x = w.cast(self, dtype or _total(self))
    return w.emit(reduction.ReduceProd(_axes(x, None), False), x) if x.rank else x


def amax(w: AtenWriter, self: AtenValue, dim: Dims = (), keepdim: bool = False) -> AtenValue:
    return w.emit(reduction.ReduceMax(_axes(self, dim), keepdim), self) if self.rank else self


def amin(w: AtenWriter, self: AtenValue, dim: Dims = (), keepdim: bool = False) -> AtenValue:
    return w.emit(reduction.ReduceMin(_axes(self, dim), keepdim), self) if self.rank else self


def _max_all(w: AtenWriter, self: AtenValue) -> AtenValue:
    return amax(w, self)


def _min_all(w: AtenWriter, self: AtenValue) -> AtenValue:
    return amin(w, self)


def _best(w: AtenWriter, operator: str, x: AtenValue, dim: int, keepdim: bool) -> AtenValue:
    """The position of the first best element; it counts as best where it is no number."""
    return w.spell(operator, x, axis=x.axis(dim), keepdims=int(keepdim))


def _max_dim(w: AtenWriter, self: AtenValue, dim: int, keepdim: bool = False) -> list[AtenValue]:
    return [amax(w, self, dim, keepdim), _best(w, "ArgMax", self, dim, keepdim)]


def _min_dim(w: AtenWriter, self: AtenValue, dim: int, keepdim: bool = False) -> list[AtenValue]:
    return [amin(w, self, dim, keepdim), _best(w, "ArgMin", self, dim, keepdim)]


def _argmax(
    w: AtenWriter, self: AtenValue, dim: int | None = None, keepdim: bool = False
) -> AtenValue:
    return _place(w, "ArgMax", self, dim, keepdim)


def _argmin(
    w: AtenWriter, self: AtenValue, dim: int | None = None, keepdim: bool = False
) -> AtenValue:
    return _place(w, "ArgMin", self, dim, keepdim)


def _place(w: AtenWriter, operator: str, x: AtenValue, dim: int | None, keepdim: bool) -> AtenValue:
    if dim is not None:
        return _best(w, operator, x, dim, keepdim)
    found = _best(w, operator, w.reshape(x, (product_of(x.shape),)), 0, False)
    return w.reshape(found, (1,) * x.rank) if keepdim else found


def _of_truth(operator: str) -> Rule:
    """Whether any or all of some truth values hold: the largest, the least."""

    def rule(w: AtenWriter, self: AtenValue, dim: Dims = None, keepdim: bool = False) -> AtenValue:
        x, axes = w.cast(self, "bool"), _axes(self, dim)
        return w.spell(operator, x, w.sizes(axes), keepdims=int(keepdim)) if axes else x

    return rule


def _squares(
    w: AtenWriter, x: AtenValue, dim: Dims, keepdim: bool, correction: Number | None
) -> tuple[AtenValue, AtenValue]:
    """The variance, and the mean."""
    axes = _axes(x, dim)
    mean = w.emit(reduction.ReduceMean(axes, True), x)
    away = w.emit(Sub(), x, mean)
    total = w.emit(reduction.ReduceSum(axes, keepdim), w.emit(Mul(), away, away))
    count: AnySize = product_of(x.shape[axis] for axis in axes)
    less = 1 if correction is None else correction
    number = w.operand(count, x.dtype)
    divisor = w.emit(Sub(), number, w.full(less, x.dtype)) if less else number
    kept = [size for axis, size in enumerate(x.shape) if keepdim or axis not in axes]
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)] if keepdim else kept
    return w.emit(Div(), total, divisor), w.reshape(mean, kept)


def _var(
    w: AtenWriter,
    self: AtenValue,
    dim: Dims = None,
    correction: Number | None = None,
    keepdim: bool = False,
) -> AtenValue:
    return _squares(w, self, dim, keepdim, correction)[0]


def _var_dim(
    w: AtenWriter, self: AtenValue, dim: Dims, unbiased: bool = True, keepdim: bool = False
) -> AtenValue:
    return _squares(w, self, dim, keepdim, int(unbiased))[0]


def _std(
    w: AtenWriter,
    self: AtenValue,
    dim: Dims = None,
    correction: Number | None = None,
    keepdim: bool = False,
) -> AtenValue:
    return w.emit(Sqrt(), _var(w, self, dim, correction, keepdim))


def _std_dim(
    w: AtenWriter, self: AtenValue, dim: Dims, unbiased: bool = True, keepdim: bool = False
) -> AtenValue:
    return w.emit(Sqrt(), _var_dim(w, self, dim, unbiased, keepdim))


def _var_mean(
    w: AtenWriter,
    self: AtenValue,
    dim: Dims = None,
    correction: Number | None = None,
    keepdim: bool = False,
) -> list[AtenValue]:
    return list(_squares(w, self, dim, keepdim, correction))


def _norm(
    w: AtenWriter,
    self: AtenValue,
    ord: Number = 2,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: str | None = None,
) -> AtenValue:
    x = w.cast(self, dtype or self.dtype)
    axes = _axes(x, dim)
    size = w.emit(Abs(), x)
    if ord == float("inf"):
        return w.emit(reduction.ReduceMax(axes, keepdim), size)
    if ord == 1:
        return w.emit(reduction.ReduceSum(axes, keepdim), size)
    if ord == 2:
        return w.emit(Sqrt(), w.emit(reduction.ReduceSum(axes, keepdim), w.emit(Mul(), x, x)))
    raise NotSupported(f"ord is {ord}; known are 1, 2 and inf")


def _norm_dim(
    w: AtenWriter, self: AtenValue, p: Number | None, dim: Dims, keepdim: bool = False
) -> AtenValue:
    return _norm(w, self, 2 if p is None else p, dim, keepdim)


def _logsumexp(w: AtenWriter, self: AtenValue, dim: Dims, keepdim: bool = False) -> AtenValue:
    x = w.cast(self, as_float(self.dtype))
    axes = w.sizes(_axes(x, dim))
    return w.spell("ReduceLogSumExp", x, axes, keepdims=int(keepdim))


def _softmax(w: AtenWriter, self: AtenValue, dim: int, dtype: str | None = None) -> AtenValue:
    x = w.cast(self, dtype or self.dtype)
    return w.emit(Softmax((x.axis(dim),)), x)


def _core_softmax(w: AtenWriter, self: AtenValue, dim: int, half_to_float: bool) -> AtenValue:
    return _softmax(w, self, dim, "float32" if half_to_float else None)


def _log_softmax(w: AtenWriter, self: AtenValue, dim: int, dtype: str | None = None) -> AtenValue:
    x = w.cast(self, dtype or self.dtype)
    return w.spell("LogSoftmax", x, axis=x.axis(dim))


def _core_log_softmax(w: AtenWriter, self: AtenValue, dim: int, half_to_float: bool) -> AtenValue:
    return _log_softmax(w, self, dim, "float32" if half_to_float else None)


def _cumsum(w: AtenWriter, self: AtenValue, dim: int, dtype: str | None = None) -> AtenValue:
    x = w.cast(self, dtype or _total(self))
    return w.spell("CumSum", x, w.operand(x.axis(dim))) if x.rank else x


def _cumprod(w: AtenWriter, self: AtenValue, dim: int, dtype: str | None = None) -> AtenValue:
    x = w.cast(self, dtype or _total(self))
    return w.spell("CumProd", x, w.operand(x.axis(dim))) if x.rank else x


def _diff(
    w: AtenWriter,
    self: AtenValue,
    n: int = 1,
    dim: int = -1,
    prepend: AtenValue | None = None,
    append: AtenValue | None = None,
) -> AtenValue:
    """The difference of neighbours, n times; of truth values whether they differ."""
    parts = [one for one in (prepend, self, append) if one is not None]
    x = joined(w, parts, dim) if len(parts) > 1 else self
    for _ in range(n):
        size = x.shape[x.axis(dim)]
        high = sliced(w, x, dim, 1)
        low = sliced(w, x, dim, 0, size - 1)
        differs = kind_of(x.dtype) == 0
        x = w.spell("Xor", high, low) if differs else w.emit(Sub(), high, low)
    return x


def _aminmax(
    w: AtenWriter, self: AtenValue, dim: int | None = None, keepdim: bool = False
) -> list[AtenValue]:
    return [amin(w, self, dim, keepdim), amax(w, self, dim, keepdim)]


def _count_nonzero(w: AtenWriter, self: AtenValue, dim: Sequence[int]) -> AtenValue:
    return _sum(w, w.cast(self, "bool"), dim)


def _norm_all(w: AtenWriter, self: AtenValue, p: Number = 2) -> AtenValue:
    return _norm(w, self, p)


def _cosine(
    w: AtenWriter, x1: AtenValue, x2: AtenValue, dim: int = 1, eps: float = 1e-8
) -> AtenValue:
    lengths = [w.emit(Max(), _norm(w, x, 2, dim, True), w.full(eps, x.dtype)) for x in (x1, x2)]
    a, b = (w.emit(Div(), x, size) for x, size in zip((x1, x2), lengths, strict=True))
    return _sum(w, w.emit(Mul(), a, b), dim)


def _distances(w: AtenWriter, x1: AtenValue, x2: AtenValue, p: Number) -> AtenValue:
    """Between all rows of two matrices."""
    rows = w.reshape(x1, (*x1.shape[:-1], 1, x1.shape[-1]))
    columns = w.reshape(x2, (*x2.shape[:-2], 1, *x2.shape[-2:]))
    return _norm(w, w.emit(Sub(), rows, columns), p, -1)


RULES: dict[str, Rule] = {
    "_cdist_forward": _distances,
    "_log_softmax": _core_log_softmax,
    "_softmax": _core_softmax,
    "all": _of_truth("ReduceMin"),
    "all.dim": _of_truth("ReduceMin"),
    "all.dims": _of_truth("ReduceMin"),
    "amax": amax,
    "amin": amin,
    "aminmax": _aminmax,
    "any": _of_truth("ReduceMax"),
    "any.dim": _of_truth("ReduceMax"),
    "any.dims": _of_truth("ReduceMax"),
    "argmax": _argmax,
    "argmin": _argmin,
    "cosine_similarity": _cosine,
    "count_nonzero.dim_IntList": _count_nonzero,
    "cumprod": _cumprod,
    "cumsum": _cumsum,
    "diff": _diff,
    "linalg_vector_norm": _norm,
    "log_softmax.int": _log_softmax,
    "logsumexp": _logsumexp,
    "max": _max_all,
    "max.dim": _max_dim,
    "mean": _mean_all,
    "mean.dim": _mean,
    "min": _min_all,
    "min.dim": _min_dim,
    "norm.Scalar": _norm_all,
    "norm.ScalarOpt_dim": _norm_dim,
    "prod": _prod_all,
    "prod.dim_int": _prod,
    "softmax.int": _softmax,
    "std.correction": _std,
    "std.dim": _std_dim,
    "sum": _sum_all,
    "sum.dim_IntList": _sum,
    "var.correction": _var,
    "var.dim": _var_dim,
    "var_mean.correction": _var_mean,
}
