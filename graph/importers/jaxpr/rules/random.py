"""Rules of random numbers: those of JAX's own generator, Threefry 2x32, to the bit.

A key is two words on a last axis. `jax_threefry_partitionable`, the default, makes a number of its
place alone; the older order of numbers is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from .....tir.dtype import dtype as as_dtype
from .....tir.sizes import AnySize, largest, product_of
from ....ops import bits
from ....ops.random.threefry_word import ThreefryWord
from ...onnx.node import NotSupported
from ..rule import Rule
from ..writer import JaxValue, JaxWriter
from .shapes import concatenated, counted, sliced

_WORD = "uint32"
_KNOWN = "threefry2x32"


def _check_generator(impl: str) -> None:
    """Raises: NotSupported."""
    if impl != _KNOWN:
        raise NotSupported(
            f"its generator is {impl}; known is {_KNOWN}",
            f"jax.random.key(seed, impl='{_KNOWN}')",
        )


def _check_order(partitionable: bool) -> None:
    """Raises: NotSupported."""
    if not partitionable:
        raise NotSupported(
            "its numbers are in the older order of JAX",
            "jax.config.update('jax_threefry_partitionable', True)",
        )


def _words(w: JaxWriter, *inputs: JaxValue) -> tuple[JaxValue, JaxValue]:
    """inputs: the words of the counter, and of the key."""
    first, second = (w.emit(ThreefryWord(word), *inputs) for word in range(2))
    return first, second


def _threefry(
    w: JaxWriter, key: JaxValue, second_key: JaxValue, x: JaxValue, second: JaxValue
) -> list[JaxValue]:
    return list(_words(w, x, second, key, second_key))


def _key_words(w: JaxWriter, keys: JaxValue, behind: int) -> list[JaxValue]:
    """The two words of keys, with so many axes of one element behind theirs."""
    last = keys.rank - 1
    found = list[JaxValue]()
    for word in range(2):
        starts, ends = [0] * keys.rank, list(keys.shape)
        starts[last], ends[last] = word, word + 1
        shape = (*keys.shape[:-1], *(1 for _ in range(behind)))
        found.append(w.reshape(sliced(w, keys, starts, ends), shape))
    return found


def _counters(w: JaxWriter, shape: Sequence[AnySize]) -> tuple[JaxValue, JaxValue]:
    """The number of each element, as the upper and the lower word."""
    total = product_of(shape)
    if largest(total) >= 1 << 32:
        raise NotSupported(f"it draws {total} numbers; known are less than 2**32")
    return w.full(0, _WORD), w.reshape(counted(w, total, _WORD), shape)


def _keyed(w: JaxWriter, keys: JaxValue, shape: Sequence[AnySize]) -> tuple[JaxValue, JaxValue]:
    """The words of so many numbers for each key."""
    high, low = _counters(w, shape)
    made = _words(w, high, low, *_key_words(w, keys, len(shape)))
    wanted = (*keys.shape[:-1], *shape)
    first, second = (w.expand(w.reshape(one, wanted) if not shape else one, wanted) for one in made)
    return first, second


def _random_bits(
    w: JaxWriter,
    keys: JaxValue,
    bit_width: int,
    shape: Sequence[AnySize],
    partitionable: bool = True,
) -> JaxValue:
    _check_order(partitionable)
    first, second = _keyed(w, keys, shape)
    if bit_width != 64:
        return w.cast(w.emit(bits.BitwiseXor(), first, second), f"uint{bit_width}")
    upper, lower = w.cast(first, "uint64"), w.cast(second, "uint64")
    return w.emit(bits.BitwiseOr(), w.emit(bits.BitShift(), upper, w.full(32, "uint64")), lower)


def _split(
    w: JaxWriter, keys: JaxValue, shape: Sequence[AnySize], partitionable: bool = True
) -> JaxValue:
    """As many keys as numbers, each of two words."""
    _check_order(partitionable)
    return _side_by_side(w, _keyed(w, keys, shape))


def _side_by_side(w: JaxWriter, words: Sequence[JaxValue]) -> JaxValue:
    """Words as keys."""
    wide = [w.reshape(one, (*one.shape, 1)) for one in words]
    return concatenated(w, wide, wide[0].rank - 1)


def _seed(w: JaxWriter, seeds: JaxValue, impl: str) -> JaxValue:
    """The bits of an integer as a key: its upper word, 0 where it has none, then its lower one."""
    _check_generator(impl)
    width = as_dtype(seeds.dtype).bits
    upper = w.filled(seeds.shape, 0, _WORD)
    if width == 64:
        whole = w.cast(seeds, "uint64")
        shifted = w.emit(bits.BitShift(right=True), whole, w.full(32, "uint64"))
        upper = w.cast(shifted, _WORD)
    return _side_by_side(w, (upper, w.cast(seeds, _WORD)))


def _fold_in(w: JaxWriter, keys: JaxValue, numbers: JaxValue) -> JaxValue:
    """A key for each number: what becomes of the number, as a counter, under a key."""
    low = w.cast(numbers, _WORD)
    return _side_by_side(w, _words(w, w.filled(low.shape, 0, _WORD), low, *_key_words(w, keys, 0)))


def _wrap(w: JaxWriter, words: JaxValue, impl: str) -> JaxValue:
    _check_generator(impl)
    return words


def _same(w: JaxWriter, keys: JaxValue) -> JaxValue:
    return keys


RULES: dict[str, Rule] = {
    "random_bits": _random_bits,
    "random_clone": _same,
    "random_fold_in": _fold_in,
    "random_seed": _seed,
    "random_split": _split,
    "random_unwrap": _same,
    "random_wrap": _wrap,
    "threefry2x32": _threefry,
}
