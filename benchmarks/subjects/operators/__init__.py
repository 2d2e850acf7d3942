"""Single operators on usual sizes, family by family: one more is a row in its family's table."""

from __future__ import annotations

from collections.abc import Mapping

from . import elementwise, images, indexing, learned, networks, quantized, random_numbers
from .subject import Subject

FAMILIES: Mapping[str, tuple[Subject, ...]] = {
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
