"""`--buckets`: sizes that runs of fewer rows are padded to."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from .arguments import shapes_of
from .errors import UsageError

if TYPE_CHECKING:
    from ..graph.buckets import Buckets


class GivenBuckets(TypedDict, total=False):
    """The arguments of `compile` that say which buckets there are."""

    buckets: Buckets
    shape_log: str | None


def add_buckets(parser: argparse.ArgumentParser) -> None:
    """Add `--buckets` and `--shape-log`."""
    parser.add_argument(
        "--buckets",
        metavar="SIZES",
        help="variants that runs of fewer rows are padded to, where that is proved to change no "
        "bit and timed no slower: batch:4x16, batch:4x16,seq:128 where several sizes are open, or "
        "how many to choose from --shape-log",
    )
    parser.add_argument(
        "--shape-log",
        metavar="FILE",
        help="a log of sizes, as run --shape-log writes it, from which --buckets N chooses",
    )


def buckets_of(arguments: argparse.Namespace) -> GivenBuckets:
    """What `compile` is told of buckets. Raises: UsageError."""
    text: str | None = getattr(arguments, "buckets", None)
    log: str | None = arguments.shape_log if hasattr(arguments, "buckets") else None
    if text is None:
        return {} if log is None else {"shape_log": log}
    if text.isdecimal():
        return {"buckets": int(text), "shape_log": log}
    return {"buckets": dict(map(_sizes, shapes_of([text], "--buckets").items())), "shape_log": log}


def _sizes(item: tuple[str, object]) -> tuple[str, Sequence[int] | int]:
    """A name and its sizes, none of them a range."""
    name, sizes = item
    listed = sizes if isinstance(sizes, tuple) else (sizes,)
    numbers = tuple(one for one in listed if isinstance(one, int))
    if len(numbers) < len(listed):
        raise UsageError(
            f"--buckets: '{name}' has a range; expected numbers.",
            code="cli-buckets",
            hints=(f"--buckets {name}:4x16.",),
        )
    return name, numbers if isinstance(sizes, tuple) else numbers[0]
