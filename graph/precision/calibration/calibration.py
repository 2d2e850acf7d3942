"""Calibration: the ranges of a model's values on some data, to be kept and compiled with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from itertools import accumulate, pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ....tir.errors import IRError
from ....tir.json_reader import Json, Reader
from ....tir.text.display import printable
from ...errors import ModelError
from ...ir.ir import Graph
from ...types import Array
from ..channels.channel_factors import Factors
from ..channels.products import ModelProducts, model_products, products_digest
from ..layers import WEIGHTS, WeightScales
from .calibration_file import calibration_file_error, read_calibration, write_calibration
from .histogram import LEAST_EXPONENT, MOST_EXPONENT, Counts, Float32s, ValueHistogram
from .ranges import METHODS, CalibrationMethod, Interval

if TYPE_CHECKING:
    from ....tir.svg.picture import Picture

Value = TypeVar("Value")

_FORMAT = 2
_READABLE = (1, _FORMAT)  # what 1 has not is `weights` and `products`
_NO_PRODUCTS = ModelProducts((), "")
_MOST_NAMES = 64  # of values of one product
_SHOWN = 12  # digits of a digest that people are shown
_KINDS: dict[str, np.dtype[Any]] = {
    "ranges": np.dtype(np.float32),
    "extremes": np.dtype(np.float32),
    "peaks": np.dtype(np.float32),
    "means": np.dtype(np.float32),
    "factors": np.dtype(np.float32),
    "counts": np.dtype(np.int64),
    "exponents": np.dtype(np.int64),
}


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """The ranges of a model's values on some data: what `compile(..., calibration=)` takes.

    model, digest: the name of the model, and what identifies its products and their weights.
    method: how the ranges were chosen. items: how many items were seen. ranges: of each value by
    name, the least and the largest number that is to be stored; exact in float32. extremes: the
    least and the largest that was seen. channel_peaks, channel_means: of each value that a product
    reads, the largest magnitude, and the mean, in each channel that the product sums over.
    histograms: of each value, where the method needs them. factors: by which channels of values
    were divided before that, where `equalise` or `smooth` was asked for. infinite: values that were
    infinite, as the masks of an attention are; they have no range. weights: whether levels of
    weights get a scale for each output, "channel", or one for all, "tensor". products: by which a
    model is known whose values are called otherwise.
    """

    model: str
    digest: str
    method: CalibrationMethod
    items: int
    ranges: Mapping[str, Interval]
    extremes: Mapping[str, Interval]
    channel_peaks: Mapping[str, Float32s]
    channel_means: Mapping[str, Float32s]
    histograms: Mapping[str, ValueHistogram] = field(default_factory=dict)
    factors: Factors = field(default_factory=dict)
    infinite: tuple[str, ...] = ()
    weights: WeightScales = "channel"
    products: ModelProducts = _NO_PRODUCTS

    @property
    def title(self) -> str:
        """In a line: of which model, by which method, from how much data."""
        return (
            f"calibration of '{self.model}' by {self.method}: {len(self.ranges)} values, "
            f"{self.items} item{'' if self.items == 1 else 's'}"
            f"{', weights by tensor' if self.weights == 'tensor' else ''}"
            f", digest {self.digest[:_SHOWN]}"
        )

    @property
    def key(self) -> str:
        """What identifies what `compile` takes of it: equal for equal models, ranges, means,
        factors and scales of weights.
        """
        digest = hashlib.sha256(f"{self.digest} {self.weights}".encode())
        for name, interval in sorted(self.ranges.items()):
            digest.update(repr((name, interval)).encode())
        for arrays in (self.channel_means, self.factors):
            for name, array in sorted(arrays.items()):
                digest.update(repr(name).encode() + array.tobytes())
        return digest.hexdigest()

    def __str__(self) -> str:
        lines = [self.title]
        for name, (low, high) in self.ranges.items():
            seen = self.extremes[name]
            cut = f" (seen: {seen[0]:.4g} to {seen[1]:.4g})" if seen != (low, high) else ""
            lines.append(f"  {name}: {low:.4g} to {high:.4g}{cut}")
        lines += [f"  {name}: infinite, without a range" for name in self.infinite]
        return printable("\n".join(lines))

    __repr__ = __str__

    def picture(self) -> Picture:
        """The magnitudes of all ranges in the order of the model, and where they were cut."""
        from .calibration_pictures import draw_ranges  # a compile draws nothing

        return draw_ranges(self.ranges, self.extremes, self.title)

    def _repr_html_(self) -> str:
        from .calibration_pictures import ranges_html  # a compile draws nothing

        listed = printable(", ".join(self.infinite))
        below = f"<p>infinite, without a range: {escape(listed)}</p>" if listed else ""
        table = ranges_html(self.ranges, self.histograms)
        return f"<p>{escape(self.title)}</p>{self.picture().svg}{table}{below}"

    def fitted(self, prepared: Graph) -> Calibration:
        """The calibration as it is of a prepared graph; where that has the same products under
        other names, with these, of what products read and make. Raises: ModelError for a graph of
        another model than was calibrated.
        """
        found = products_digest(prepared)
        if found == self.digest:
            return self
        names = self.products.renaming(model_products(prepared))
        if names is not None and self.factors.keys() <= names.keys():
            return self._renamed(names, found)
        raise ModelError(
            f"compile: the calibration is of '{self.model}' with digest "
            f"{self.digest[:_SHOWN]}, and the model is '{prepared.name}' with "
            f"{found[:_SHOWN]}; expected one of the same products and weights.",
            code="calibration-model",
            hints=("tw.calibrate(model, data) makes one of this model.",),
        )

    def _renamed(self, names: Mapping[str, str], digest: str) -> Calibration:
        def known(values: Mapping[str, Value]) -> dict[str, Value]:
            return {names[name]: value for name, value in values.items() if name in names}

        return replace(
            self,
            digest=digest,
            ranges=known(self.ranges),
            extremes=known(self.extremes),
            channel_peaks=known(self.channel_peaks),
            channel_means=known(self.channel_means),
            histograms=known(self.histograms),
            factors=known(self.factors),
            infinite=(),
            products=_NO_PRODUCTS,
        )

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a file that `Calibration.load` reads, in place of one that is there; the file.

        Raises: OutputFileError.
        """
        file = Path(path)
        write_calibration(file, self._header(), self._arrays())
        return file

    @staticmethod
    def load(path: str | PathLike[str]) -> Calibration:
        """Read a file that `save` has written.

        Raises: ModelFileError, a ModelError and an OSError, for one that is missing, cut off,
        damaged, or something else.
        """
        file = Path(path)
        header, arrays = read_calibration(file)
        try:
            return _decoded(header, arrays)
        except (IRError, ValueError) as error:
            text = error.message if isinstance(error, IRError) else str(error)
            raise calibration_file_error(file, text.rstrip(".")) from error

    def _header(self) -> Json:
        counts = {name: one.counts for name, one in self.histograms.items()}
        return {
            "format": _FORMAT,
            "model": self.model,
            "digest": self.digest,
            "method": self.method,
            "items": self.items,
            "values": list(self.ranges),
            "peaks": _sizes(self.channel_peaks),
            "means": _sizes(self.channel_means),
            "factors": _sizes(self.factors),
            "counts": _sizes(counts),
            "infinite": list(self.infinite),
            "weights": self.weights,
            "products": [list(names) for names in self.products.names],
            "form": self.products.form,
        }

    def _arrays(self) -> dict[str, Array]:
        histograms = self.histograms.values()
        parts: dict[str, Iterable[object]] = {
            "ranges": self.ranges.values(),
            "extremes": (self.extremes[name] for name in self.ranges),
            "peaks": self.channel_peaks.values(),
            "means": self.channel_means.values(),
            "factors": self.factors.values(),
            "counts": (one.counts for one in histograms),
            "exponents": ([one.exponent] for one in histograms),
        }
        return {name: _joined(each, _KINDS[name]) for name, each in parts.items()}


def _sizes(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Json]:
    """The number of elements of each array."""
    return {name: len(one) for name, one in arrays.items()}


def _joined(parts: Iterable[object], kind: np.dtype[np.generic]) -> Array:
    """Arrays one behind the other."""
    return np.concatenate([np.zeros(0, kind), *(np.asarray(part, kind) for part in parts)])


def _decoded(header: Reader, arrays: Mapping[str, Array]) -> Calibration:
    """The calibration that a file holds. Raises: IRError, ValueError."""
    version = header["format"].integer()
    if version not in _READABLE:
        raise ValueError(f"its format is not {' or '.join(map(str, _READABLE))}")
    if {name: array.dtype for name, array in arrays.items()} != _KINDS:
        raise ValueError(f"its arrays are not {', '.join(_KINDS)}")
    names = _names(header["values"])
    counts = _cut(header["counts"], arrays["counts"])
    if len(arrays["exponents"]) != len(counts):
        raise ValueError("its histograms have no exponents")
    exponents = map(int, arrays["exponents"])
    return Calibration(
        header["model"].text(),
        header["digest"].text(64),
        header["method"].one_of(*METHODS),  # type: ignore[arg-type]  # it is one of them
        header["items"].integer(),
        _pairs(names, arrays["ranges"]),
        _pairs(names, arrays["extremes"]),
        _cut(header["peaks"], arrays["peaks"]),
        _cut(header["means"], arrays["means"]),
        {
            name: _histogram(exponent, one)
            for exponent, (name, one) in zip(exponents, counts.items(), strict=True)
        },
        _factors(header["factors"], arrays["factors"]),
        _names(header["infinite"]),
        *(() if version < _FORMAT else _weights_and_products(header)),
    )


def _weights_and_products(header: Reader) -> tuple[WeightScales, ModelProducts]:
    names = tuple(
        tuple(name.text() for name in product.items(_MOST_NAMES))
        for product in header["products"].items()
    )
    weights: WeightScales = header["weights"].one_of(*WEIGHTS)  # type: ignore[assignment]
    return weights, ModelProducts(names, header["form"].text(64))


def _names(listed: Reader) -> tuple[str, ...]:
    names = tuple(item.text() for item in listed.items())
    if len(set(names)) != len(names):
        raise ValueError("a value stands there twice")
    return names


def _pairs(names: tuple[str, ...], numbers: Array) -> dict[str, Interval]:
    """A range of each value."""
    if len(numbers) != 2 * len(names) or not np.isfinite(numbers).all():
        raise ValueError("it has not two numbers for each value")
    found = [(float(low), float(high)) for low, high in numbers.reshape(-1, 2)]
    if any(low > high for low, high in found):
        raise ValueError("a range ends before it begins")
    return dict(zip(names, found, strict=True))


def _cut(sizes: Reader, joined: Array) -> dict[str, NDArray[Any]]:
    """Arrays of these sizes that stand one behind the other."""
    lengths = {name: size.integer() for name, size in sizes.fields()}
    if sum(lengths.values()) != len(joined):
        raise ValueError(f"its arrays have {len(joined)} of {sum(lengths.values())} elements")
    if not np.isfinite(joined).all():
        raise ValueError("an element is no finite number")
    ends = list(accumulate(lengths.values(), initial=0))
    return {name: joined[a:b] for name, (a, b) in zip(lengths, pairwise(ends), strict=True)}


def _factors(sizes: Reader, joined: Array) -> dict[str, Float32s]:
    found = _cut(sizes, joined)
    if any(not np.all(one > 0) for one in found.values()):
        raise ValueError("a factor of a channel is not positive")
    return found


def _histogram(exponent: int, counts: Counts) -> ValueHistogram:
    within = len(counts) and not len(counts) % 2 and int(counts.min()) >= 0
    if not within or not LEAST_EXPONENT <= exponent <= MOST_EXPONENT:
        raise ValueError("a histogram is none")
    return ValueHistogram(exponent, counts)
