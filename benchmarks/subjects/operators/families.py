"""The families of single operators: one more subject is a row in its family's table."""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    convolutions,
    elementwise,
    images,
    indexing,
    learned,
    movement,
    networks,
    products,
    quantized,
    random_numbers,
    reductions,
)
from .subject import Subject

FAMILIES: Mapping[str, tuple[Subject, ...]] = {
    "products": products.WEIGHTED,
    "varying products": products.VARYING,
    "residual convolutions": convolutions.RESIDUAL,
    "other convolutions": convolutions.OTHER_CONVOLUTIONS,
    "depthwise": convolutions.DEPTHWISE,
    "other axes": convolutions.OTHER_AXES,
    "transposed": convolutions.TRANSPOSED,
    "pointwise": elementwise.POINTWISE,
    "reductions": reductions.REDUCTIONS,
    "softmax": reductions.SOFTMAX,
    "transposes": movement.TRANSPOSES,
    "movement": movement.MOVEMENT,
    "trigonometry": elementwise.TRIGONOMETRY,
    "hyperbolic": elementwise.HYPERBOLIC,
    "remainders": elementwise.REMAINDERS,
    "bits": elementwise.BITS,
    "conversions": elementwise.CONVERSIONS,
    "cumulative": indexing.CUMULATIVE,
    "einsum": indexing.EINSUM,
    "gathering": indexing.GATHERING,
    "scattering": indexing.SCATTERING,
    "finding": indexing.FINDING,
    "ranking": indexing.RANKING,
    "recurrent": networks.RECURRENT,
    "norms": networks.NORMS,
    "attention": networks.ATTENTION,
    "microsoft": networks.MICROSOFT,
    "quantized": quantized.QUANTIZED,
    "sampling": images.SAMPLING,
    "resizing": images.RESIZING,
    "pooling": images.POOLING,
    "spectra": images.SPECTRA,
    "random": random_numbers.RANDOM_NUMBERS,
    "learned": learned.LEARNED,
}
